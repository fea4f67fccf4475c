"""The samples that a stage of a training kept: read batch by batch, filtered, and summed up by kind of question."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from wfdsl.errors import WfdslError
from wfdsl.evaluation.statistics import Mean, clustered_mean
from wfdsl.evaluation.workflow_statistics import asked_steps
from wfdsl.language.workflow import Workflow
from wfdsl_rl.scoring import NO_SCORE, Outcome

OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)
SPLITS: Final[Mapping[str, str]] = {"step": "training", "eval": "held-out", "first": "first rounds"}
"""What files of samples are called, and what pages call their questions."""
_FILE: Final = re.compile(r"(step|eval|first)-([0-9]{1,12})\.jsonl\.gz")


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """The samples of one optimisation step, or of one evaluation."""

    step: int
    split: str
    path: Path

    @property
    def name(self) -> str:
        """Names it in addresses."""
        return self.path.name.partition(".")[0]


class Kept:
    """A sample as its file has it."""

    def __init__(self, batch: Batch, index: int, values: Mapping[str, Any]) -> None:
        self.batch = batch
        self.index = index
        """Its line in the file."""
        self._values = values

    @property
    def question(self) -> str:
        """What was asked; of trainings that did not keep it, the task's id."""
        return self._text("question") or f"task {self._text('task')}"

    @property
    def completion(self) -> str:
        """What the Conductor wrote."""
        return self._text("completion")

    @property
    def outcome(self) -> str:
        """Its outcome."""
        found = self._text("outcome")
        return found if found in OUTCOMES else "unknown"

    @property
    def kind(self) -> str:
        """The kind of its question, and the family if the task says one."""
        family = self._text("family")
        return f"{self._text('kind')}: {family}" if family else self._text("kind")

    @property
    def task(self) -> str:
        """The task's id."""
        return self._text("task")

    @property
    def answer(self) -> str:
        """The answer of its run."""
        return self._text("answer")

    @property
    def extracted(self) -> str:
        """What the grader took for the answer."""
        return self._text("extracted")

    @property
    def problems(self) -> list[str]:
        """Codes of its diagnostics, or why it has no score."""
        return self._texts("problems")

    @property
    def runs(self) -> list[str]:
        """The ids of its runs."""
        return self._texts("runs")

    @property
    def replies(self) -> list[str]:
        """The reply of each step."""
        return self._texts("replies")

    @property
    def reward(self) -> float | None:
        """Its reward."""
        return self.number("reward")

    @property
    def round(self) -> int:
        """1, or 2 for a second round."""
        return int(self.number("round") or 1)

    @property
    def right(self) -> float | None:
        """The share of its runs that were right, of those that were graded."""
        found = [each for each in self._texts("outcomes") if each not in NO_SCORE]
        return found.count("right") / len(found) if found else None

    @property
    def workflow(self) -> Workflow | None:
        """Its workflow; None if it has none."""
        lists = self._values.get("workflow")
        if not isinstance(lists, dict):
            return None
        try:
            return Workflow.from_lists(**lists)
        except (TypeError, ValueError, KeyError, AttributeError, WfdslError):
            return None

    def number(self, name: str) -> float | None:
        """A number, such as `tokens` or `usd`; None if there is none."""
        return finite(self._values.get(name))

    def _text(self, name: str) -> str:
        value = self._values.get(name)
        return value if isinstance(value, str) else ""

    def _texts(self, name: str) -> list[str]:
        value = self._values.get(name)
        return ["" if each is None else str(each) for each in value] if isinstance(value, list) else []


def finite(value: object) -> float | None:
    """A value as a number; None: it is not a finite one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond all floats
        return None


class Head(NamedTuple):
    """What samples are filtered by."""

    outcome: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which samples are listed; what is empty does not filter."""

    outcome: str = ""
    kind: str = ""
    questions: str = ""
    """A key of `SPLITS`."""
    iteration: int | None = None

    def has(self, batch: Batch) -> bool:
        """Whether samples of a batch are wanted."""
        return self.questions in ("", batch.split) and self.iteration in (None, batch.step)

    def fits(self, head: Head) -> bool:
        """Whether a sample is wanted."""
        return self.outcome in ("", head.outcome) and self.kind in ("", head.kind)


class SampleFolder:
    """The samples of a stage. What they are filtered by is kept in memory; each file is read again once it changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._heads: dict[Path, tuple[tuple[int, int], list[Head]]] = {}

    def batches(self) -> list[Batch]:
        """All batches, the latest first."""
        try:
            with os.scandir(self._path) as entries:
                names = [each.name for each in entries]
        except OSError:
            return []
        found = [match for match in map(_FILE.fullmatch, names) if match]
        return sorted((Batch(int(each[2]), each[1], self._path / each[0]) for each in found), reverse=True)

    def batch(self, name: str) -> Batch | None:
        """The batch of this name."""
        return next((batch for batch in self.batches() if batch.name == name), None)

    def read(self, batch: Batch) -> list[Kept]:
        """The samples of a batch, as many as are whole: an evaluation may still be written."""
        lines = _unpacked(batch.path).split(b"\n")[:-1]
        found = [(index, _object(line)) for index, line in enumerate(lines)]
        kept = [Kept(batch, index, values) for index, values in found if values is not None]
        self._keep(batch, kept)
        return kept

    def heads(self, batch: Batch) -> list[Head]:
        """What the samples of a batch are filtered by."""
        with self._lock:
            known = self._heads.get(batch.path)
        if known is None or known[0] != _version(batch.path):
            return [_head(each) for each in self.read(batch)]
        return known[1]

    def select(self, filters: Filters, after: tuple[str, int] | None, count: int) -> tuple[list[Kept], bool]:
        """The first samples that are wanted, after one of them; and whether there are more."""
        found: list[Kept] = []
        for batch, from_index in self._from(filters, after):
            fitting = {at for at, head in enumerate(self.heads(batch)) if filters.fits(head)}
            if not fitting:
                continue
            for at, kept in enumerate(self.read(batch)):
                if at not in fitting or kept.index < from_index:
                    continue
                if len(found) == count:
                    return found, True
                found.append(kept)
        return found, False

    def _from(self, filters: Filters, after: tuple[str, int] | None) -> Iterator[tuple[Batch, int]]:
        """The wanted batches from a sample on, each with the first line that is wanted."""
        batches = self.batches()
        names = [batch.name for batch in batches]
        begin = names.index(after[0]) if after is not None and after[0] in names else 0
        for at, batch in enumerate(batches[begin:]):
            if filters.has(batch):
                yield batch, after[1] + 1 if after is not None and at == 0 and batch.name == after[0] else 0

    def _keep(self, batch: Batch, kept: Iterable[Kept]) -> None:
        heads = [_head(each) for each in kept]
        with self._lock:
            self._heads[batch.path] = (_version(batch.path), heads)


def _head(kept: Kept) -> Head:
    return Head(sys.intern(kept.outcome), sys.intern(kept.kind))


def _version(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _unpacked(path: Path) -> bytes:
    """What a packed file holds, as far as it can be read; an interrupted training may have left half a file."""
    found = bytearray()
    try:
        left = path.read_bytes()
        while left:  # each batch of an evaluation is packed alone
            unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            found += unpacking.decompress(left)
            left = unpacking.unused_data
    except (OSError, zlib.error):
        return bytes(found)
    return bytes(found)


def _object(line: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """The samples of one kind of question. Means have standard errors by question."""

    kind: str
    count: int
    accuracy: Mean | None
    valid: Mean | None
    steps: Mean | None
    calls: Mapping[int, float]
    """The share of each worker among the calls, by its index."""


def by_kind(samples: Iterable[Kept]) -> list[KindRow]:
    """A row for each kind of question, and one for all of them if there are several."""
    groups: dict[str, list[Kept]] = {}
    for kept in samples:
        groups.setdefault(kept.kind, []).append(kept)
    rows = [_row(kind, group) for kind, group in sorted(groups.items())]
    everything = [kept for group in groups.values() for kept in group]
    return [*rows, _row("all", everything)] if len(rows) > 1 else rows


def _row(kind: str, samples: Sequence[Kept]) -> KindRow:
    accuracy: dict[str, list[float]] = {}
    valid: dict[str, list[float]] = {}
    steps: dict[str, list[float]] = {}
    calls = Counter[int]()
    for kept in samples:
        if kept.right is not None:
            accuracy.setdefault(kept.task, []).append(kept.right)
        valid.setdefault(kept.task, []).append(float(kept.outcome != "invalid"))
        workflow = kept.workflow
        if workflow is not None:
            steps.setdefault(kept.task, []).append(float(len(workflow)))
            calls.update(int(workflow[step].worker) for step in asked_steps(workflow))
    total = sum(calls.values())
    return KindRow(
        kind=kind,
        count=len(samples),
        accuracy=clustered_mean(accuracy.values()),
        valid=clustered_mean(valid.values()),
        steps=clustered_mean(steps.values()),
        calls={worker: count / total for worker, count in sorted(calls.items())},
    )
