"""`wfdsl eval compare`, `equal-cost`, `strategies` and `report`: what the folders of evaluations say."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from wfdsl.cli.display.consoles import stdout_console
from wfdsl.cli.output import print_json
from wfdsl.errors import UsageError
from wfdsl.evaluation.equal_cost import EVERYONE, cost_in_usd, named
from wfdsl.evaluation.plots import draw_accuracy_against_cost, draw_strategies, require_matplotlib
from wfdsl.evaluation.report import (
    COMPARED,
    EQUAL_COST,
    ROOM,
    Report,
    accuracy_table,
    comparison_table,
    cost_table,
    equal_cost_table,
    markdown_table,
    read_report,
    room_table,
    rooms_in,
    signature_table,
    standings_in,
    strategy_table,
    write_summaries,
)
from wfdsl.evaluation.statistics import difference_of
from wfdsl.evaluation.summary import Comparison, Summary
from wfdsl.evaluation.workflow_statistics import STRUCTURE_RULES, WORDING_RULES

_PADDING: Final = 1


def execute_compare(args: argparse.Namespace) -> int:
    """Print paired comparisons."""
    if len(args.folders) > 2:
        raise UsageError(f"{len(args.folders)} folders: give one, or two")
    reports = [read_report(Path(folder)) for folder in args.folders]
    found = _comparisons(reports[0], reports[-1], args)
    if args.json:
        print_json([each.to_dict() for each in found], indent=2)
        return 0
    against = {each.second for each in found}
    title = f"against {found[0].second}" if len(against) == 1 else ""
    print_table(*comparison_table(found), title=", ".join(filter(None, [title, _marked(*reports)])))
    print(f"\n{COMPARED}")
    return 0


def execute_equal_cost(args: argparse.Namespace) -> int:
    """Print each policy among the others at its cost."""
    reports = [read_report(Path(folder)) for folder in args.folders]
    summary, standings = standings_in(reports, among=args.among or EVERYONE)
    if args.plot:
        require_matplotlib()
        draw_accuracy_against_cost(summary, Path(args.plot))
    shown = named(args.policy or EVERYONE, [each.policy for each in standings])
    found = [each for each in standings if each.policy in shown]
    if args.json:
        print_json([each.to_dict() for each in found], indent=2)
        return 0
    print_table(*equal_cost_table(found, in_usd=cost_in_usd(summary.policies)), title=_marked(*reports))
    print(f"\n{EQUAL_COST}")
    if args.among:
        print(f"The others are only these: {', '.join(args.among)}.")
    return 0


def execute_room(args: argparse.Namespace) -> int:
    """Print what a choice among the workers, and among all policies, would give for each question."""
    report = read_report(Path(args.folder))
    found, in_usd = rooms_in(report)
    if args.json:
        print_json({name: room.to_dict() for name, room in found.items()}, indent=2)
        return 0
    print_table(*room_table(found, in_usd=in_usd), title=_marked(report))
    print(f"\n{ROOM}\nThis answer has cost {report.cost_text()}.")
    return 0


def execute_strategies(args: argparse.Namespace) -> int:
    """Print what workflows look like, and draw it."""
    report = read_report(Path(args.folder))
    chosen = _chosen(report, args.policy)
    found = {name: each for name, each in report.strategies(patterns=args.patterns).items() if name in chosen}
    signs = {name: each for name, each in report.signatures().items() if name in chosen}
    if not args.no_plots:
        draw_strategies(found, report.folder, simulated=report.simulated)
    if args.json:
        rules = {"by_structure": STRUCTURE_RULES, "by_wording": WORDING_RULES}
        plain = {"simulated": report.simulated, "rules": rules}
        policies = {name: {**each.to_dict(), "signatures": signs[name].to_dict()} for name, each in found.items()}
        print_json({**plain, "policies": policies}, indent=2)
        return 0
    print_table(*strategy_table(found), title=_marked(report))
    for name, each in found.items():
        print(f"\n{name}")
        print("\n".join(f"  {pattern.count:>6,}  {pattern.text}" for pattern in each.patterns))
    print()
    print_table(*signature_table(signs))
    print("\nroles by structure: " + "; ".join(f"{role}: {rule}" for role, rule in STRUCTURE_RULES.items()))
    print("roles by wording: a word of the subtask; --json lists the expressions")
    return 0


def execute_report(args: argparse.Namespace) -> int:
    """Write summaries and plots again, and print the table."""
    report = read_report(Path(args.folder))
    written = write_summaries(report, plots=not args.no_plots)
    summary = report.summary()
    if args.json:
        print_json(summary.to_dict(), indent=2)
    else:
        print_summary(summary)
    print(f"written: {', '.join(path.name for path in written)}", file=sys.stderr)
    return 0


def _comparisons(first: Report, second: Report, args: argparse.Namespace) -> list[Comparison]:
    pairs = _pairs(first, second, _chosen(first, args.policy), args.against)
    if not pairs:
        raise UsageError(f"{first.folder} has only one policy: give a second folder to compare it with")
    names = (first.folder.name, second.folder.name) if first is not second else ("", "")
    return [
        Comparison(
            first=_placed(one, names[0]),
            second=_placed(other, names[1]),
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


def _placed(policy: str, folder: str) -> str:
    return f"{policy} ({folder})" if folder else policy


def _marked(*reports: Any) -> str:
    return "simulated workers" if any(report.simulated for report in reports) else ""


def print_summary(summary: Summary) -> None:
    """Print accuracies and costs."""
    print_table(*accuracy_table(summary), title="simulated workers" if summary.simulated else "")
    print()
    print_table(*cost_table(summary))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table."""
    if sys.stdout.isatty():
        _draw(head, rows, title)
        return
    print(f"{title}\n\n" if title else "", markdown_table(head, rows), sep="")


def _draw(head: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    console = stdout_console()
    if title:
        console.print(f"{title}\n", style="italic", highlight=False, markup=False)
    for number, columns in enumerate(_fitting(head, rows, console.width)):
        if number:
            console.print()
        console.print(_drawn(head, rows, columns))


def _drawn(head: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int]) -> Table:
    table = Table(header_style="bold", box=None, padding=(0, _PADDING))
    for column in columns:
        first = column == 0
        table.add_column(Text(head[column]), justify="left" if first else "right", no_wrap=not first, overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[column]) for column in columns))
    return table


def _fitting(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """The columns of as many tables, one below the other, as it takes to show every column whole."""
    widths = [max(map(len, column)) + 2 * _PADDING for column in zip(head, *rows, strict=True)]
    tables, used = [[0]], widths[0]
    for column in range(1, len(head)):
        if used + widths[column] > width and len(tables[-1]) > 1:
            tables.append([0])
            used = widths[0]
        tables[-1].append(column)
        used += widths[column]
    return tables
