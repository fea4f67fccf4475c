"""Requests that a page of another site makes a browser send: a server that spends money answers none of them.

A page can send a request to any address that its reader's browser reaches, this machine's own included, and with a name
of its own that leads there (DNS rebinding) it can read the answer, too. Without keys, the `Host` and the `Origin` of a
request tell; with keys, a page cannot know one, but a browser may have kept the password of a URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from wfdsl.server.api_errors import NO_RETRY, ApiError
from wfdsl.server.api_keys import is_loopback


def require_same_site(headers: Mapping[str, str], *, needs_key: bool) -> None:
    """Refuse a request that a page of another site may have sent.

    Raises:
        ApiError: it names another host than this machine, or comes from a page of another one.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if needs_key and headers.get("authorization", "").lower().startswith("bearer "):
        return
    if host and not needs_key and not is_loopback(_name(host)):
        raise _refusal(f"a server without keys answers on localhost only (Host: {host[:_SHOWN]!r}); give it --keys")
    if origin is not None and _place(origin) != host.lower():
        raise _refusal(f"pages of other sites are not answered (Origin: {origin[:_SHOWN]!r})")


_SHOWN = 80


def _name(host: str) -> str:
    """The host without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _place(origin: str) -> str | None:
    """The host and the port of an origin; None if it is not one."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _refusal(what: str) -> ApiError:
    return ApiError(403, what, code="foreign_site", headers=NO_RETRY)
