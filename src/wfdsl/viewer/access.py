"""Who may see the pages: users that can read the journal's folder, where the key to the pages is kept.

The address that `wfdsl view` prints carries the key once; a cookie carries it from then on. Without it no page is
shown, since every user of a machine reaches its loopback address, and pages of other sites reach it by a user's
browser. Forms carry a token that is made of the key, so that no other site can send them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wfdsl.errors import UsageError
from wfdsl.render.html import hash_of
from wfdsl.render.svg import STYLE as PICTURE_STYLE
from wfdsl.viewer.page import page

_PARAMETER: Final = "key"
_LONGEST_FORM: Final = 1_000_000  # bytes; our choice
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    f"style-src 'self' {hash_of(PICTURE_STYLE)}; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def key_beside(journal: Path) -> str:
    """The key to the pages of a journal, which is made where there is none; only the owner can read the file.

    Raises:
        UsageError: it cannot be read or written.
    """
    path = journal.with_name("viewer.key")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            own = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            descriptor = os.open(own, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(24))
            own.replace(path)
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as error:
        raise UsageError(f"the key to the pages, {path}, cannot be read or written: {error}") from error
    if len(key) < 20:
        raise UsageError(f"the key to the pages, {path}, is damaged: remove the file, and a new key is made")
    return key


def form_token(key: str) -> str:
    """What forms carry to show that they come from these pages."""
    return hmac.new(key.encode(), b"form", hashlib.sha256).hexdigest()


async def sent_fields(request: Request) -> dict[str, str]:
    """The fields of a form that one of these pages has sent, with plain line ends.

    Raises:
        HTTPException: it is too large, or was sent by another page.
    """
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _LONGEST_FORM:
            raise HTTPException(413, f"The form must have at most {_LONGEST_FORM:,} bytes.")
    fields: dict[str, Any] = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    if not hmac.compare_digest(fields.get("token", "").encode(), form_token(request.app.state.key).encode()):
        raise HTTPException(403, "The form was not sent by a page of this viewer: open the page again, and send it.")
    return {name: value.replace("\r\n", "\n") for name, value in fields.items()}


class Access:
    """Lets requests with the key through, and gives every response the headers that keep pages to themselves."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "private, no-cache")
            await send(message)

        answer = self._refusal(Request(scope))
        await (answer or self._app)(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """What is answered instead of a page; None: the page may be shown."""
        given = request.query_params.get(_PARAMETER)
        if given is not None and _equal(given, self._key):
            return self._with_cookie(request)
        is_static = request.url.path.startswith(f"{request.scope['root_path']}/static/")
        if is_static or _equal(request.cookies.get(_cookie_name(request), ""), self._key):
            return None
        if request.method != "GET":
            return Response(status_code=403)
        return page(request, "no_access.html", status=403)

    def _with_cookie(self, request: Request) -> Response:
        left = [pair for pair in parse_qsl(request.url.query) if pair[0] != _PARAMETER]
        answer = RedirectResponse(request.url.path + (f"?{urlencode(left)}" if left else ""), 303)
        answer.set_cookie(
            _cookie_name(request),
            self._key,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
            path=request.scope["root_path"] or "/",
            max_age=30 * 86_400,
        )
        return answer


def _cookie_name(request: Request) -> str:
    """Cookies are shared by all ports of a host, so the port is in the name."""
    server = request.scope.get("server") or ("", 0)
    return f"wfdsl-view-{server[1] or 0}"


def _equal(given: str, key: str) -> bool:
    return hmac.compare_digest(given.encode(), key.encode())
