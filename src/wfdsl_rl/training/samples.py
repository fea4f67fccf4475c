"""Samples as files, the figures of an iteration, and warnings about metrics, workflows and answers.

The figures are those of arXiv 2512.04388: reward and accuracy (figure 3), worker share (figure 10).
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from wfdsl.evaluation.workflow_statistics import Case, asked_steps, entropy_bits, signatures_of
from wfdsl.files import write_whole
from wfdsl_rl.scoring import CUT, Sample, right_share


class SampleFiles:
    """Writes each batch to a file: `step-` or `eval-`, and the step, `.jsonl.gz`.

    A file for each step, so that a step that is repeated after a kill writes the same file again.
    """

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


def read_samples(path: Path) -> list[dict[str, Any]]:
    """The samples of a file, as `Sample.to_dict` has them."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@dataclass(frozen=True, slots=True)
class Iteration:
    """Figures of one batch."""

    step: int
    valid: float
    choices: Mapping[str, Mapping[int, int]]
    """Calls by kind of question and worker index; dead steps are not counted."""
    rewards: Mapping[str, float]
    """The mean reward by kind of question."""
    constant_groups: float
    """Share of the questions whose completions all have the same reward, so that nothing is learned from them."""
    cases: tuple[Case, ...] = ()
    """Every completion, for the signatures of failure."""

    @property
    def workers(self) -> Mapping[int, int]:
        """Calls by worker index."""
        return sum((Counter(each) for each in self.choices.values()), Counter[int]())

    def share(self, worker: int) -> float:
        """A worker's share of the calls."""
        return self.workers.get(worker, 0) / max(sum(self.workers.values()), 1)

    def metrics(self) -> dict[str, float]:
        """What is logged: constant groups, and by kind of question the reward, each worker's share and the entropy.

        TRL's own count of constant groups is 0 where rewards are scaled by batch.
        """
        found = {"constant_groups": self.constant_groups, "choice_entropy": entropy_bits(self.workers)}
        signs = signatures_of(self.cases)
        found |= {"worker_mismatch": signs.mismatch}
        found |= {} if signs.unchanged is None else {"rounds_unchanged": signs.unchanged}
        found |= {f"reward/{kind}": reward for kind, reward in self.rewards.items()}
        for kind, calls in self.choices.items():
            found[f"choice_entropy/{kind}"] = entropy_bits(calls)
            found |= {f"share/{kind}/{worker}": calls[worker] / sum(calls.values()) for worker in sorted(calls)}
        return found


def iteration_of(samples: Sequence[Sample]) -> Iteration:
    """Figures of a batch. A kind of question is its domain, where the task says one."""
    choices: dict[str, Counter[int]] = {}
    rewards: dict[str, list[float]] = {}
    groups: dict[int, set[float]] = {}
    for each in samples:
        kind = _kind_of(each)
        workflow, own = each.scored.workflow, groups.setdefault(each.row["row"], set())
        if workflow is not None:
            choices.setdefault(kind, Counter()).update(int(workflow[step].worker) for step in asked_steps(workflow))
        if each.reward is not None:
            own.add(each.reward)
            rewards.setdefault(kind, []).append(each.reward)
    return Iteration(
        samples[0].step,
        1 - sum(each.scored.outcome == "invalid" for each in samples) / len(samples),
        {kind: choices[kind] for kind in sorted(choices)},
        {kind: fmean(rewards[kind]) for kind in sorted(rewards)},
        sum(len(own) < 2 for own in groups.values()) / len(groups),
        tuple(map(_case_of, samples)),
    )


def _case_of(sample: Sample) -> Case:
    scored, before = sample.scored, sample.row.get("previous")
    answer = None if before is None or scored.kept or scored.run is None else scored.run.answer
    return Case(
        kind=_kind_of(sample),
        workflow=scored.workflow,
        right=right_share(each.outcome for each in scored.executions),
        completions=1,
        invalid=int(scored.outcome == "invalid"),
        later=int(answer is not None),
        unchanged=int(before is not None and answer == before[1]),
    )


def _kind_of(sample: Sample) -> str:
    """Its domain, where the task says one."""
    return str(sample.row.get("domain") or sample.row.get("kind", ""))


def latency_of(samples: Sequence[Sample]) -> dict[str, float]:
    """How long the calls of a batch took, in seconds, and which worker is the slowest; nothing without calls."""
    calls: dict[int, list[float]] = {}
    for step in (step for sample in samples for run in sample.scored.runs for step in run.steps):
        if step.seconds is not None and not step.replayed:
            calls.setdefault(step.worker, []).append(step.seconds)
    if not calls:
        return {}
    every = sorted(seconds for own in calls.values() for seconds in own)
    slowest = max(calls, key=lambda worker: fmean(calls[worker]))
    return {
        "latency_p50_s": every[len(every) // 2],
        "latency_p95_s": every[len(every) * 95 // 100],
        "slowest_worker": float(slowest),
        "slowest_worker_s": fmean(calls[slowest]),
    }


_PATIENCE: Final = 10
"""Consecutive iterations before a warning is given."""
_REASONS: Final = 5
"""How many reasons for completions without a score are printed."""
_CONSTANT: Final = 0.8
"""The share of groups with equal rewards above which next to nothing is learned. Our choice, as all limits here."""
_WINDOW: Final = 3
"""Iterations over which a worker's share is averaged, to look for a collapse."""
_COLLAPSED: Final = 0.9
"""The share of one worker in a collapse."""
_SPREAD: Final = 0.75
"""The highest share of that worker before it."""


class HealthChecks:
    """A listener that returns the figures of each batch. It warns once about what was wrong for several iterations in a
    row, about a collapse at once, and says why completions have no score."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._seen: dict[str, int] = {}
        self._entry: Mapping[str, Any] = {}
        self._told: set[str] = set()
        self._iterations: list[Iteration] = []
        self._collapsed = False

    def on_metrics(self, entry: Mapping[str, Any]) -> None:
        """Remember a log entry; it is checked with the next batch."""
        if "reward" in entry:
            self._entry = entry

    def __call__(self, samples: Sequence[Sample]) -> dict[str, float]:
        """Check a batch; its figures."""
        self._report_unscored(samples)
        iteration = iteration_of(samples)
        if samples[0].row["split"] == "train":
            self._check(samples, iteration)
        return {**iteration.metrics(), **latency_of(samples)}

    def _check(self, samples: Sequence[Sample], iteration: Iteration) -> None:
        self._iterations.append(iteration)
        if not self._collapsed and (warning := collapse_of(self._iterations)) is not None:
            self._collapsed = True
            self._say(f"warning: step {iteration.step}: {warning}")
        found = warnings_for(self._entry, samples, iteration)
        if len(self._iterations) >= _PATIENCE:
            last = (case for each in self._iterations[-_PATIENCE:] for case in each.cases)
            signs = signatures_of(last).warnings
            found |= {code: signs[code] for code in ("mismatch", "loops") if code in signs}
        self._seen = {code: self._seen.get(code, 0) + 1 for code in found}
        for code, count in self._seen.items():
            if count == _PATIENCE:
                self._say(f"warning: for {count} iterations: {found[code]}")

    def _report_unscored(self, samples: Sequence[Sample]) -> None:
        """Print each reason for completions without a score once, up to a limit."""
        unscored = [sample for sample in samples if not sample.scored.has_score]
        for sample in unscored:
            reason = sample.scored.problems[0]
            if reason not in self._told and len(self._told) < _REASONS:
                self._told.add(reason)
                self._say(
                    f"warning: step {sample.step}: {len(unscored)} of {len(samples)} completions have no score and "
                    f"are left out, such as: {reason}"
                )


def collapse_of(iterations: Sequence[Iteration]) -> str | None:
    """The warning that nearly all calls of the last iterations ask one worker, and did not before; None if not so."""
    if len(iterations) <= _WINDOW:
        return None
    last, calls = iterations[-_WINDOW:], iterations[-1].workers
    worker = max(calls, key=calls.__getitem__, default=-1)
    now = fmean(each.share(worker) for each in last)
    if now < _COLLAPSED:
        return None
    before = min(
        fmean(each.share(worker) for each in iterations[at : at + _WINDOW]) for at in range(len(iterations) - _WINDOW)
    )
    if before > _SPREAD:
        return None
    return (
        f"nearly all steps ask worker {worker} ({now:.0%}, {before:.0%} before), whatever the question: lower the "
        "learning rate, ask more questions per step of equal numbers of each kind, or raise beta"
    )


def warnings_for(entry: Mapping[str, Any], samples: Sequence[Sample], iteration: Iteration) -> dict[str, str]:
    """The warnings of one iteration that are given once they last, by what they are about.

    Args:
        entry: The latest log entry; missing metrics are absent or None.
        samples: The iteration's completions.
        iteration: Their statistics.
    """
    entropy, found = entry.get("entropy"), {}
    cut = sum(CUT in sample.scored.problems for sample in samples)
    unscored = sum(not sample.scored.has_score for sample in samples)
    if iteration.constant_groups > _CONSTANT:
        found["constant-groups"] = (
            "most groups have equal rewards, so nothing is learned from them; use harder or easier questions"
        )
    if entropy is not None and entropy < 0.01:
        found["low-entropy"] = (
            "the entropy is nearly 0: the model always writes the same; raise beta or lower the learning rate"
        )
    if cut > len(samples) / 10:
        found["cut"] = (
            "more than a tenth of the completions are cut: raise max_completion_length, or show shorter ones in SFT"
        )
    if iteration.valid < 0.5:
        found["few-valid"] = (
            "fewer than half of the completions are valid: increase the SFT steps, or lower the learning rate"
        )
    if unscored > len(samples) / 4:
        found["no-score"] = "more than a quarter of the completions have no score: look at the workers and the graders"
    return found
