"""Tables on standard output: drawn on a terminal, Markdown where somebody else reads on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from wfdsl_rl.evaluation.summary import Summary

_PADDING: Final = 1


def print_summary(summary: Summary) -> None:
    """Print accuracies and costs."""
    from wfdsl_rl.evaluation.tables import accuracy_table, cost_table

    print_table(*accuracy_table(summary), title="simulated workers" if summary.simulated else "")
    print()
    print_table(*cost_table(summary))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table."""
    if sys.stdout.isatty():
        _draw(head, rows, title)
        return
    from wfdsl_rl.evaluation.tables import markdown_table

    print(f"{title}\n\n" if title else "", markdown_table(head, rows), sep="")


def _draw(head: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich.console import Console

    console = Console()
    if title:
        console.print(f"{title}\n", style="italic", highlight=False, markup=False)
    for number, columns in enumerate(_fitting(head, rows, console.width)):
        if number:
            console.print()
        console.print(_drawn(head, rows, columns))


def _drawn(head: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int]) -> Table:
    from rich.table import Table
    from rich.text import Text

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
