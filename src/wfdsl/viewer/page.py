"""What all pages share: templates that escape every text, the frame around a page, and static files.

A page is a template with values. Whatever a value holds is shown as text: Jinja escapes it, and what would act on the
text around it (control characters, marks of writing direction) becomes a visible sign. Only `Markup` is not escaped.
"""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from wfdsl.render.html import environment
from wfdsl.render.markup import STYLE
from wfdsl.render.status import dollars, duration
from wfdsl.render.text import counted

_HERE: Final = Path(__file__).parent
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_CHARS: Final = 300_000
"""Characters of texts on one page, so that a page stays below a megabyte. Our choice."""
_MOST, _LEAST = 20_000, 300
"""The most and the fewest characters that are shown of one text. Our choice."""


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """A page made of a template; `request.app.state` says which pages the navigation has."""
    state = request.app.state
    text = (
        _templates()
        .get_template(template)
        .render(root=request.scope["root_path"], here=request.url.path, nav=getattr(state, "nav", ()), **values)
    )
    return HTMLResponse(text, status, headers={"etag": f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'})


@cache
def _templates() -> Environment:
    found = environment(_HERE / "templates")
    found.filters |= {"ago": ago, "clock": clock, "dollars": _dollars, "duration": _duration, "counted": counted}
    found.filters |= {"price_field": price_field, "rounded_up": rounded_up}
    found.globals["asset"] = asset
    return found


def price_field(usd: float | None) -> str:
    """A price as forms carry it; empty if it is not known."""
    return "" if usd is None else f"{usd:.10f}"


def rounded_up(usd: float | None) -> str:
    """A price in US dollars that is not above what is shown; empty if it is not known."""
    return "" if usd is None else f"${math.ceil(usd * 10_000 - 1e-9) / 10_000:.4f}"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text, or the beginning of a long one."""

    text: str
    left: int
    """How many characters are not shown."""


class Excerpts:
    """Shows the beginnings of texts, so that all of them fit on a page."""

    def __init__(self, texts: int, *, most: int = _MOST) -> None:
        self._limit = max(_LEAST, min(most, _CHARS // max(texts, 1)))

    def __call__(self, text: str | None) -> Excerpt:
        """The text, as much of it as has room."""
        text = text or ""
        left = len(text) - self._limit
        return Excerpt(text, 0) if left <= 0 else Excerpt(text[: self._limit], left)


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
