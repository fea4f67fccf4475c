"""The endpoints of limits and leases: `/v1/limits`, `/v1/leases` and `/v1/leases/settle`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from wfdsl.server.api_errors import NO_RETRY, ApiError
from wfdsl.server.api_keys import Caller
from wfdsl.server.endpoints import Endpoints
from wfdsl.server.event_stream import ClientLeft, while_connected
from wfdsl.server.key_usage import Allowance
from wfdsl.server.leases import Leases
from wfdsl.server.live_limits import LiveLimits
from wfdsl.server.middleware import CLIENT_LEFT, json_object

_LONGEST_NAME: Final = 200
_MOST_CALLS: Final = 1000
_LARGEST_BODY: Final = 4_194_304
_LARGEST_AMOUNT: Final = 10**12
"""More than any call takes, and few enough that the journal can add millions of leases up. Our choice."""


class LimitEndpoints:
    """What other processes and `wfdsl ctl` ask; `limits` and `leases` are there once the server runs."""

    def __init__(self, server: Endpoints, allowance: Callable[[Request], Awaitable[Allowance]]) -> None:
        """`server` knows whose request it is; `allowance` says what one that takes leases may use."""
        self.limits: LiveLimits
        self.leases: Leases
        self._server = server
        self._allowance = allowance
        self.routes = [
            Route("/v1/limits", self.show, methods=["GET"]),
            Route("/v1/limits", self.change, methods=["PATCH"]),
            Route("/v1/leases", self.show_leases, methods=["GET"]),
            Route("/v1/leases", self.take, methods=["POST"]),
            Route("/v1/leases/settle", self.settle, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """The limits, and what is used of them."""
        self._server.caller(request)
        return JSONResponse(self.limits.describe())

    async def change(self, request: Request) -> Response:
        """Change limits."""
        _require_admin(self._server.caller(request))
        self.limits.change(await self._body(request))
        return JSONResponse(self.limits.describe())

    async def show_leases(self, request: Request) -> Response:
        """The holders of leases."""
        self._server.caller(request)
        return JSONResponse({"holders": self.leases.describe(), "ended": dict(self.leases.counts)})

    async def take(self, request: Request) -> Response:
        """Give leases; the answer waits until there is one, up to a limit."""
        allowance = await self._allowance(request)
        asked = await self._body(request)
        seconds = asked.get("seconds")
        _require(seconds is None or (_is_amount(seconds) and seconds > 0), "seconds must be a number above 0")
        calls = asked.get("calls")
        _require(isinstance(calls, list) and all(map(_is_bound, calls)), _CALLS)
        _require(0 < len(calls) <= _MOST_CALLS, f"calls must have 1 to {_MOST_CALLS} entries")
        _require(isinstance(asked.get("request", ""), str), "request must be a text")
        taking = self.leases.take(
            _holder(asked, allowance.key),
            _name(asked, "worker"),
            [(int(tokens), float(usd)) for tokens, usd in calls],
            request=asked.get("request", ""),
            seconds=seconds,
            allowance=allowance,
        )
        try:
            leases = await while_connected(request.receive, taking)
        except ClientLeft:
            return Response(status_code=CLIENT_LEFT)
        longest = self.leases.seconds
        return JSONResponse({"leases": leases, "seconds": longest if seconds is None else min(seconds, longest)})

    async def settle(self, request: Request) -> Response:
        """End leases, and renew the others of their holder."""
        caller = self._server.caller(request)
        asked = await self._body(request)
        settled = asked.get("settled", [])
        _require(isinstance(settled, list) and all(_is_settled(each) for each in settled), _SETTLED)
        return JSONResponse({"expired": self.leases.settle(_holder(asked, caller.name), settled)})

    async def _body(self, request: Request) -> Any:
        return json_object(await self._server.body(request, _LARGEST_BODY))


_CALLS: Final = "calls must be a list of [tokens, usd], numbers from 0 to 10^12"
_SETTLED: Final = (
    "settled must be a list of objects with lease (a text), calls, tokens and usd (numbers from 0 to "
    "10^12), and optionally status and retry_after"
)


def _require_admin(caller: Caller) -> None:
    if not caller.is_admin:
        what = f"the key {caller.name!r} may not change limits; make one that may: wfdsl serve keys make NAME --admin"
        raise ApiError(403, what, code="not_admin", headers=NO_RETRY)


def _holder(asked: Any, key: str) -> str:
    """Who holds leases: two keys have no holder in common, so none ends or charges what another was given."""
    name = _name(asked, "holder")
    return f"{key}/{name}" if key else name


def _is_settled(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("lease"), str):
        return False
    amounts = [value.get(name) for name in ("calls", "tokens", "usd")]
    others = [value.get("status", 200), value.get("retry_after") or 0]
    return all(map(_is_amount, amounts)) and all(type(each) in (int, float) and each >= 0 for each in others)


def _is_bound(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_amount, value))


def _is_amount(value: Any) -> bool:
    """Whether a value is a number that can be added up: not NaN, not infinite, not huge."""
    return type(value) in (int, float) and 0 <= value <= _LARGEST_AMOUNT


def _name(asked: Any, key: str) -> str:
    name = asked.get(key)
    is_name = isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable()
    _require(is_name, f"{key} must be a name of up to {_LONGEST_NAME} printable characters")
    return str(name)


def _require(is_fine: Any, what: str) -> None:
    if not is_fine:
        raise ApiError(400, what, code="invalid_value")
