"""What all pages share: templates that escape every text, the frame around a page, and static files.

A page is a template with values. Whatever a value holds is shown as text: Jinja escapes it, and what would act on the
text around it (control characters, marks of writing direction) becomes a visible sign. Only `Markup` is not escaped.
"""

from __future__ import annotations

import hashlib
import time
from base64 import b64encode
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from wfdsl.render.markup import STYLE, markup
from wfdsl.render.status import dollars, duration
from wfdsl.render.text import counted, harmless

_HERE: Final = Path(__file__).parent
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """A page made of a template; `request.app.state` says which pages the navigation has."""
    state = request.app.state
    text = (
        environment()
        .get_template(template)
        .render(root=request.scope["root_path"], here=request.url.path, nav=getattr(state, "nav", ()), **values)
    )
    return HTMLResponse(text, status, headers={"etag": f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'})


@cache
def environment() -> Environment:
    """The templates of all pages."""
    found = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"ago": ago, "clock": clock, "dollars": _dollars, "duration": _duration, "counted": counted}
    found.filters["markup"] = lambda text: Markup(markup(text))
    found.globals["asset"] = asset
    return found


def _shown(value: Any) -> Any:
    if value is None:
        return ""
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def hash_of(style: str) -> str:
    """The hash of a style element, as a content security policy names it."""
    return f"'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"


def asset(name: str) -> str:
    """The address of a static file below the pages, which changes with its content."""
    return f"/static/{name}?v={hashlib.sha256(_content(name)).hexdigest()[:12]}"


def static_file(request: Request) -> Response:
    """A style sheet or a script."""
    name = request.path_params["name"]
    if name not in {path.name for path in (_HERE / "static").iterdir()}:
        return Response(status_code=404)
    headers = {"cache-control": "private, max-age=31536000, immutable"} if "v" in request.query_params else {}
    return Response(_content(name), headers=headers, media_type=_TYPES[Path(name).suffix])


@cache
def _content(name: str) -> bytes:
    content = (_HERE / "static" / name).read_bytes()
    return content + STYLE.encode() if name == "viewer.css" else content


def ago(at: float | None) -> str:
    """How long ago something was, in one unit."""
    if at is None:
        return ""
    seconds = max(time.time() - at, 0.0)
    for unit, length in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def clock(at: float | None) -> str:
    """A time of this machine's clock."""
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _dollars(usd: float | None) -> str:
    return "not known" if usd is None else dollars(usd)


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)
