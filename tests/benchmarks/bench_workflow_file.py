"""Reading workflow files: what a short one costs, and growth on texts made to be slow.

Run with `make bench` or `python -m tests.benchmarks.bench_workflow_file`. Read and expanded, without the checks.
"""

from __future__ import annotations

import gc
import math
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.language.wf_families import FAMILIES
from tests.language.wf_reading import ToyPool
from wfdsl.language.file_expansion import expand
from wfdsl.language.file_reader import read_workflow_file
from wfdsl.language.source import Source

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "debate.wf"
TARGET_MILLISECONDS = 2.0
TARGET_EXPONENT = 1.25
SMALL, LARGE = 30_000, 1_000_000  # characters


def seconds(text: str, repeats: int = 1) -> float:
    """The shortest processor time of several readings."""
    return min(_once(text) for _ in range(repeats))


def _once(text: str) -> float:
    gc.collect()
    start = time.process_time()
    tree, _ = read_workflow_file(Source(text))
    expand(tree, pool=ToyPool())
    return time.process_time() - start


def _of_size(family: str, chars: int) -> str:
    make = FAMILIES[family]
    return make(max(1, int(chars / (len(make(1000)) / 1000))))


def main() -> None:
    """Print the table."""
    seconds(EXAMPLE.read_text("utf-8"))  # the grammar is built once
    short = 1000 * seconds(EXAMPLE.read_text("utf-8"), 50)
    table = Table("text", "characters", "ms", "growth", title="workflow files")
    table.add_row(EXAMPLE.name, str(EXAMPLE.stat().st_size), f"{short:.2f}", f"target {TARGET_MILLISECONDS} ms")
    for family in FAMILIES:
        small, large = _of_size(family, SMALL), _of_size(family, LARGE)
        taken = seconds(large)
        growth = math.log(taken / seconds(small, 3)) / math.log(len(large) / len(small))
        mark = "" if growth <= TARGET_EXPONENT else f" over {TARGET_EXPONENT}"
        table.add_row(family, str(len(large)), f"{1000 * taken:.0f}", f"{growth:.2f}{mark}")
    Console().print(table)


if __name__ == "__main__":
    main()
