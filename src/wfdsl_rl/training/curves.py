"""How a stage went, iteration by iteration: read back from the completions that it kept.

The figures of arXiv 2512.04388 that this follows: reward and accuracy against each worker alone (figure 3), steps per
kind of question (figure 8), worker share (figure 10).
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wfdsl.topology import topology
from wfdsl.tree import ALL
from wfdsl.workflow import Step, Workflow

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
    steps: Mapping[str, float]
    """Mean number of steps of valid workflows, by kind of question."""
    workers: Mapping[int, int]
    """Calls by the worker's ordinal in the pool."""
    topologies: Mapping[str, int]
    """Valid workflows by topology class."""
    workflows: tuple[Workflow, ...] = field(repr=False)
    """The valid workflows, in the pool's own numbering."""


def curve_of(samples: Path, kinds: Mapping[str, str], *, name: str = "step") -> list[Iteration]:
    """The iterations of a stage in order; `kinds` gives each task's kind, `name` is `step` or `eval`."""
    return [_iteration(_read(path), kinds) for path in sorted(samples.glob(f"{name}-*.jsonl.gz"))]


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


def _iteration(batch: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]) -> Iteration:
    written = [(each, workflow_of_lists(each["workflow"])) for each in batch if each["workflow"] is not None]
    steps: dict[str, list[int]] = {}
    for each, workflow in written:
        steps.setdefault(kinds[each["task"]], []).append(len(workflow))
    fates = Counter(each["fate"] for each in batch)
    return Iteration(
        batch[0]["step"],
        len(batch),
        _mean(each["reward"] for each in batch if each["reward"] is not None),
        1 - fates["invalid"] / len(batch),
        fates["right"] / judged if (judged := len(batch) - fates["missing"]) else None,
        {kind: sum(found) / len(found) for kind, found in sorted(steps.items())},
        Counter(int(step.worker) for _, workflow in written for step in workflow),
        Counter(topology(workflow) for _, workflow in written),
        tuple(workflow for _, workflow in written),
    )


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None
