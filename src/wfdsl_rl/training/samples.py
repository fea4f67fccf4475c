"""Samples: scored completions, the files that keep them, and the statistics per iteration read back from the files.

A file per step, so that a step repeated after a kill writes the same file again. The statistics are those of the
figures of arXiv 2512.04388: reward and accuracy (figure 3), steps per kind of question (figure 8), worker share
(figure 10).
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wfdsl.evaluation.signatures import Case, signatures_of
from wfdsl.evaluation.workflow_statistics import asked_steps, entropy_bits
from wfdsl.files import write_whole
from wfdsl.graph import graph_of
from wfdsl.language.workflow import Workflow
from wfdsl_rl.scoring import Sample, right_share


class SampleFiles:
    """Writes each batch to a file: `step-`, `eval-`, or `first-` for first rounds, and the step, `.jsonl.gz`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: Path | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, samples: Sequence[Sample]) -> None:
        """Write a batch."""
        first = samples[0]
        name = "step" if first.row["split"] == "train" else str(first.row["split"])
        path = self._folder / f"{name}-{first.step:06d}.jsonl.gz"
        lines = "".join(json.dumps(sample.to_dict(), ensure_ascii=False) + "\n" for sample in samples)
        packed = gzip.compress(lines.encode(errors="replace"), compresslevel=1, mtime=0)
        if path == self._open:  # an evaluation has several batches
            with path.open("ab") as file:
                file.write(packed)
        else:
            self._open = path
            write_whole(path, packed)


@dataclass(frozen=True, slots=True)
class Iteration:
    """Statistics of one batch."""

    step: int
    count: int
    reward: float | None
    """Mean over the completions that have one."""
    valid: float
    accuracy: float | None
    """Share of right answers among the graded ones."""
    by_round: Mapping[int, float]
    """The accuracy of rounds 1 and 2; only the recursion stage has both."""
    steps: Mapping[str, float]
    """Mean number of steps of valid workflows, by kind of question."""
    choices: Mapping[str, Mapping[int, int]]
    """Calls by kind of question and worker index; dead steps are not counted."""
    topologies: Mapping[str, int]
    """Valid workflows by topology class."""
    constant_groups: float
    """Share of the questions whose completions all have the same reward, so that nothing is learned from them."""
    workflows: tuple[Workflow, ...] = field(repr=False)
    """The valid workflows, with the pool's worker indices."""
    cases: tuple[Case, ...] = field(repr=False)
    """Every completion, for the signatures of failure."""

    @property
    def workers(self) -> Mapping[int, int]:
        """Calls by worker index."""
        return sum((Counter(each) for each in self.choices.values()), Counter[int]())

    @property
    def mean_steps(self) -> float | None:
        """Steps of a valid workflow; None without any."""
        return _mean(len(workflow) for workflow in self.workflows)

    def share(self, worker: int) -> float:
        """A worker's share of the calls."""
        return self.workers.get(worker, 0) / max(sum(self.workers.values()), 1)

    def metrics(self) -> dict[str, float]:
        """What is logged: constant groups, and by kind of question each worker's share and the entropy of the choice.

        TRL's own count of constant groups is 0 where rewards are scaled by batch.
        """
        signs = signatures_of(self.cases)
        found = {"constant_groups": self.constant_groups, "choice_entropy": entropy_bits(self.workers)}
        found |= {"worker_mismatch": signs.mismatch}
        found |= {} if signs.unchanged is None else {"rounds_unchanged": signs.unchanged}
        for kind, calls in self.choices.items():
            found[f"choice_entropy/{kind}"] = entropy_bits(calls)
            found |= {f"share/{kind}/{worker}": calls[worker] / sum(calls.values()) for worker in sorted(calls)}
        return found


class Curve:
    """The iterations of a stage while it runs; each file is read once."""

    def __init__(self, samples: Path, *, name: str = "step") -> None:
        self._samples = samples
        self._name = name
        self._found: dict[int, Iteration] = {}
        self._known: dict[Workflow, Workflow] = {}

    def all(self) -> list[Iteration]:
        """The iterations, in order."""
        return self.until(sys.maxsize)

    def until(self, step: int) -> list[Iteration]:
        """The iterations before a step, in order; an interrupted training repeats the later ones."""
        for path in self._samples.glob(f"{self._name}-*.jsonl.gz"):
            number = int(path.name.removesuffix(".jsonl.gz").rpartition("-")[2])
            if number < step and number not in self._found:
                batch = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
                self._found[number] = iteration_of(batch, self._known)
        return [self._found[number] for number in sorted(self._found)]


def iteration_of(batch: Sequence[Mapping[str, Any]], known: dict[Workflow, Workflow] | None = None) -> Iteration:
    """Statistics of a batch of samples as plain values; `known` keeps equal workflows once."""
    seen = {} if known is None else known
    found = [(each, Workflow.from_lists(**each["workflow"])) for each in batch if each["workflow"] is not None]
    written = [(each["kind"], seen.setdefault(workflow, workflow)) for each, workflow in found]
    steps: dict[str, list[int]] = {}
    choices: dict[str, Counter[int]] = {}
    for kind, workflow in written:
        steps.setdefault(kind, []).append(len(workflow))
        choices.setdefault(kind, Counter()).update(int(workflow[step].worker) for step in asked_steps(workflow))
    rounds = {number: _accuracy([each for each in batch if each["round"] == number]) for number in (1, 2)}
    groups: dict[int, set[float | None]] = {}
    for each in batch:
        groups.setdefault(each["row"], set()).add(each["reward"])
    return Iteration(
        batch[0]["step"],
        len(batch),
        _mean(each["reward"] for each in batch if each["reward"] is not None),
        1 - sum(each["outcome"] == "invalid" for each in batch) / len(batch),
        _accuracy(batch),
        {number: accuracy for number, accuracy in rounds.items() if accuracy is not None},
        {kind: sum(lengths) / len(lengths) for kind, lengths in sorted(steps.items())},
        {kind: choices[kind] for kind in sorted(choices)},
        Counter(graph_of(workflow).topology for _, workflow in written),
        sum(len(rewards - {None}) < 2 for rewards in groups.values()) / len(groups),
        tuple(workflow for _, workflow in written),
        tuple(map(_case_of, batch)),
    )


def _case_of(sample: Mapping[str, Any]) -> Case:
    lists, before = sample["workflow"], sample["previous"]
    revised = before is not None and lists is not None and not sample["kept"]
    return Case(
        kind=sample["kind"],
        workflow=None if lists is None else Workflow.from_lists(**lists),
        right=right_share(sample["outcomes"]),
        completions=1,
        invalid=int(sample["outcome"] == "invalid"),
        later=int(revised),
        unchanged=int(revised and sample["answer"] == before[1]),
    )


def latency_of(samples: Sequence[Sample]) -> dict[str, float]:
    """How long the calls of a batch took, in seconds, and which worker is the slowest; nothing without calls."""
    calls: dict[int, list[float]] = {}
    for step in (step for sample in samples for run in sample.runs for step in run.steps):
        if step.seconds is not None and not step.replayed:
            calls.setdefault(step.worker, []).append(step.seconds)
    if not calls:
        return {}
    every = sorted(seconds for own in calls.values() for seconds in own)
    slowest = max(calls, key=lambda worker: sum(calls[worker]) / len(calls[worker]))
    return {
        "latency_p50_s": every[len(every) // 2],
        "latency_p95_s": every[len(every) * 95 // 100],
        "slowest_worker": float(slowest),
        "slowest_worker_s": sum(calls[slowest]) / len(calls[slowest]),
    }


def _accuracy(batch: Sequence[Mapping[str, Any]]) -> float | None:
    """Share of right answers among the graded ones; a completion counts once, however often it was run."""
    shares = [right_share(each["outcomes"]) for each in batch]
    return _mean(share for share in shares if share is not None)


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None
