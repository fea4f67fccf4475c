"""`wfdsl eval compare`, `equal-cost`, `room`, `strategies` and `report`: what the folders of evaluations say."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from wfdsl.cli.display.consoles import stdout_console
from wfdsl.cli.output import print_json
from wfdsl.errors import UsageError
from wfdsl.evaluation.equal_cost import EQUAL_COST, EVERYONE, equal_cost_table, named, standings_in
from wfdsl.evaluation.report import (
    COMPARED,
    Report,
    accuracy_table,
    comparison_table,
    cost_table,
    markdown_table,
    read_report,
    table_of,
    write_summaries,
)
from wfdsl.evaluation.room import ROOM, room_table, rooms_in
from wfdsl.evaluation.signatures import Signatures
from wfdsl.evaluation.statistics import difference_of
from wfdsl.evaluation.summary import Comparison, Summary
from wfdsl.evaluation.workflow_statistics import ROLES, WorkflowStatistics
from wfdsl.interpreter.record import total_usd
from wfdsl.render.status import dollars

_PATTERNS: Final = 5
"""The most frequent workflows that are shown."""


def execute_compare(args: argparse.Namespace) -> int:
    """Print paired comparisons."""
    if len(args.folders) > 2:
        raise UsageError(f"{len(args.folders)} folders: give one, or two")
    reports = [read_report(Path(folder)) for folder in args.folders]
    found = _comparisons(reports[0], reports[-1], args)
    if args.json:
        print_json([asdict(each) for each in found], indent=2)
        return 0
    against = {each.second for each in found}
    title = f"against {found[0].second}" if len(against) == 1 else ""
    print_table(*comparison_table(found), title=", ".join(filter(None, [title, _marked(*reports)])))
    print(f"\n{COMPARED}")
    return 0


def execute_equal_cost(args: argparse.Namespace) -> int:
    """Print each policy among the others at its cost."""
    reports = [read_report(Path(folder)) for folder in args.folders]
    standings = standings_in(reports, among=args.among or EVERYONE)
    shown = named(args.policy or EVERYONE, [each.policy for each in standings])
    found = [each for each in standings if each.policy in shown]
    if args.json:
        print_json([asdict(each) for each in found], indent=2)
        return 0
    print_table(*equal_cost_table(found), title=_marked(*reports))
    print(f"\n{EQUAL_COST}")
    if args.among:
        print(f"The others are only these: {', '.join(args.among)}.")
    return 0


def execute_room(args: argparse.Namespace) -> int:
    """Print what a choice among the workers, and among all policies, would give for each question."""
    report = read_report(Path(args.folder))
    found = rooms_in(report)
    if args.json:
        print_json({name: asdict(room) for name, room in found.items()}, indent=2)
        return 0
    print_table(*room_table(found), title=_marked(report))
    fitted = report.fit_costs.values()
    calls = sum(trial.calls for trial in report.trials) + sum(cost.calls for cost in fitted)
    usd = total_usd([*(trial.list_usd for trial in report.trials), *(cost.usd for cost in fitted)])
    cost = f"{calls:,} calls" + ("" if usd is None else f", {dollars(usd)} by the price list")
    print(f"\n{ROOM}\nThis answer has cost {cost}.")
    return 0


def execute_strategies(args: argparse.Namespace) -> int:
    """Print what workflows look like, and how Conductors fail."""
    report = read_report(Path(args.folder))
    found, signs = report.strategies(), report.signatures()
    chosen = _chosen(report, args.policy)
    if args.json:
        policies = {name: {**found[name].to_dict(), "signatures": signs[name].to_dict()} for name in chosen}
        print_json({"simulated": report.simulated, "roles": ROLES, "policies": policies}, indent=2)
        return 0
    columns = {name: _strategy_figures(found[name]) for name in chosen}
    rows = sorted({row: None for column in columns.values() for row in column}, key=lambda row: row[0])
    shown = [[label, *(column.get((place, label), "-") for column in columns.values())] for place, label in rows]
    print_table(["", *chosen], shown, title=_marked(report))
    for name in chosen:
        print(f"\n{name}")
        patterns = list(found[name].patterns.items())[:_PATTERNS]
        print("\n".join(f"  {count:>6,}  {pattern}" for pattern, count in patterns))
    print()
    print_table(*table_of([_signature_row(name, signs[name]) for name in chosen]))
    print("\n" + "; ".join(f"{role}: {rule}" for role, rule in ROLES.items()))
    return 0


def execute_report(args: argparse.Namespace) -> int:
    """Write summaries and the plot again, and print the tables."""
    report = read_report(Path(args.folder))
    written = write_summaries(report, plots=not args.no_plots)
    if args.json:
        print_json(report.summary().to_dict(), indent=2)
    else:
        print_summary(report.summary())
    print(f"written: {', '.join(path.name for path in written)}", file=sys.stderr)
    return 0


def _comparisons(first: Report, second: Report, args: argparse.Namespace) -> list[Comparison]:
    pairs = _pairs(first, second, _chosen(first, args.policy), args.against)
    if not pairs:
        raise UsageError(f"{first.folder} has only one policy: give a second folder to compare it with")
    names = [f" ({report.folder.name})" if first is not second else "" for report in (first, second)]
    return [
        Comparison(
            first=f"{one}{names[0]}",
            second=f"{other}{names[1]}",
            difference=difference_of(first.of(one), second.of(other)),
        )
        for one, other in pairs
    ]


def _pairs(first: Report, second: Report, chosen: list[str], against: str | None) -> list[tuple[str, str]]:
    if against is not None:
        _chosen(second, [against])
        return [(one, against) for one in chosen if first is not second or one != against]
    if first is second:
        reference = first.policies[0]
        return [(one, reference) for one in chosen if one != reference]
    same = [(one, one) for one in chosen if one in second.policies]
    return same or [(one, other) for one in chosen for other in second.policies]


def _chosen(report: Report, names: list[str]) -> list[str]:
    for name in names:
        if name not in report.policies:
            raise UsageError(f"{report.folder} has no policy {name!r}; it has {', '.join(report.policies)}")
    return list(names or report.policies)


def _marked(*reports: Report) -> str:
    return "simulated workers" if any(report.simulated for report in reports) else ""


def _strategy_figures(found: WorkflowStatistics) -> Mapping[tuple[int, str], str]:
    """What a set's column shows, by the place of a group of rows, and row."""
    total = max(found.workflows, 1)
    figures = {(0, "workflows"): f"{found.workflows:,}", (0, "steps on average"): f"{found.mean_steps:.2f}"}
    figures |= {(1, f"topology {name}"): f"{count / total:.1%}" for name, count in found.topologies.items()}
    figures |= {(2, f"steps by {name}"): f"{share:.1%}" for name, share in found.worker_share().items()}
    figures |= {(3, f"with a {role}"): f"{count / total:.1%}" for role, count in found.roles.items()}
    figures[4, "distinct patterns"] = f"{found.distinct} ({found.pattern_bits:.2f} bits)"
    return figures


def _signature_row(policy: str, found: Signatures) -> dict[str, str]:
    def share(value: float | None) -> str:
        return "-" if value is None else f"{value:.1%}"

    asked = [
        f"{kind}: {next(iter(own))} {max(own.values()):.0%}, {found.entropy_bits[kind]:.2f} bits"
        for kind, own in found.share.items()
    ]
    return {
        "policy": policy,
        "valid": share(found.valid),
        "lost by mismatch": share(found.mismatch),
        "rounds without change": share(found.unchanged),
        "most asked worker": "; ".join(asked),
    }


def print_summary(summary: Summary) -> None:
    """Print accuracies and costs."""
    print_table(*accuracy_table(summary), title="simulated workers" if summary.simulated else "")
    print()
    print_table(*cost_table(summary))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table: in Markdown, or drawn on a terminal."""
    if not sys.stdout.isatty():
        print(f"{title}\n\n" if title else "", markdown_table(head, rows), sep="")
        return
    table = Table(title=title or None, title_justify="left", header_style="bold", box=None)
    for place, name in enumerate(head):
        table.add_column(Text(name), justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    stdout_console().print(table)
