"""The summary of an evaluation: for each policy its accuracy by benchmark, and what a sample takes on average.

Benchmarks are the tasks' sources; where all tasks have one source, they are its domains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal, TypeAlias

from wfdsl.evaluation.statistics import Accuracy, Difference, Mean, accuracy_of, difference_of, mean_of
from wfdsl.evaluation.trials import Trial
from wfdsl.interpreter.record import total_usd

FORMAT = "wfdsl-evaluation-summary"
VERSION = 2

Split: TypeAlias = Literal["source", "domain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySummary:
    """One policy. What a sample takes counts every result, judged or not; failed runs cost too."""

    policy: str
    overall: Accuracy
    """Over all results."""
    benchmarks: Mapping[str, Accuracy]
    average: Mean | None
    """The unweighted mean over benchmarks; None if nothing was judged in one of them."""
    tokens: float
    """Input and output tokens per sample, as everything below."""
    list_usd: float | None
    """US dollars by the price list; None if a price is not known."""
    paid_usd: float | None
    latency_s: float | None
    """Over samples of which nothing came from the journal; None if there are none."""
    calls: float
    completions: float
    steps: float
    workers: Mapping[str, int]
    """Answers by worker, over all samples."""

    def cost(self, *, in_usd: bool) -> float:
        """Dollars or tokens per sample."""
        return (self.list_usd or 0.0) if in_usd else self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A policy against another one, over their common tasks."""

    first: str
    second: str
    difference: Difference | None
    """None if they have no judged task in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All policies of an evaluation."""

    split: Split
    """What benchmarks are."""
    benchmarks: tuple[str, ...]
    policies: tuple[PolicySummary, ...]
    comparisons: tuple[Comparison, ...]
    """Each policy against the first one."""
    simulated: bool
    """Whether workers were simulated."""

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain values, with its format and version."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}


def cost_in_usd(policies: Iterable[PolicySummary]) -> bool:
    """Whether costs are dollars: all prices are known, and not all are zero. Else they are tokens."""
    return bool(total_usd(each.list_usd for each in policies))


def summarise(trials: Iterable[Trial], *, policies: Sequence[str], simulated: bool = False) -> Summary:
    """Sum up the results of an evaluation; `policies` is the order in which they are listed."""
    everything = list(trials)
    split = split_of(everything)
    names = tuple(dict.fromkeys(benchmark_of(trial, split) for trial in everything))
    by_policy = {policy: [trial for trial in everything if trial.policy == policy] for policy in policies}
    present = {policy: own for policy, own in by_policy.items() if own}
    reference = next(iter(present), "")
    return Summary(
        split=split,
        benchmarks=names,
        policies=tuple(summary_of(policy, own, names, split) for policy, own in present.items()),
        comparisons=tuple(
            Comparison(first=policy, second=reference, difference=difference_of(own, present[reference]))
            for policy, own in present.items()
            if policy != reference
        ),
        simulated=simulated,
    )


def split_of(trials: Iterable[Trial]) -> Split:
    """What the benchmarks of some results are: sources if there are several, else domains."""
    return "source" if len({trial.source for trial in trials}) > 1 else "domain"


def benchmark_of(trial: Trial, split: Split) -> str:
    """The benchmark that a result counts to."""
    return trial.domain if split == "domain" else trial.source or "no source"


def summary_of(policy: str, trials: Sequence[Trial], benchmarks: Sequence[str], split: Split) -> PolicySummary:
    """Sum up one policy."""
    accuracies = {
        name: accuracy_of(trial for trial in trials if benchmark_of(trial, split) == name) for name in benchmarks
    }
    known = [Mean(each.value, each.error) for each in accuracies.values() if each.value is not None]
    workers = sum((Counter(trial.workers) for trial in trials), Counter[str]())
    fresh = [trial.latency_s for trial in trials if trial.latency_s is not None]
    list_usd, paid_usd = (total_usd(costs) for costs in zip(*((t.list_usd, t.paid_usd) for t in trials), strict=True))
    return PolicySummary(
        policy=policy,
        overall=accuracy_of(trials),
        benchmarks=accuracies,
        average=mean_of(known) if len(known) == len(accuracies) else None,
        tokens=fmean(trial.tokens for trial in trials),
        list_usd=None if list_usd is None else list_usd / len(trials),
        paid_usd=None if paid_usd is None else paid_usd / len(trials),
        latency_s=fmean(fresh) if fresh else None,
        calls=fmean(trial.calls for trial in trials),
        completions=fmean(trial.completions for trial in trials),
        steps=fmean(trial.steps for trial in trials),
        workers=dict(sorted(workers.items(), key=lambda pair: (-pair[1], pair[0]))),
    )
