"""The endpoints of limits and leases: `/v1/limits`, `/v1/leases` and `/v1/leases/settle`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from wfdsl.server.api_errors import ApiError
from wfdsl.server.event_stream import ClientLeft, while_connected
from wfdsl.server.key_usage import Allowance
from wfdsl.server.leases import Leases
from wfdsl.server.live_limits import LiveLimits
from wfdsl.server.middleware import CLIENT_LEFT, json_object, read_body

_LONGEST_NAME: Final = 200
_MOST_CALLS: Final = 1000
_LARGEST_BODY: Final = 4_194_304


class LimitEndpoints:
    """What other processes and `wfdsl ctl` ask; `limits` and `leases` are there once the server runs."""

    def __init__(
        self, admit: Callable[[Request], object], allowance: Callable[[Request], Awaitable[Allowance]]
    ) -> None:
        """`admit` refuses a request without a key that is accepted; `allowance` says what one that takes leases may
        use.
        """
        self.limits: LiveLimits
        self.leases: Leases
        self._admit = admit
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
        self._admit(request)
        return JSONResponse(self.limits.describe())

    async def change(self, request: Request) -> Response:
        """Change limits."""
        self.limits.change(await self._body(request))
        return JSONResponse(self.limits.describe())

    async def show_leases(self, request: Request) -> Response:
        """The holders of leases."""
        self._admit(request)
        return JSONResponse({"holders": self.leases.describe(), "ended": dict(self.leases.counts)})

    async def take(self, request: Request) -> Response:
        """Give leases; the answer waits until there is one, up to a limit."""
        allowance = await self._allowance(request)
        asked = await self._body(request)
        seconds = asked.get("seconds")
        _require(seconds is None or (_is_number(seconds) and seconds > 0), "seconds must be a number above 0")
        calls = asked.get("calls")
        _require(isinstance(calls, list) and all(map(_is_bound, calls)), "calls must be a list of [tokens, usd]")
        _require(0 < len(calls) <= _MOST_CALLS, f"calls must have 1 to {_MOST_CALLS} entries")
        _require(isinstance(asked.get("begun", True), bool), "begun must be true or false")
        _require(isinstance(asked.get("request", ""), str), "request must be a text")
        taking = self.leases.take(
            _name(asked, "holder"),
            _name(asked, "worker"),
            [(int(tokens), float(usd)) for tokens, usd in calls],
            request=asked.get("request", ""),
            begun=asked.get("begun", True),
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
        asked = await self._body(request)
        settled, begun = asked.get("settled", []), asked.get("begun", [])
        _require(isinstance(settled, list) and all(_is_settled(each) for each in settled), _SETTLED)
        named = isinstance(begun, list) and all(isinstance(each, str) for each in begun)
        _require(named, "begun must be a list of leases")
        return JSONResponse({"expired": self.leases.settle(_name(asked, "holder"), settled, begun)})

    async def _body(self, request: Request) -> Any:
        self._admit(request)
        return json_object(await read_body(request, _LARGEST_BODY))


_SETTLED: Final = (
    "settled must be a list of objects with lease (a text), calls, tokens and usd (numbers from 0), and optionally "
    "status and retry_after"
)


def _is_settled(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("lease"), str):
        return False
    amounts = [value.get(name) for name in ("calls", "tokens", "usd")]
    others = [value.get("status", 200), value.get("retry_after") or 0]
    return all(_is_number(each) and each >= 0 for each in [*amounts, *others])


def _is_bound(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_number(each) and each >= 0 for each in value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _name(asked: Any, key: str) -> str:
    name = asked.get(key)
    is_name = isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable()
    _require(is_name, f"{key} must be a name of up to {_LONGEST_NAME} printable characters")
    return str(name)


def _require(is_fine: Any, what: str) -> None:
    if not is_fine:
        raise ApiError(400, what, code="invalid_value")
