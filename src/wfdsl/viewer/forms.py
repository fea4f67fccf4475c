"""The forms that pages send by POST: their size, and that one of these pages has sent them."""

from __future__ import annotations

import hmac
import math
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from wfdsl.viewer.access import form_token

_LONGEST: Final = 1_000_000  # bytes; our choice


async def sent_fields(request: Request) -> dict[str, str]:
    """The fields of a form that one of these pages has sent, with plain line ends.

    Raises:
        HTTPException: it is too large, or was sent by another page.
    """
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _LONGEST:
            raise HTTPException(413, f"The form must have at most {_LONGEST:,} bytes.")
    fields: dict[str, Any] = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    if not hmac.compare_digest(fields.get("token", "").encode(), form_token(request.app.state.key).encode()):
        raise HTTPException(403, "The form was not sent by a page of this viewer: open the page again, and send it.")
    return {name: value.replace("\r\n", "\n") for name, value in fields.items()}


def price_field(usd: float | None) -> str:
    """A price as forms carry it; empty if it is not known."""
    return "" if usd is None else f"{usd:.10f}"


def rounded_up(usd: float | None) -> str:
    """A price in US dollars that is not above what is shown; empty if it is not known."""
    return "" if usd is None else f"${math.ceil(usd * 10_000 - 1e-9) / 10_000:.4f}"
