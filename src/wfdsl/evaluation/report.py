"""What an evaluation says: a summary of each policy, read from the folder, as JSON, tables and a plot.

Benchmarks are the tasks' sources; where all tasks have one source, they are its domains. Summaries and plots follow
from `manifest.json` and `results.jsonl` and can be written again. An accuracy is in per cent, with the half width of
its 95 % interval. Next to it are counts of failed and unjudged trials, and the accuracies if all of those were wrong,
or right.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal, TypeAlias

from wfdsl.evaluation.manifest import FitCost, read_fit_costs, read_manifest
from wfdsl.evaluation.statistics import (
    TWO_SIDED,
    Accuracy,
    Difference,
    Interval,
    Mean,
    accuracy_of,
    difference_of,
    mean_of,
)
from wfdsl.evaluation.trials import Trial, read_trials
from wfdsl.evaluation.workflow_statistics import Case, Signatures, WorkflowStatistics, signatures_of, statistics_of
from wfdsl.installation import require_packages
from wfdsl.interpreter.record import total_usd
from wfdsl.render.status import dollars, duration

FORMAT: Final = "wfdsl-evaluation-summary"
VERSION: Final = 2
Split: TypeAlias = Literal["source", "domain"]
Table: TypeAlias = tuple[list[str], list[list[str]]]
"""A head and rows."""
UNKNOWN: Final = "-"


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


@dataclass(frozen=True, slots=True)
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
    present = {policy: own for policy in policies if (own := [each for each in everything if each.policy == policy])}
    reference, *others = present or ("",)
    return Summary(
        split=split,
        benchmarks=names,
        policies=tuple(_summary_of(policy, own, names, split) for policy, own in present.items()),
        comparisons=tuple(
            Comparison(policy, reference, difference_of(present[policy], present[reference])) for policy in others
        ),
        simulated=simulated,
    )


def split_of(trials: Iterable[Trial]) -> Split:
    """What the benchmarks of some results are: sources if there are several, else domains."""
    return "source" if len({trial.source for trial in trials}) > 1 else "domain"


def benchmark_of(trial: Trial, split: Split) -> str:
    """The benchmark that a result counts to."""
    return trial.domain if split == "domain" else trial.source or "no source"


def _summary_of(policy: str, trials: Sequence[Trial], benchmarks: Sequence[str], split: Split) -> PolicySummary:
    """Sum up one policy."""
    accuracies = {
        name: accuracy_of(trial for trial in trials if benchmark_of(trial, split) == name) for name in benchmarks
    }
    known = [Mean(each.value, each.error) for each in accuracies.values() if each.value is not None]
    workers = sum((Counter(trial.workers) for trial in trials), Counter[str]())
    fresh = [trial.latency_s for trial in trials if trial.latency_s is not None]
    sums = {name: total_usd(getattr(trial, name) for trial in trials) for name in ("list_usd", "paid_usd")}
    means: dict[str, Any] = {name: None if usd is None else usd / len(trials) for name, usd in sums.items()}
    for name in ("tokens", "calls", "completions", "steps"):
        means[name] = fmean(getattr(trial, name) for trial in trials)
    return PolicySummary(
        policy=policy,
        overall=accuracy_of(trials),
        benchmarks=accuracies,
        average=mean_of(known) if len(known) == len(accuracies) else None,
        latency_s=fmean(fresh) if fresh else None,
        workers=dict(sorted(workers.items(), key=lambda pair: (-pair[1], pair[0]))),
        **means,
    )


@dataclass(frozen=True, slots=True)
class Report:
    """An evaluation as its folder has it."""

    folder: Path
    manifest: Mapping[str, Any]
    trials: tuple[Trial, ...]
    fit_costs: Mapping[str, FitCost]
    """What fitting policies, and training Conductors, has cost."""

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies, in the order in which they were named."""
        return tuple(self.manifest["policies"])

    @property
    def simulated(self) -> bool:
        """Whether workers were simulated."""
        return bool(self.manifest["simulated"])

    def of(self, policy: str) -> list[Trial]:
        """The results of a policy."""
        return [trial for trial in self.trials if trial.policy == policy]

    def summary(self) -> Summary:
        """What the results say together."""
        return summarise(self.trials, policies=self.policies, simulated=self.simulated)

    @property
    def workers(self) -> dict[int, str]:
        """The names of the pool's workers, by their indices."""
        return {int(index): entry["name"] for index, entry in self.manifest["pool"]["workers"].items()}

    def strategies(self) -> dict[str, WorkflowStatistics]:
        """What the workflows of each policy look like, all rounds together."""
        rounds = {policy: [flow for trial in self.of(policy) for flow in trial.rounds] for policy in self.policies}
        return {policy: statistics_of(flows, names=self.workers) for policy, flows in rounds.items()}

    def signatures(self) -> dict[str, Signatures]:
        """How each policy fails."""
        return {policy: signatures_of(map(_case_of, self.of(policy)), names=self.workers) for policy in self.policies}


def _case_of(trial: Trial) -> Case:
    return Case(
        kind=trial.domain,
        workflow=trial.rounds[-1] if trial.rounds else None,
        right=None if trial.right is None else float(trial.right),
        completions=trial.completions,
        invalid=trial.invalid,
        later=max(len(trial.rounds) - 1, 0),
        unchanged=trial.unchanged,
    )


def read_report(folder: str | Path) -> Report:
    """Read an evaluation's folder; trials come in the order in which they were asked for, not in which they ended.

    Raises:
        UsageError: it holds no evaluation, or a file in it is damaged.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    tasks = {name: place for place, name in enumerate(manifest["tasks"]["ids"])}
    policies = {name: place for place, name in enumerate(manifest["policies"])}
    trials = [trial for trial in read_trials(folder).values() if trial.task in tasks and trial.policy in policies]
    trials.sort(key=lambda trial: (tasks[trial.task], trial.repeat, policies[trial.policy]))
    return Report(folder, manifest, tuple(trials), read_fit_costs(folder))


def write_summaries(report: Report, *, plots: bool = True) -> list[Path]:
    """Write `summary.json` and the plot; gives the files.

    Raises:
        UsageError: a plot was asked for and matplotlib is not installed.
    """
    summary, path = report.summary(), report.folder / "summary.json"
    path.write_text(json.dumps(summary.to_dict(), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return [path, *(draw_plot(summary, report.folder) if plots else [])]


def table_of(rows: Sequence[Mapping[str, str]]) -> Table:
    """A table of rows that are given by the names of their columns."""
    head = list(dict.fromkeys(name for row in rows for name in row))
    return head, [[row.get(name, UNKNOWN) for name in head] for row in rows]


def accuracy_table(summary: Summary) -> Table:
    """The table of accuracies."""
    shown = summary.benchmarks if len(summary.benchmarks) > 1 else ()
    silent = any(policy.overall.unanswered for policy in summary.policies)
    rows = []
    for policy in summary.policies:
        found = policy.overall
        row = {"policy": policy.policy, **{name: percent(policy.benchmarks[name]) for name in shown}}
        row["average" if shown else "accuracy"] = percent(policy.average)
        row |= {name: str(getattr(found, name)) for name in [*(["unanswered"] * silent), "failed", "unjudged"]}
        if found.failed or found.unjudged:
            row["bounds"] = f"{100 * found.low:.1f} to {100 * found.high:.1f}"
        rows.append(row)
    return table_of(rows)


def cost_table(summary: Summary) -> Table:
    """The table of what a sample takes."""
    return table_of(
        [
            {
                "policy, per sample": policy.policy,
                "tokens": f"{policy.tokens:,.0f}",
                "cost": UNKNOWN if policy.list_usd is None else dollars(policy.list_usd),
                "latency": UNKNOWN if policy.latency_s is None else duration(policy.latency_s),
                "calls": f"{policy.calls:.2f}",
                "steps": f"{policy.steps:.2f}",
            }
            for policy in summary.policies
        ]
    )


def comparison_table(comparisons: Iterable[Comparison]) -> Table:
    """The table of comparisons; with a column `against` if it is not always the same."""
    comparisons = list(comparisons)
    several = len({each.second for each in comparisons}) > 1
    rows = []
    for each in comparisons:
        found = each.difference
        row = {"policy": each.first, **({"against": each.second} if several else {}), "common tasks": "0"}
        if found is not None:
            common = str(found.tasks) if found.tasks == found.all_tasks else f"{found.tasks} of {found.all_tasks}"
            row |= {
                "common tasks": common,
                "accuracies": f"{100 * found.first:.1f}, {100 * found.second:.1f}",
                "difference": f"{100 * found.value:+.1f}",
                "95 % interval": f"{100 * found.low:+.1f} to {100 * found.high:+.1f}",
                "better / worse": f"{found.better} / {found.worse}",
                "p": "<0.0001" if found.p_value < 0.0001 else f"{found.p_value:.4f}",
            }
        rows.append(row)
    return table_of(rows)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; the first column is aligned to the left, the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


COMPARED: Final = (
    "Differences are over the tasks that both were judged on, paired by task; repeats of a task count as their mean. "
    "`5 of 8` common tasks: the other three were judged for one of the two, or for neither. The interval is Bonett and "
    "Price's for paired shares; p is that of the two-sided exact sign-flip test."
)


def percent(found: Mean | Accuracy | None) -> str:
    """A share in per cent with the half width of its 95 % interval."""
    if found is None or found.value is None:
        return UNKNOWN
    return f"{100 * found.value:.1f}" + ("" if found.error is None else f" ± {100 * TWO_SIDED * found.error:.1f}")


def between(interval: Interval) -> str:
    """A difference in per cent with its interval."""
    value, low, high = (f"{100 * each:+.1f}" for each in interval)
    return f"{value} ({low} to {high})"


PLOT: Final = "accuracy-against-cost"
_MARKS: Final = "o^Dv"
_COLOURS: Final = 10
_OWN_STYLE: Final = {"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "wfdsl"}
"""Names may hold dollars, a plot's text is text, and the same results give the same file."""


def draw_plot(summary: Summary, folder: Path) -> list[Path]:
    """Average accuracy against dollars per sample, or tokens where a price is not known, as PNG and SVG; gives the
    files.

    Raises:
        UsageError: matplotlib is not installed.
    """
    require_packages("the plot, which --no-plots leaves out,", ["matplotlib"], "eval")
    import matplotlib.style  # noqa: PLC0415  (large, and only plots need it)
    from matplotlib.figure import Figure  # noqa: PLC0415

    in_usd, paths = cost_in_usd(summary.policies), [folder / f"{PLOT}.{form}" for form in ("png", "svg")]
    with matplotlib.style.context(["tableau-colorblind10", _OWN_STYLE]):
        drawn = Figure(figsize=(8.4, 5.6), layout="constrained")
        axes = drawn.subplots()
        for number, policy in enumerate(summary.policies):
            if policy.average is not None:
                mark = "s" if policy.policy.startswith("worker:") else _MARKS[number // _COLOURS % len(_MARKS)]
                accuracy, error = 100 * policy.average.value, 100 * TWO_SIDED * (policy.average.error or 0.0)
                cost = policy.cost(in_usd=in_usd)
                axes.errorbar(cost, accuracy, yerr=error, fmt=mark, elinewidth=0.8, label=policy.policy)
        axes.set_xlabel("US dollars per sample, by the price list" if in_usd else "tokens per sample")
        axes.set_ylabel("average accuracy in %, with its 95 % interval")
        axes.set_title("Accuracy against cost")
        if summary.simulated:
            drawn.supxlabel("simulated workers: these figures say nothing about real models", fontsize=7.5)
        if axes.has_data():
            axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=7.5)
        drawn.savefig(paths[0], dpi=160, metadata={"Software": None})
        drawn.savefig(paths[1], metadata={"Date": None})
    return paths
