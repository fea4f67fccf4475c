"""`wfdsl eval compare`, `equal-cost`, `room`, `strategies` and `report`: what the folders of evaluations say."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeAlias

from rich.table import Table
from rich.text import Text

from wfdsl.cli.display.consoles import stdout_console
from wfdsl.cli.output import print_json
from wfdsl.errors import UsageError
from wfdsl.evaluation.equal_cost import (
    EQUAL_COST,
    EVERYONE,
    ROOM,
    equal_cost_table,
    named,
    room_table,
    rooms_in,
    standings_in,
)
from wfdsl.evaluation.report import (
    COMPARED,
    Comparison,
    Report,
    accuracy_table,
    comparison_table,
    cost_table,
    markdown_table,
    read_report,
    table_of,
    write_summaries,
)
from wfdsl.evaluation.statistics import difference_of
from wfdsl.evaluation.workflow_statistics import ROLES, Signatures, WorkflowStatistics
from wfdsl.interpreter.record import total_usd
from wfdsl.render.status import dollars

Part: TypeAlias = str | tuple[Sequence[str], Sequence[Sequence[str]]]
"""What is printed: a text, or the head and the rows of a table."""
Shown: TypeAlias = tuple[Any, list[Part]]
"""What `--json` prints, and what is printed otherwise."""
_PATTERNS: Final = 5
"""The most frequent workflows that are shown."""


def execute(args: argparse.Namespace) -> int:
    """Print what the action says of the folders."""
    reports = [read_report(folder) for folder in args.folders]
    show(_ACTIONS[args.action](reports, args), args, simulated=any(report.simulated for report in reports))
    if args.action == "report":
        written = write_summaries(reports[0], plots=not args.no_plots)
        print(f"written: {', '.join(path.name for path in written)}", file=sys.stderr)
    return 0


def show(shown: Shown, args: argparse.Namespace, *, simulated: bool) -> None:
    """Print what an action says, or its JSON."""
    plain, parts = shown
    if args.json:
        print_json(plain, indent=2)
    else:
        print_parts(parts, simulated=simulated)


def _compare(reports: Sequence[Report], args: argparse.Namespace) -> Shown:
    """Paired comparisons of the policies of one folder, or of two."""
    if len(reports) > 2:
        raise UsageError(f"{len(reports)} folders: give one, or two")
    first, second = reports[0], reports[-1]
    against = args.against or (first.policies[0] if first is second else None)
    chosen = named(args.policy or EVERYONE, first.policies)
    pairs = [(one, against or one) for one in chosen if first is not second or one != against]
    pairs = [(one, other) for one, other in pairs if other in second.policies]
    if not pairs:
        wanted, names = f" with {against}" if against else "", ", ".join(second.policies)
        raise UsageError(f"nothing to compare{wanted}: {second.folder} has {names}; give --against one of them")
    marks = [f" ({report.folder.name})" if first is not second else "" for report in (first, second)]
    found = [
        Comparison(f"{one}{marks[0]}", f"{other}{marks[1]}", difference_of(first.of(one), second.of(other)))
        for one, other in pairs
    ]
    title = [f"against {found[0].second}"] if len({each.second for each in found}) == 1 else []
    return [asdict(each) for each in found], [*title, comparison_table(found), COMPARED]


def _equal_cost(reports: Sequence[Report], args: argparse.Namespace) -> Shown:
    """Each policy among the others at its cost."""
    standings = {each.policy: each for each in standings_in(reports, among=args.among or EVERYONE)}
    found = [standings[name] for name in named(args.policy or EVERYONE, standings)]
    only = f"\nThe others are only these: {', '.join(args.among)}." if args.among else ""
    return [asdict(each) for each in found], [equal_cost_table(found), f"{EQUAL_COST}{only}"]


def _room(reports: Sequence[Report], args: argparse.Namespace) -> Shown:  # noqa: ARG001  (as every action)
    """What a choice among the workers, and among all policies, would give for each question."""
    [report] = reports
    found, fitted = rooms_in(report), report.fit_costs.values()
    calls = sum(trial.calls for trial in report.trials) + sum(cost.calls for cost in fitted)
    usd = total_usd([*(trial.list_usd for trial in report.trials), *(cost.usd for cost in fitted)])
    cost = f"{calls:,} calls" + ("" if usd is None else f", {dollars(usd)} by the price list")
    parts: list[Part] = [room_table(found), f"{ROOM}\nThis answer has cost {cost}."]
    return {name: asdict(room) for name, room in found.items()}, parts


def _strategies(reports: Sequence[Report], args: argparse.Namespace) -> Shown:
    """What workflows look like, and how Conductors fail."""
    [report] = reports
    found, signs, chosen = report.strategies(), report.signatures(), named(args.policy or EVERYONE, report.policies)
    policies = {name: {**found[name].to_dict(), "signatures": signs[name].to_dict()} for name in chosen}
    columns = {name: _strategy_figures(found[name]) for name in chosen}
    rows = sorted({row: None for column in columns.values() for row in column}, key=lambda row: row[0])
    shown = [[label, *(column.get((place, label), "-") for column in columns.values())] for place, label in rows]
    parts: list[Part] = [(["", *chosen], shown)]
    for name in chosen:
        patterns = list(found[name].patterns.items())[:_PATTERNS]
        parts.append("\n".join([name, *(f"  {count:>6,}  {pattern}" for pattern, count in patterns)]))
    parts.append(table_of([_signature_row(name, signs[name]) for name in chosen]))
    parts.append("; ".join(f"{role}: {rule}" for role, rule in ROLES.items()))
    return {"simulated": report.simulated, "roles": ROLES, "policies": policies}, parts


def _strategy_figures(found: WorkflowStatistics) -> Mapping[tuple[int, str], str]:
    """What a set's column shows, by the place of a group of rows, and row."""
    total = max(found.workflows, 1)
    figures = {(0, "workflows"): f"{found.workflows:,}", (0, "steps on average"): f"{found.mean_steps:.2f}"}
    figures |= {(1, f"topology {name}"): f"{count / total:.1%}" for name, count in found.topologies.items()}
    figures |= {(2, f"steps by {name}"): f"{share:.1%}" for name, share in found.worker_share().items()}
    figures |= {(3, f"role {role}"): f"{count / total:.1%}" for role, count in found.roles.items()}
    figures[4, "distinct patterns"] = f"{found.distinct} ({found.pattern_bits:.2f} bits)"
    return figures


def _signature_row(policy: str, found: Signatures) -> dict[str, str]:
    shares = {"valid": found.valid, "lost by mismatch": found.mismatch, "rounds without change": found.unchanged}
    asked = [
        f"{kind}: {next(iter(own))} {max(own.values()):.0%}, {found.entropy_bits[kind]:.2f} bits"
        for kind, own in found.share.items()
    ]
    row = {name: "-" if value is None else f"{value:.1%}" for name, value in shares.items()}
    return {"policy": policy, **row, "most asked worker": "; ".join(asked)}


def summary_of(reports: Sequence[Report], args: argparse.Namespace) -> Shown:  # noqa: ARG001  (as every action)
    """The summaries, which are written with the plot."""
    [report] = reports
    summary = report.summary()
    return summary.to_dict(), [accuracy_table(summary), cost_table(summary)]


_ACTIONS: Final = {
    "compare": _compare,
    "equal-cost": _equal_cost,
    "room": _room,
    "strategies": _strategies,
    "report": summary_of,
}
SIMULATED: Final = "simulated workers"


def print_parts(parts: Sequence[Part], *, simulated: bool = False) -> None:
    """Print texts and tables, with an empty line between them; the first line says that workers are simulated."""
    first, *others = parts
    if simulated:
        parts = [f"{first}, {SIMULATED}", *others] if isinstance(first, str) else [SIMULATED, *parts]
    for at, part in enumerate(parts):
        if at:
            print()
        if isinstance(part, str):
            print(part)
        else:
            print_table(*part)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: in Markdown, or drawn on a terminal."""
    if not sys.stdout.isatty():
        print(markdown_table(head, rows))
        return
    table = Table(header_style="bold", box=None)
    for place, name in enumerate(head):
        table.add_column(Text(name), justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    stdout_console().print(table)
