"""The summary of an evaluation: for each policy its accuracy by benchmark, and what a sample takes on average.

Benchmarks are the tasks' sources; where all tasks have one source, they are its domains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wfdsl.evaluation.statistics import Accuracy, Difference, Mean, accuracy_of, difference_of, mean_of
from wfdsl.evaluation.trials import Trial

FORMAT = "wfdsl-evaluation-summary"
VERSION = 1

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
    input_tokens: float
    """Per sample, as everything below."""
    output_tokens: float
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

    @property
    def tokens(self) -> float:
        """Input and output tokens per sample."""
        return self.input_tokens + self.output_tokens

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain values."""
        return {
            "policy": self.policy,
            "accuracy": _plain(self.overall),
            "average": None if self.average is None else self.average._asdict(),
            "benchmarks": {name: _plain(accuracy) for name, accuracy in self.benchmarks.items()},
            "per_sample": {
                "input_tokens": self.input_tokens,
                "output_tokens": self.output_tokens,
                "list_usd": self.list_usd,
                "paid_usd": self.paid_usd,
                "latency_s": self.latency_s,
                "calls": self.calls,
                "completions": self.completions,
                "steps": self.steps,
            },
            "workers": dict(self.workers),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A policy against another one, over their common tasks."""

    first: str
    second: str
    difference: Difference | None
    """None if they have no judged task in common."""

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        found = self.difference
        plain = {} if found is None else {name: getattr(found, name) for name in found.__slots__}
        return {"first": self.first, "second": self.second, "common_tasks": 0, **_renamed(plain)}


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
        return {
            "format": FORMAT,
            "version": VERSION,
            "simulated": self.simulated,
            "benchmarks_are": f"{self.split}s",
            "policies": [policy.to_dict() for policy in self.policies],
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
        }


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
    workers: Counter[str] = Counter()
    for trial in trials:
        workers.update(trial.workers)
    fresh = [trial.latency_s for trial in trials if trial.latency_s is not None]
    return PolicySummary(
        policy=policy,
        overall=accuracy_of(trials),
        benchmarks=accuracies,
        average=_average(list(accuracies.values())),
        input_tokens=_mean([trial.input_tokens for trial in trials]),
        output_tokens=_mean([trial.output_tokens for trial in trials]),
        list_usd=_mean_usd([trial.list_usd for trial in trials]),
        paid_usd=_mean_usd([trial.paid_usd for trial in trials]),
        latency_s=_mean(fresh) if fresh else None,
        calls=_mean([trial.calls for trial in trials]),
        completions=_mean([trial.completions for trial in trials]),
        steps=_mean([trial.steps for trial in trials]),
        workers=dict(sorted(workers.items(), key=lambda pair: (-pair[1], pair[0]))),
    )


def _average(accuracies: Sequence[Accuracy]) -> Mean | None:
    known = [Mean(each.value, each.error) for each in accuracies if each.value is not None]
    return mean_of(known) if len(known) == len(accuracies) else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean_usd(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _mean(known) if len(known) == len(values) else None


def _plain(accuracy: Accuracy) -> dict[str, Any]:
    plain = {name: getattr(accuracy, name) for name in accuracy.__slots__}
    return {**plain, "low": accuracy.low, "high": accuracy.high}


def _renamed(plain: dict[str, Any]) -> dict[str, Any]:
    """`tasks` of a difference are common tasks, and its value is the difference."""
    names = {"tasks": "common_tasks", "first": "first_accuracy", "second": "second_accuracy", "value": "difference"}
    return {names.get(name, name): value for name, value in plain.items()}
