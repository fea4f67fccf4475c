"""What benchmarks share: tables of figures, and what a process uses."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table


def show(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, whose first column has words and whose others have figures."""
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="right" if table.columns else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)


def mark(figure: float, target: float) -> str:
    """What is said of a figure that should be at most the target."""
    return "ok" if figure <= target else "MISSED"


def load() -> str:
    """How busy the machine is."""
    return f"load {', '.join(f'{average:.1f}' for average in os.getloadavg())} on {os.cpu_count()} processors"


def resident_mib(pid: int) -> float:
    """The memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def processor_ms(pid: int) -> float:
    """Processor time that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") * 1e3
