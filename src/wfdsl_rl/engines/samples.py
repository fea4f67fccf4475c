"""Samples of a request: which task each is about, which completion is scored, and the id by which it is known again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from wfdsl.conductor.listing import WorkerListing
from wfdsl.server.api_errors import ApiError, shown
from wfdsl.server.keys import Caller
from wfdsl.server.request_body import json_object
from wfdsl_rl.reward import Reward
from wfdsl_rl.rows import offer_of
from wfdsl_rl.scoring import Rollout

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
