"""The folder of an evaluation: reading it back, and writing its summaries as JSON, Markdown tables and plots.

`manifest.json` says what was evaluated and `results.jsonl` holds a trial per line. Summaries and plots follow from them
and can be written again. An accuracy is in per cent, with the half width of its 95 % interval. Next to it are the
numbers of failed and unjudged trials, and the accuracies if all of those were wrong, or right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.evaluation.equal_cost import EVERYONE, Standing, cost_in_usd, standings_of
from wfdsl.evaluation.fit_costs import fit_cost_table, read_fit_costs
from wfdsl.evaluation.manifest import read_manifest
from wfdsl.evaluation.plots import draw_plots
from wfdsl.evaluation.room import WORTH, Room, room_among
from wfdsl.evaluation.signatures import Case, Signatures, signatures_of
from wfdsl.evaluation.statistics import TWO_SIDED, Accuracy, Difference, Interval, Mean, scores_of
from wfdsl.evaluation.summary import Comparison, PolicySummary, Summary, summarise
from wfdsl.evaluation.trials import RESULTS, Trial, read_trials
from wfdsl.evaluation.workflow_statistics import WorkflowStatistics, statistics_of
from wfdsl.interpreter.record import total_usd
from wfdsl.render.status import dollars, duration


@dataclass(frozen=True, slots=True)
class Report:
    """An evaluation as its folder has it."""

    folder: Path
    manifest: Mapping[str, Any]
    trials: tuple[Trial, ...]

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies, in the order in which they were named."""
        return tuple(self.manifest["policies"])

    @property
    def simulated(self) -> bool:
        """Whether workers were simulated."""
        return bool(self.manifest["simulated"])

    def cost_text(self) -> str:
        """The calls of workers and the dollars of all results and of fitting, in words."""
        learned = read_fit_costs(self.folder).values()
        calls = sum(trial.calls for trial in self.trials) + sum(cost.calls for cost in learned)
        usd = total_usd([*(trial.list_usd for trial in self.trials), *(cost.usd for cost in learned)])
        return f"{calls:,} calls" + ("" if usd is None else f", {dollars(usd)} by the price list")

    def of(self, policy: str) -> list[Trial]:
        """The results of a policy."""
        return [trial for trial in self.trials if trial.policy == policy]

    def summary(self) -> Summary:
        """What the results say together."""
        return summarise(self.trials, policies=self.policies, simulated=self.simulated)

    @property
    def workers(self) -> dict[int, str]:
        """The names of the pool's workers, in the order of their indices."""
        entries = self.manifest["pool"]["workers"].items()
        return {int(index): entry["name"] for index, entry in sorted(entries, key=lambda pair: int(pair[0]))}

    def strategies(self, *, patterns: int = 10) -> dict[str, WorkflowStatistics]:
        """What the workflows of each policy look like, all rounds together."""
        return {
            policy: statistics_of(
                (workflow for trial in self.of(policy) for workflow in trial.rounds),
                names=self.workers,
                patterns=patterns,
            )
            for policy in self.policies
        }

    def signatures(self) -> dict[str, Signatures]:
        """How each policy fails."""
        return {policy: signatures_of(map(_case_of, self.of(policy)), names=self.workers) for policy in self.policies}


def _case_of(trial: Trial) -> Case:
    return Case(
        kind=trial.domain,
        workflow=trial.rounds[-1] if trial.rounds else None,
        right=float(trial.outcome == "right") if trial.judged else None,
        completions=trial.completions,
        invalid=trial.invalid,
        later=max(len(trial.rounds) - 1, 0),
        unchanged=trial.unchanged,
    )


def read_report(folder: Path) -> Report:
    """Read an evaluation's folder; trials come in the order in which they were asked for, not in which they ended.

    Raises:
        UsageError: it holds no evaluation, or a file in it is damaged.
    """
    manifest = read_manifest(folder)
    tasks = {name: place for place, name in enumerate(manifest["tasks"]["ids"])}
    policies = {name: place for place, name in enumerate(manifest["policies"])}
    trials = [
        trial for trial in read_trials(folder / RESULTS).values() if trial.task in tasks and trial.policy in policies
    ]
    trials.sort(key=lambda trial: (tasks[trial.task], trial.repeat, policies[trial.policy]))
    return Report(folder, manifest, tuple(trials))


def standings_in(reports: Sequence[Report], *, among: Sequence[str] = EVERYONE) -> tuple[Summary, list[Standing]]:
    """The policies of evaluations at equal cost, over the tasks that were judged for all of them.

    Raises:
        UsageError: two evaluations have a policy of the same name, policies have no judged task in common, or
            something in `among` names no policy.
    """
    names = [policy for report in reports for policy in report.policies]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two of the folders have a policy {twice!r}: evaluate it once")
    scores = {policy: scores_of(report.of(policy)) for report in reports for policy in report.policies}
    common = set.intersection(*map(set, scores.values()))
    trials = [trial for report in reports for trial in report.trials if trial.task_hash in common]
    if not trials:
        raise UsageError("no task was judged for all policies: evaluate them on the same tasks, and to the end")
    summary = summarise(trials, policies=names, simulated=any(report.simulated for report in reports))
    learned = {name: cost for report in reports for name, cost in read_fit_costs(report.folder).items()}
    return summary, standings_of(summary.policies, scores, learned, among=among)


def rooms_in(report: Report) -> tuple[dict[str, Room], bool]:
    """What choosing among the workers alone, and among all policies, would give; and whether costs are dollars.

    Raises:
        UsageError: fewer than two workers were evaluated, or no task was judged for all policies.
    """
    in_usd = cost_in_usd(report.summary().policies)
    among = {"the workers": [name for name in report.policies if name.startswith("worker:")]}
    if len(among["the workers"]) < len(report.policies):
        among["all policies"] = list(report.policies)
    return {name: room_among(report.trials, each, in_usd=in_usd) for name, each in among.items()}, in_usd


def write_summaries(report: Report, *, plots: bool = True) -> list[Path]:
    """Write `summary.json`, `summary.md` and the plots; gives the files.

    Raises:
        UsageError: plots were asked for and matplotlib is not installed.
    """
    summary, folder = report.summary(), report.folder
    texts = {
        "summary.json": json.dumps(summary.to_dict(), ensure_ascii=False, indent=2) + "\n",
        "summary.md": markdown_of(summary, title=f"Evaluation {report.manifest['id']}") + _learning(folder),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    written = [folder / name for name in texts]
    if plots:
        written += draw_plots(summary, folder, workers=list(report.workers.values()))
    return written


def _learning(folder: Path) -> str:
    """The table of what fitting has cost; empty if no policy was fitted."""
    costs = read_fit_costs(folder)
    return f"\n{markdown_table(*fit_cost_table(costs))}\n" if costs else ""


UNKNOWN: Final = "-"
_SIMULATED: Final = "Workers are simulated: these figures say nothing about real models."


def accuracy_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of accuracies."""
    shown = _shown_benchmarks(summary)
    missing = any(policy.overall.failed or policy.overall.unjudged for policy in summary.policies)
    silent = any(policy.overall.unanswered for policy in summary.policies)
    counted = [*(["unanswered"] * silent), "failed", "unjudged"]
    head = ["policy", *shown, "average" if shown else "accuracy", *counted, *(["bounds"] * missing)]
    return head, [_accuracies(policy, shown, counted)[: len(head)] for policy in summary.policies]


def cost_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of what a sample takes."""
    head = ["policy, per sample", "tokens", "cost", "latency", "calls", "steps"]
    return head, [_costs(policy) for policy in summary.policies]


def comparison_table(comparisons: Iterable[Comparison]) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of comparisons; with a column `against` if it is not always the same."""
    found = list(comparisons)
    several = len({each.second for each in found}) > 1
    head = ["policy", *(["against"] if several else [])]
    head += ["common tasks", "accuracies", "difference", "95 % interval", "better / worse", "p"]
    rows = [[each.first, *([each.second] if several else []), *_difference(each.difference)] for each in found]
    return head, rows


def equal_cost_table(standings: Sequence[Standing], *, in_usd: bool) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of policies at equal cost."""
    head = ["policy", "accuracy", "calls", "cost" if in_usd else "tokens", "learned from", "learning cost"]
    head += ["frontier", "over all others at its cost", "which are"]
    return head, [_standing(each, in_usd=in_usd) for each in standings]


def _standing(each: Standing, *, in_usd: bool) -> list[str]:
    learned = each.learned
    return [
        each.policy,
        percent(each.accuracy),
        f"{each.calls:.2f}",
        dollars(each.cost) if in_usd else f"{each.cost:,.0f}",
        "-" if learned is None else f"{learned.calls:,} calls",
        "-" if learned is None or learned.usd is None else dollars(learned.usd),
        "yes" if each.efficient else "",
        UNKNOWN if each.rival is None else _signed(each.rival.difference),
        UNKNOWN if each.rival is None else str(each.rival),
    ]


def _signed(interval: Interval) -> str:
    return f"{100 * interval.value:+.1f} ({100 * interval.low:+.1f} to {100 * interval.high:+.1f})"


def room_table(rooms: Mapping[str, Room], *, in_usd: bool) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of what choosing for each question would give."""
    head = ["chosen for each question among", "accuracy", "calls", "cost" if in_usd else "tokens"]
    head += ["over the best without a choice at its cost", "which is", "room"]
    rows = [
        [
            name,
            f"{100 * each.accuracy.value:.1f} ({100 * each.accuracy.low:.1f} to {100 * each.accuracy.high:.1f})",
            f"{each.calls:.2f}",
            dollars(each.cost) if in_usd else f"{each.cost:,.0f}",
            _signed(each.rival.difference),
            str(each.rival),
            {"room": "yes", "no room": "no", "not known": "not known"}[each.verdict],
        ]
        for name, each in rooms.items()
    ]
    return head, rows


def strategy_table(strategies: Mapping[str, WorkflowStatistics]) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of strategies, a column for each set of workflows."""
    columns = [_strategy_figures(found) for found in strategies.values()]
    names = sorted({name: None for column in columns for name in column}, key=lambda name: _GROUPS.index(name[0]))
    rows = [[label, *(column.get((group, label), UNKNOWN) for column in columns)] for group, label in names]
    return ["", *strategies], rows


def signature_table(signatures: Mapping[str, Signatures]) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of how Conductors fail."""
    rows = []
    for policy, each in signatures.items():
        shares = ["-" if share is None else f"{share:.1%}" for share in (each.valid, each.mismatch, each.unchanged)]
        asked = [(kind, *next(iter(own.items())), each.entropy_bits[kind]) for kind, own in each.share.items()]
        who = "; ".join(f"{kind}: {name} {share:.0%}, {bits:.2f} bits" for kind, name, share, bits in asked)
        rows.append([policy, *shares, who])
    return ["policy", "valid", "lost by mismatch", "rounds without change", "most asked worker"], rows


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; the first column is aligned to the left, the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(trial.replace("|", "\\|") for trial in line) + " |" for line in lines)


def markdown_of(summary: Summary, *, title: str) -> str:
    """The whole summary in Markdown."""
    parts = [f"# {title}", *([f"**{_SIMULATED}**"] if summary.simulated else [])]
    parts += [markdown_table(*accuracy_table(summary)), markdown_table(*cost_table(summary)), _legend(summary)]
    if summary.comparisons:
        parts += [f"## Against {summary.comparisons[0].second}", markdown_table(*comparison_table(summary.comparisons))]
        parts += [COMPARED]
    return "\n\n".join(parts) + "\n"


EQUAL_COST: Final = (
    "Accuracies are averages over the benchmarks with the half width of their 95 % interval; calls and cost are per "
    "sample, and what a policy has learned from is counted apart. On the frontier no other policy is as good for less. "
    "All others at its cost: the best of those that cost no more, or a mixture of a cheaper and a dearer one; the "
    "difference is paired by task, with its 95 % interval."
)
ROOM: Final = (
    "A question's policy is chosen by the results on other questions of its domain and its own other repeats, so the "
    "accuracy is what a Conductor that reads the question can reach with these workflows. There is room where the gain "
    f"is certain and at least {100 * WORTH:.0f} points, and none where it is certain to be less; more tasks or repeats "
    "decide the rest."
)
COMPARED: Final = (
    "Differences are over the tasks that both were judged on, paired by task; repeats of a task count as their mean. "
    "`5 of 8` common tasks: the other three were judged for one of the two, or for neither. The interval is the paired "
    "normal one with Student's quantile; p is that of the two-sided exact sign-flip test."
)


def percent(found: Mean | Accuracy | None) -> str:
    """A share in per cent with the half width of its 95 % interval."""
    if found is None or found.value is None:
        return UNKNOWN
    return f"{100 * found.value:.1f}" + ("" if found.error is None else f" ± {100 * TWO_SIDED * found.error:.1f}")


def _shown_benchmarks(summary: Summary) -> list[str]:
    return list(summary.benchmarks) if len(summary.benchmarks) > 1 else []


def _accuracies(policy: PolicySummary, shown: Sequence[str], counted: Sequence[str]) -> list[str]:
    overall = policy.overall
    whole = f"{100 * overall.low:.1f} to {100 * overall.high:.1f}" if overall.failed or overall.unjudged else UNKNOWN
    by_benchmark = [percent(policy.benchmarks[name]) for name in shown]
    counts = [str(getattr(overall, name)) for name in counted]
    return [policy.policy, *by_benchmark, percent(policy.average), *counts, whole]


def _costs(policy: PolicySummary) -> list[str]:
    return [
        policy.policy,
        f"{policy.tokens:,.0f}",
        UNKNOWN if policy.list_usd is None else dollars(policy.list_usd),
        UNKNOWN if policy.latency_s is None else duration(policy.latency_s),
        f"{policy.calls:.2f}",
        f"{policy.steps:.2f}",
    ]


def _difference(found: Difference | None) -> list[str]:
    if found is None:
        return ["0", *[UNKNOWN] * 5]
    return [
        str(found.tasks) if found.tasks == found.all_tasks else f"{found.tasks} of {found.all_tasks}",
        f"{100 * found.first:.1f}, {100 * found.second:.1f}",
        f"{100 * found.value:+.1f}",
        f"{100 * found.low:+.1f} to {100 * found.high:+.1f}",
        f"{found.better} / {found.worse}",
        "<0.0001" if found.p_value < 0.0001 else f"{found.p_value:.4f}",
    ]


def _legend(summary: Summary) -> str:
    what = "sources" if summary.split == "source" else "domains"
    average = f" The average is the unweighted one over {what}." if len(summary.benchmarks) > 1 else ""
    return f"{_READ_ACCURACIES}{average} {_READ_COSTS}"


_READ_ACCURACIES: Final = (
    "Accuracies are in per cent with the half width of their 95 % interval, clustered by task; failed runs and "
    "unjudged answers are in none of them, and the bounds say what the accuracy over all results would be if all of "
    "those were wrong, or right."
)
_READ_COSTS: Final = "Tokens, cost by the price list, latency, calls and steps are per sample, failed ones included."


_GROUPS: Final = ("size", "topology", "worker", "role", "diversity")


def _strategy_figures(found: WorkflowStatistics) -> dict[tuple[str, str], str]:
    """What a set's column shows, by group and row."""
    total = max(found.workflows, 1)
    figures = {("size", "workflows"): f"{found.workflows:,}", ("size", "steps on average"): f"{found.mean_steps:.2f}"}
    figures |= {("topology", f"topology {name}"): _share(count, total) for name, count in found.topologies.items()}
    figures |= {("worker", f"steps by {name}"): f"{share:.1%}" for name, share in found.worker_share().items()}
    for role in found.roles_by_structure:
        figures["role", f"{role}, by structure"] = _share(found.roles_by_structure[role], total)
        figures["role", f"{role}, by wording"] = _share(found.roles_by_wording[role], total)
    figures["diversity", "distinct structures"] = f"{found.structures} ({found.structure_bits:.2f} bits)"
    figures["diversity", "distinct patterns"] = f"{found.distinct} ({found.pattern_bits:.2f} bits)"
    return figures


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%}"
