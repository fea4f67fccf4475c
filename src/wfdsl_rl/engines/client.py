"""A client of the reward server, for reward functions of training engines. It needs the core of this package only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from wfdsl.server_client import ServerClient
from wfdsl_rl.engines.results import Result


class RewardClient:
    """Has completions scored by a reward server; safe to share between threads and event loops.

    A request is repeated while the server cannot be reached. Samples with an id, and equal ones without, are paid for
    once however often they are sent.
    """

    def __init__(self, url: str, key: str | None = None, *, run: str = "", patience_s: float = 600.0) -> None:
        """`run` is put before all sample ids, so that experiments on one server share nothing.

        Raises:
            UsageError: the URL cannot be used.
        """
        self._client = ServerClient(url, key, patience_s=patience_s)
        self._path = f"/v1/score?run={quote(run, safe='')}" if run else "/v1/score"

    async def score(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        """The results of samples (`task`, `completion`, `sample_id`, ...), in order, as `result_of` has them.

        Raises:
            ServerRefused: the server refused them.
            ServerGone: it did not answer in time.
        """
        return _results(await self._client.ask("POST", self._path, {"samples": list(samples)}))

    def score_sync(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        """The same for a thread without an event loop.

        Raises:
            ServerRefused, ServerGone: as in `score`.
        """
        return _results(self._client.request("POST", self._path, {"samples": list(samples)}))

    def close(self) -> None:
        """End its threads and connections."""
        self._client.close()


def _results(answer: Any) -> list[Result]:
    found: list[Result] = answer["results"]
    return found
