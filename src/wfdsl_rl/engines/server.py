"""The reward server as an ASGI application: `/v1/score` scores completions, with one run for each sample id.

A sample that is being scored is shared by the requests that ask for it; one that was scored is answered from memory or,
after a restart, from the journal. A run that has begun is finished although its client has left, since the client will
ask again; one that only waits for its turn is dropped.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from wfdsl.experiment import ServeSettings
from wfdsl.interpreter.events import Listener
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.server.api_errors import NO_RETRY, ApiError, shutting_down, wrong_value
from wfdsl.server.endpoints import ClientLeft, Endpoints, read_body, while_connected
from wfdsl.server.keys import ApiKeys, Caller, KeyUsage
from wfdsl.server.listening import FINISHED
from wfdsl.server.live_runs import LiveRuns
from wfdsl.server.metrics import Metrics
from wfdsl.server.request_body import RequestObject, json_object, validated
from wfdsl_rl.engines.client import Result
from wfdsl_rl.reward import Reward
from wfdsl_rl.scoring import Rollout

_MOST_SAMPLES: Final = 4096
"""Samples of one request. Our choice: their results come together, and hold the memory of the server until then."""
_REMEMBERED: Final = 1024
"""Results that are kept in memory for clients that ask again; the journal has all of them. Our choice."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("printable", "must have printable characters only")
    return text


class _Query(RequestObject):
    run: Annotated[str, Field(max_length=200), AfterValidator(_printable)] = ""
    """Is put before all sample ids."""


class _Sample(RequestObject):
    task: str
    completion: str
    sample_id: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)] | None = None
    previous: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    """The subtask and the response of the round before."""
    shown: list[int] | None = None
    true: list[int] | None = None


class _Samples(RequestObject):
    samples: Annotated[list[_Sample], Field(max_length=_MOST_SAMPLES)]


def build_app(
    reward: Reward, settings: ServeSettings, *, keys: ApiKeys | None, parallel: int, log: Callable[[str], None]
) -> ASGIApp:
    """The server of a reward that has a journal and a budget.

    Args:
        reward: What scores.
        settings: What the server allows.
        keys: Without them, all of this machine are answered.
        parallel: The most workflows in flight.
        log: Gets a line for each request, without texts.
    """
    server = _Server(reward, settings, keys, parallel, log)
    return server.app([Route("/v1/score", server.score, methods=["POST"])], server.lifespan)


class _Server(Endpoints):
    def __init__(
        self, reward: Reward, settings: ServeSettings, keys: ApiKeys | None, parallel: int, log: Callable[[str], None]
    ) -> None:
        self._journal: Journal = reward.options["journal"]
        super().__init__(settings, keys, self._journal, Metrics(), log)
        self._reward = reward
        self._usage = KeyUsage(self._journal, within=reward.options["budget"])
        self._workflows = ConcurrencyLimiter(parallel)
        self._live = LiveRuns()
        self._begun: dict[str, asyncio.Task[Any] | None] = {}
        """Runs that do not wait for their turn any more."""
        self._recent: dict[str, tuple[str, Result]] = {}
        """The last results, the oldest first, each with the digest of its sample."""

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[Mapping[str, Any]]:  # noqa: ARG002  (Starlette passes it)
        """Keep the workers' clients up while the server runs, and end all runs before they close."""
        async with self._reward.pool.open():
            self.is_ready = True
            try:
                yield {FINISHED: self._finished}
            finally:
                self.is_ready = False
                await self._live.end()

    async def score(self, request: Request) -> Response:
        """Score one sample or several.

        Raises:
            ApiError: the request cannot be allowed or read, a sample cannot be scored, or the server ends.
            ClientDisconnect: the client has left.
        """
        caller = await self._usage.allowed(self.caller(request), also_spent=True)  # what was paid for is answered
        try:
            with self.place():
                body = await read_body(request, self.settings.max_body_bytes, self.settings.receive_s)
                run, fields = validated(_Query, dict(request.query_params)).run, json_object(body)
                several = "samples" in fields
                samples = validated(_Samples, fields).samples if several else [validated(_Sample, fields)]
                seen = Counter[str]()
                rollouts = [self._rollout(sample, run, caller, seen) for sample in samples]
                results = await while_connected(request.receive, self._all(rollouts))
        except ClientLeft:
            raise ClientDisconnect from None
        except asyncio.CancelledError:  # the time that requests have at the server's end is over
            raise shutting_down() from None
        return JSONResponse({"results": results} if several else results[0])

    def _rollout(self, sample: _Sample, run: str, caller: Caller, seen: Counter[str]) -> Rollout:
        """What is scored of a sample; without an id, its place among equal ones in the request tells it apart."""
        reward, shown, true = self._reward, sample.shown or [], sample.true or []
        if sample.task not in reward.tasks:
            what = f"there is no task {sample.task!r}; the server has {len(reward.tasks)} others"
            raise ApiError(404, what, code="unknown_task", param="task")
        if len(shown) != len(true) or not {*true} <= {*reward.pool.indices}:
            what = "shown and true must be lists of the same length, true with indices of the pool"
            raise wrong_value("true", what)
        asked = [run, sample.task, sample.completion, sample.previous, sample.shown, sample.true]
        digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        name = sample.sample_id
        if name is None:
            name = f"{digest[:32]}-{seen[digest]}"
            seen[digest] += 1
        origin = {"task": sample.task, "sample": digest, **({"key": caller.name} if caller.name else {})}
        return reward.rollout(
            sample.model_dump(exclude_none=True),
            sample.completion,
            sample_id=f"{run}/{name}" if run else name,
            options={"origin": origin, "budget": caller.account},
        )

    async def _all(self, rollouts: Sequence[Rollout]) -> list[Result]:
        """The results of rollouts, in order; of an error, once the others have been scored."""
        found = await asyncio.gather(*map(self._one, rollouts), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return [each for each in found if isinstance(each, dict)]

    async def _one(self, rollout: Rollout) -> Result:
        name, digest = rollout.sample_id, rollout.options["origin"]["sample"]
        if (known := self._recent.get(name)) is not None:
            _require_same(name, digest, known[0])
            return known[1]

        def linger_s() -> float | None:
            return None if name in self._begun else 0.0

        work, observe = partial(self._scored, rollout), partial(self.metrics.event, "reward")
        async with self._live.waiting(name, work, observe, linger_s=linger_s, about=digest) as live:
            _require_same(name, digest, live.about)
            return await live.result()

    async def _scored(self, rollout: Rollout, on_event: Listener) -> Result:
        name, digest = rollout.sample_id, rollout.options["origin"]["sample"]
        if (origin := await self._journal.origin(name)) is not None:
            _require_same(name, digest, origin.get("sample", ""))
        await self._workflows.acquire()
        self._begun[name], began = asyncio.current_task(), time.monotonic()
        try:
            scored = await self._reward.score_one(replace(rollout, options={**rollout.options, "on_event": on_event}))
        finally:
            del self._begun[name]
            self._workflows.release()
        seconds = round(time.monotonic() - began, 3)
        result = {"sample_id": name, "task": rollout.task.id, **scored.to_dict(), "seconds": seconds}
        if scored.has_score:
            self._recent[name] = (digest, result)
            while len(self._recent) > _REMEMBERED:
                del self._recent[next(iter(self._recent))]
        return result

    async def _finished(self) -> None:
        """Wait until no run that has begun is in progress, also those whose clients have left."""
        while self._begun:
            await asyncio.wait(filter(None, self._begun.values()))


def _require_same(name: str, digest: str, known: str) -> None:
    """Refuse an id that was used for another sample."""
    if digest != known:
        what = f"the sample id {name!r} was used for another completion; give each completion an id of its own"
        raise ApiError(422, what, code="sample_id_reused", param="sample_id", headers=NO_RETRY)
