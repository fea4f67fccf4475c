"""Start-up time of the command line, as multiples of a bare `python -c pass` in the same run.

Targets: `wfdsl --help` at most 4, `check FILE` and `show FILE` at most 9. CPU time of the child, median of several.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.measuring import mark, show

CORPUS = Path(__file__).parent.parent / "corpus"
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "plan-solve-verify.wf"
ROUNDS = 15
COMPILED = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": "/tmp/wfdsl-compiled"}  # as where it is installed
COMMANDS: list[tuple[str, list[str], float | None]] = [
    ("python -c pass", ["-c", "pass"], None),
    ("wfdsl --help", ["-m", "wfdsl", "--help"], 4.0),
    ("wfdsl check completion", ["-m", "wfdsl", "check", str(CORPUS / "typical_3.txt")], 9.0),
    ("wfdsl check file.wf", ["-m", "wfdsl", "check", str(EXAMPLE)], 9.0),
    ("wfdsl show file.wf", ["-m", "wfdsl", "show", str(EXAMPLE)], 9.0),
]


def main() -> None:
    seconds: dict[str, list[float]] = {name: [] for name, _, _ in COMMANDS}
    for _ in range(ROUNDS):
        for name, arguments, _ in COMMANDS:
            seconds[name].append(_cpu_seconds(arguments))
    bare = statistics.median(seconds[COMMANDS[0][0]])
    rows = []
    for name, _, target in COMMANDS:
        median = statistics.median(seconds[name])
        verdict = "" if target is None else f"{target:.0f} {mark(median / bare, target)}"
        rows.append((name, f"{median * 1e3:.0f}", f"{median / bare:.1f}", verdict))
    show("start-up, as multiples of bare python", ("command", "CPU ms", "multiple", "target"), rows)


def _cpu_seconds(arguments: list[str]) -> float:
    before = _children()
    subprocess.run([sys.executable, *arguments], check=False, capture_output=True, env=os.environ | COMPILED)
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
