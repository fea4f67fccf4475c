"""Summaries as people and spreadsheets read them: Markdown, CSV, and the rows that a terminal's table is made of.

An accuracy is in per cent with its standard error. What was not judged stands beside it, with the accuracies that there
would be if all of it were wrong or right.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from wfdsl.render.status import dollars, duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wfdsl_rl.evaluation.estimates import Accuracy, Difference, Estimate
    from wfdsl_rl.evaluation.summary import Comparison, PolicySummary, Summary
    from wfdsl_rl.strategies import Strategies

UNKNOWN: Final = "-"
_SIMULATED: Final = "Workers are simulated: these figures say nothing about real models."


def accuracy_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of accuracies."""
    shown = _shown_benchmarks(summary)
    missing = any(policy.overall.failed or policy.overall.unjudged for policy in summary.policies)
    head = ["policy", *shown, "average" if shown else "accuracy", "failed", "unjudged", *(["bounds"] * missing)]
    return head, [_accuracies(policy, shown)[: len(head)] for policy in summary.policies]


def cost_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of what a sample takes."""
    head = ["policy, per sample", "tokens", "cost", "latency", "calls", "steps"]
    return head, [_costs(policy) for policy in summary.policies]


def comparison_table(comparisons: Iterable[Comparison]) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of comparisons; `against` stands there if it is not always the same."""
    found = list(comparisons)
    several = len({each.second for each in found}) > 1
    head = ["policy", *(["against"] if several else [])]
    head += ["common tasks", "accuracies", "difference", "95 % interval", "better / worse", "p"]
    rows = [[each.first, *([each.second] if several else []), *_difference(each.difference)] for each in found]
    return head, rows


def strategy_table(strategies: Mapping[str, Strategies]) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table of strategies, a column for each set of workflows."""
    columns = [_strategy_figures(found) for found in strategies.values()]
    names = sorted({name: None for column in columns for name in column}, key=lambda name: _GROUPS.index(name[0]))
    rows = [[label, *(column.get((group, label), UNKNOWN) for column in columns)] for group, label in names]
    return ["", *strategies], rows


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; the first column is aligned to the left, the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def markdown_of(summary: Summary, *, title: str) -> str:
    """The whole summary in Markdown."""
    parts = [f"# {title}", *([f"**{_SIMULATED}**"] if summary.simulated else [])]
    parts += [markdown_table(*accuracy_table(summary)), markdown_table(*cost_table(summary)), _legend(summary)]
    if summary.comparisons:
        parts += [f"## Against {summary.comparisons[0].second}", markdown_table(*comparison_table(summary.comparisons))]
        parts += [COMPARED]
    return "\n\n".join(parts) + "\n"


def csv_of(summary: Summary) -> str:
    """One line for each policy and benchmark, and one for each policy over all; shares and dollars as numbers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV_HEAD)
    for policy in summary.policies:
        for name, accuracy in [*policy.benchmarks.items(), ("all", policy.overall)]:
            writer.writerow([policy.policy, name, *_numbers(accuracy), *_takes(policy, name), int(summary.simulated)])
    return out.getvalue()


COMPARED: Final = (
    "Differences are over the tasks that both were judged on, paired by task; repeats of a task count as their mean. "
    "The interval is the paired normal one with Student's quantile; p is that of the two-sided exact sign test over "
    "the tasks that differ."
)

_CSV_HEAD: Final = (
    *("policy", "benchmark", "accuracy", "standard_error", "low", "high"),
    *("tasks", "right", "wrong", "unjudged", "failed"),
    *("input_tokens", "output_tokens", "list_usd", "paid_usd", "latency_s", "calls", "completions", "steps"),
    "simulated",
)


def percent(estimate: Estimate | None) -> str:
    """A share in per cent with its standard error."""
    if estimate is None:
        return UNKNOWN
    return f"{100 * estimate.value:.1f}" + ("" if estimate.error is None else f" ± {100 * estimate.error:.1f}")


def _shown_benchmarks(summary: Summary) -> list[str]:
    return list(summary.benchmarks) if len(summary.benchmarks) > 1 else []


def _accuracies(policy: PolicySummary, shown: Sequence[str]) -> list[str]:
    overall = policy.overall
    whole = f"{100 * overall.low:.1f} to {100 * overall.high:.1f}" if overall.failed or overall.unjudged else UNKNOWN
    by_benchmark = [_percent_of(policy.benchmarks[name]) for name in shown]
    counts = [str(overall.failed), str(overall.unjudged)]
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


def _percent_of(accuracy: Accuracy) -> str:
    if accuracy.value is None:
        return UNKNOWN
    return f"{100 * accuracy.value:.1f}" + ("" if accuracy.error is None else f" ± {100 * accuracy.error:.1f}")


def _difference(found: Difference | None) -> list[str]:
    if found is None:
        return ["0", *[UNKNOWN] * 5]
    interval = (
        UNKNOWN if found.low is None or found.high is None else f"{100 * found.low:+.1f} to {100 * found.high:+.1f}"
    )
    return [
        str(found.tasks),
        f"{100 * found.first:.1f}, {100 * found.second:.1f}",
        f"{100 * found.value:+.1f}",
        interval,
        f"{found.better} / {found.worse}",
        "<0.0001" if found.p_value < 0.0001 else f"{found.p_value:.4f}",
    ]


def _legend(summary: Summary) -> str:
    what = "sources" if summary.split == "source" else "domains"
    average = f" The average is the unweighted one over {what}." if len(summary.benchmarks) > 1 else ""
    return f"{_READ_ACCURACIES}{average} {_READ_COSTS}"


_READ_ACCURACIES: Final = (
    "Accuracies are in per cent with their standard error, clustered by task; failed runs and unjudged answers are in "
    "none of them, and the bounds say what the accuracy over all results would be if all of those were wrong, or right."
)
_READ_COSTS: Final = "Tokens, cost by the price list, latency, calls and steps are per sample, failed ones included."


def _numbers(accuracy: Accuracy) -> list[object]:
    counts = [accuracy.tasks, accuracy.right, accuracy.wrong, accuracy.unjudged, accuracy.failed]
    return [accuracy.value, accuracy.error, accuracy.low, accuracy.high, *counts]


def _takes(policy: PolicySummary, benchmark: str) -> list[object]:
    if benchmark != "all":
        return [""] * 8
    tokens: list[object] = [policy.input_tokens, policy.output_tokens]
    return [
        *tokens,
        policy.list_usd,
        policy.paid_usd,
        policy.latency_s,
        policy.calls,
        policy.completions,
        policy.steps,
    ]


_GROUPS: Final = ("size", "topology", "worker", "role", "diversity")


def _strategy_figures(found: Strategies) -> dict[tuple[str, str], str]:
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
