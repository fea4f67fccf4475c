"""A client of the reward server, for reward functions of training engines. It needs the core of this package only."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote
from weakref import WeakKeyDictionary

from wfdsl.server_client import ServerClient, ServerRefused
from wfdsl_rl.engines.results import Result

_GATHERED_S: Final = 0.005
"""Seconds in which calls of `score` become one request. Our choice: a call of a worker takes longer."""
_MOST: Final = 16
"""Samples of a gathered request, after which another one is begun. Our choice: all of them wait for the slowest."""


class RewardClient:
    """Has completions scored by a reward server; safe to share between threads and event loops.

    A request is repeated while the server cannot be reached. Samples with an id, and equal ones without, are paid for
    once however often they are sent.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        run: str = "",
        patience_s: float = 600.0,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """`run` is put before all sample ids, so that experiments on one server share nothing. `say` takes a line for
        the user when the server does not answer.

        Raises:
            UsageError: the URL cannot be used.
        """
        self._gathered: WeakKeyDictionary[asyncio.AbstractEventLoop, _Request] = WeakKeyDictionary()
        self._client = ServerClient(url, key, patience_s=patience_s, say=say)
        self._path = f"/v1/score?run={quote(run, safe='')}" if run else "/v1/score"

    async def score(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        """The results of samples (`task`, `completion`, `sample_id`, ...), in order, as `result_of` has them.

        Calls of a few milliseconds share a request, since a request costs more than a sample.

        Raises:
            ServerRefused: the server refused them.
            ServerGone: it did not answer in time.
        """
        loop = asyncio.get_running_loop()
        request = self._gathered.get(loop)
        if request is None or len(request.samples) >= _MOST:
            request = self._gathered[loop] = _Request()
            request.answer = loop.create_task(self._send(request))
        places = request.add(samples)
        try:
            results = await asyncio.shield(request.answer)
        except ServerRefused:
            if request.calls == 1:
                raise
            results, places = await self._ask(samples), list(range(len(samples)))  # whose samples were refused?
        return [results[place] for place in places]

    async def _send(self, request: _Request) -> list[Result]:
        await asyncio.sleep(_GATHERED_S)
        loop = asyncio.get_running_loop()
        if self._gathered.get(loop) is request:
            del self._gathered[loop]
        return await self._ask(request.samples)

    async def _ask(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        return _results(await self._client.ask("POST", self._path, {"samples": list(samples)}))

    def score_sync(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        """The same for a thread without an event loop.

        Raises:
            ServerRefused, ServerGone: as in `score`.
        """
        return _results(self._client.request("POST", self._path, {"samples": list(samples)}))

    def close(self) -> None:
        """End its requests, threads and connections."""
        self._client.close()


class _Request:
    """Samples of several calls. Equal samples of different calls are one, as in requests of their own."""

    def __init__(self) -> None:
        self.samples: list[Mapping[str, Any]] = []
        self.calls = 0
        self.answer: asyncio.Task[list[Result]]
        self._places: dict[tuple[str, int], int] = {}

    def add(self, samples: Sequence[Mapping[str, Any]]) -> list[int]:
        """Where the results of a call's samples will be."""
        self.calls += 1
        seen, found = Counter[str](), []
        for sample in samples:
            text = json.dumps(sample, sort_keys=True)
            place = self._places.setdefault((text, seen[text]), len(self.samples))
            if place == len(self.samples):
                self.samples.append(sample)
            seen[text] += 1
            found.append(place)
        return found


def _results(answer: Any) -> list[Result]:
    found: list[Result] = answer["results"]
    return found
