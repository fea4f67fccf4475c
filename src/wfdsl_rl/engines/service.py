"""Scoring for many requests: one run for each sample id, however often and by however many clients it is asked for.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wfdsl.conductor.listing import WorkerListing
from wfdsl.errors import JournalFailure, UsageError
from wfdsl.interpreter.budget import BudgetTracker
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.interpreter.record import BudgetExhausted
from wfdsl.server.api_errors import NO_RETRY, ApiError, of_run, shown
from wfdsl.server.keys import Caller
from wfdsl.server.metrics import Metrics
from wfdsl.server.request_body import json_object
from wfdsl_rl.engines.client import Result
from wfdsl_rl.reward import Reward
from wfdsl_rl.scoring import Rollout, offer_of

_REMEMBERED: Final = 1024
"""Results that are kept in memory for clients that ask again; the journal has all of them. Our choice."""


class _Scoring:
    """A sample that is being scored."""

    def __init__(self, sample: Sample) -> None:
        self.digest = sample.digest
        self.waiting = 0
        self.begun = False
        self.task: asyncio.Task[Result]


class RewardService:
    """Scores samples, each once."""

    def __init__(
        self, reward: Reward, journal: Journal, budget: BudgetTracker, metrics: Metrics, *, parallel: int
    ) -> None:
        """`reward` keeps its calls in the journal and within the budget, and tells `metrics` its events.

        `parallel` is the most workflows in flight.
        """
        self.reward = reward
        self.workflows = ConcurrencyLimiter(parallel)
        self.metrics = metrics
        self.budget = budget
        self.journal = journal
        self._live: dict[str, _Scoring] = {}
        self._recent: dict[str, tuple[str, Result]] = {}

    async def score(self, samples: Sequence[Sample]) -> list[Result]:
        """The results of samples, in order.

        Raises:
            ApiError: one of them cannot be scored; the others have been.
        """
        found = await asyncio.gather(*(self._one(sample) for sample in samples), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return [each for each in found if isinstance(each, dict)]

    async def finished(self) -> None:
        """Wait until no run that has begun is in progress, also those whose clients have left."""
        while begun := [each.task for each in self._live.values() if each.begun]:
            await asyncio.wait(begun)

    async def end(self) -> None:
        """End all runs; what they have paid for is in the journal."""
        tasks = [each.task for each in self._live.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, sample: Sample) -> Result:
        known = self._recent.get(sample.id)
        if known is not None:
            _require_same(sample, known[0])
            return known[1]
        scoring = await self._joined(sample)
        scoring.waiting += 1
        try:
            await asyncio.wait([scoring.task])
        finally:
            scoring.waiting -= 1
            if not scoring.waiting and not scoring.begun:
                scoring.task.cancel()
        if scoring.task.cancelled():
            raise shutting_down()
        return scoring.task.result()

    async def _joined(self, sample: Sample) -> _Scoring:
        """The scoring of a sample, begun unless it is in progress."""
        while (scoring := self._live.get(sample.id)) is not None and scoring.task.cancelling():
            await asyncio.wait([scoring.task])
        if scoring is None:
            scoring = self._live[sample.id] = _Scoring(sample)
            scoring.task = asyncio.create_task(self._scored(sample, scoring))
            scoring.task.add_done_callback(lambda task: self._over(sample.id, task))
        _require_same(sample, scoring.digest)
        return scoring

    async def _scored(self, sample: Sample, scoring: _Scoring) -> Result:
        try:
            origin = await self.journal.origin(sample.id)
            if origin is not None:
                _require_same(sample, origin.get("sample", ""))
            await self.workflows.acquire()
            scoring.begun, began = True, time.monotonic()
            try:
                scored = await self.reward.score_one(sample.rollout)
            finally:
                self.workflows.release()
        except BudgetExhausted as error:
            raise of_run(error) from error
        except JournalFailure as error:
            raise ApiError(503, str(error), code="journal_failed", headers={"retry-after": "5"}) from error
        except UsageError as error:
            raise ApiError(500, str(error), code="run_refused", headers=NO_RETRY) from error
        seconds = round(time.monotonic() - began, 3)
        result = {"sample_id": sample.id, "task": sample.rollout.task.id, **scored.to_dict(), "seconds": seconds}
        if scored.has_score:
            self._recent[sample.id] = (sample.digest, result)
            while len(self._recent) > _REMEMBERED:
                del self._recent[next(iter(self._recent))]
        return result

    def _over(self, sample_id: str, task: asyncio.Task[Result]) -> None:
        self._live.pop(sample_id, None)
        if not task.cancelled():
            task.exception()  # without this, asyncio would complain about an error that no request waited for


def shutting_down() -> ApiError:
    """The error for a request that the server cannot answer before it ends."""
    return ApiError(503, "the server shuts down; ask again", code="shutting_down", headers={"retry-after": "5"})


def _require_same(sample: Sample, digest: str) -> None:
    """Refuse an id that was used for another sample."""
    if sample.digest != digest:
        raise ApiError(
            422,
            f"the sample id {sample.id!r} was used for another completion; give each completion an id of its own",
            code="sample_id_reused",
            param="sample_id",
            headers=NO_RETRY,
        )


MOST_SAMPLES: Final = 4096
"""Samples of one request. Our choice: their results come together, and hold the memory of the server until then."""
LONGEST_ID: Final = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion to be scored."""

    id: str
    """By which a repeated request is known; also the run's id."""
    rollout: Rollout

    def allowed(self, caller: Caller) -> Sample:
        """The same, charged to the key that it was sent with."""
        origin = {**self.rollout.origin, **({"key": caller.name} if caller.name else {})}
        return Sample(self.id, replace(self.rollout, budget=caller.account, origin=origin))

    @property
    def digest(self) -> str:
        """A hash of what is scored."""
        return self.rollout.origin["sample"]


def read_samples(reward: Reward, body: bytes, run: str) -> tuple[list[Sample], bool]:
    """The samples of a request, and whether it was a single one. `run` is put before their ids.

    Raises:
        ApiError: it is not of this form, or a task is not known.
    """
    asked = json_object(body)
    rows = asked.get("samples", [asked])
    if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
        raise _invalid("samples must be a list of objects", "samples")
    if len(rows) > MOST_SAMPLES:
        what = f"a request has at most {MOST_SAMPLES} samples (got {len(rows)}); send several requests"
        raise _invalid(what, "samples")
    seen = Counter[str]()
    return [_sample(reward, row, run, seen) for row in rows], "samples" not in asked


def _sample(reward: Reward, row: Mapping[str, Any], run: str, seen: Counter[str]) -> Sample:
    name, completion, previous = row.get("task"), row.get("completion"), row.get("previous")
    if not isinstance(name, str):
        raise _invalid(f"task must be the id of a task, a text (got {shown(name)})", "task")
    if name not in reward.tasks:
        what = f"there is no task {name!r}; the server has {len(reward.tasks)} others"
        raise ApiError(404, what, code="unknown_task", param="task")
    if not isinstance(completion, str):
        raise _invalid("completion must be a text", "completion")
    if previous is not None and not (isinstance(previous, list) and [*map(type, previous)] == [str, str]):
        raise _invalid("previous must be the subtask and the response of the round before", "previous")
    offer = _offer(reward, row)
    numbers = [row.get("shown"), row.get("true")]
    digest = hashlib.sha256(json.dumps([run, name, completion, previous, *numbers]).encode()).hexdigest()
    sample_id = row.get("sample_id")
    if sample_id is None:
        sample_id = f"{digest[:32]}-{seen[digest]}"
        seen[digest] += 1
    elif not isinstance(sample_id, str) or not 0 < len(sample_id) <= LONGEST_ID or not sample_id.isprintable():
        raise _invalid(f"sample_id must be 1 to {LONGEST_ID} printable characters", "sample_id")
    full = f"{run}/{sample_id}" if run else sample_id
    rollout = Rollout(
        completion=completion,
        task=reward.tasks[name],
        sample_id=full,
        offer=offer,
        previous=None if previous is None else (previous[0], previous[1]),
        executions=reward.executions,
        origin={"task": name, "sample": digest},
    )
    return Sample(full, rollout)


def _offer(reward: Reward, row: Mapping[str, Any]) -> WorkerListing | None:
    """The workers that the prompt listed; None: all of them."""
    lists = [row.get("shown"), row.get("true")]
    if lists == [None, None]:
        return None
    is_pair = all(isinstance(each, list) and {*map(type, each)} <= {int} for each in lists)
    if not is_pair or len(row["shown"]) != len(row["true"]) or not {*row["true"]} <= {*reward.pool.indices}:
        raise _invalid("shown and true must be lists of the same length, true with indices of the pool", "true")
    return offer_of(row, reward.pool)


def _invalid(message: str, param: str) -> ApiError:
    return ApiError(400, message, code="invalid_value", param=param)
