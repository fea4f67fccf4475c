"""How a stage went, iteration by iteration: read back from the completions that it kept.

The figures of arXiv 2512.04388 that this follows: reward and accuracy against each worker alone (figure 3), steps per
kind of question (figure 8), worker share (figure 10).
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wfdsl.graph import graph_of
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.scoring import right_share
from wfdsl_rl.workflow_statistics import asked_steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Iteration:
    """What a batch of completions was like."""

    step: int
    count: int
    reward: float | None
    """Mean over the completions that have one."""
    valid: float
    accuracy: float | None
    """Share of right answers among those that have an outcome."""
    by_round: Mapping[int, float]
    """The same of each round, 1 and 2; of the stage of recursion only has both."""
    steps: Mapping[str, float]
    """Mean number of steps of valid workflows, by kind of question."""
    workers: Mapping[int, int]
    """Calls by the worker's ordinal in the pool: steps that cannot reach the answer are not run and not counted."""
    topologies: Mapping[str, int]
    """Valid workflows by topology class."""
    workflows: tuple[Workflow, ...] = field(repr=False)
    """The valid workflows, in the pool's own numbering."""


class Curve:
    """The iterations of a stage while it runs: each file of completions is read once."""

    def __init__(self, samples: Path, kinds: Mapping[str, str], *, name: str = "step") -> None:
        self._samples = samples
        self._kinds = kinds
        self._name = name
        self._found: dict[int, Iteration] = {}
        self._known: dict[Workflow, Workflow] = {}

    def until(self, step: int) -> list[Iteration]:
        """The iterations before a step, in order.

        What lies behind it was left by a training that was interrupted there, and will be written anew.
        """
        for path in self._samples.glob(f"{self._name}-*.jsonl.gz"):
            number = int(path.name.removesuffix(".jsonl.gz").rpartition("-")[2])
            if number < step and number not in self._found:
                self._found[number] = _iteration(_read(path), self._kinds, self._known)
        return [self._found[number] for number in sorted(self._found)]


def curve_of(samples: Path, kinds: Mapping[str, str], *, name: str = "step") -> list[Iteration]:
    """The iterations of a stage in order; `kinds` gives each task's kind, `name` is `step` or `eval`."""
    return Curve(samples, kinds, name=name).until(sys.maxsize)


def workflow_of_lists(lists: Mapping[str, Sequence[Any]]) -> Workflow:
    """A workflow from its three lists."""
    columns = (lists["model_id"], lists["subtasks"], lists["access_list"])
    return Workflow(
        tuple(
            Step(worker, subtask, ALL if access == ALL else tuple(access))
            for worker, subtask, access in zip(*columns, strict=True)
        )
    )


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def _iteration(
    batch: Sequence[Mapping[str, Any]], kinds: Mapping[str, str], known: dict[Workflow, Workflow]
) -> Iteration:
    """What a batch was like; `known` holds the workflows seen so far, so that equal ones are kept once."""
    found = [(each, workflow_of_lists(each["workflow"])) for each in batch if each["workflow"] is not None]
    written = [(each, known.setdefault(workflow, workflow)) for each, workflow in found]
    steps: dict[str, list[int]] = {}
    for each, workflow in written:
        steps.setdefault(kinds[each["task"]], []).append(len(workflow))
    rounds = {number: _accuracy([each for each in batch if each["round"] == number]) for number in (1, 2)}
    return Iteration(
        batch[0]["step"],
        len(batch),
        _mean(each["reward"] for each in batch if each["reward"] is not None),
        1 - sum(each["outcome"] == "invalid" for each in batch) / len(batch),
        _accuracy(batch),
        {number: accuracy for number, accuracy in rounds.items() if accuracy is not None},
        {kind: sum(lengths) / len(lengths) for kind, lengths in sorted(steps.items())},
        Counter(int(workflow[step].worker) for _, workflow in written for step in asked_steps(workflow)),
        Counter(graph_of(workflow).topology for _, workflow in written),
        tuple(workflow for _, workflow in written),
    )


def _accuracy(batch: Sequence[Mapping[str, Any]]) -> float | None:
    """Share of right answers among those that have an outcome; a completion counts once, however often it was run."""
    shares = [right_share(each["outcomes"]) for each in batch]
    return _mean(share for share in shares if share is not None)


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None
