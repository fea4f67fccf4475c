"""Reading completions and workflow files: the cost beside two references, and growth on texts made to be slow.

Run with `make bench` or `python -m tests.benchmarks parse`. Workflow files are read and expanded, unchecked.
Figures are ratios within one run. Two references evaluate each list with `ast.literal_eval`: one finds it with a single
regular expression, which is the fastest way; the other counts brackets.
"""

from __future__ import annotations

import ast
import math
import re
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.measuring import mark, show
from tests.language import wf_families
from tests.language.wf_reading import ToyPool
from wfdsl import analyze
from wfdsl.language.file_expansion import expand
from wfdsl.language.file_reader import read_workflow_file
from wfdsl.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

CORPUS = Path(__file__).parent.parent / "corpus"
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "debate.wf"
TARGET_RATIO = 2.0
TARGET_FILE_MS = 2.0
TARGET_EXPONENT = 1.25
TARGET_SECONDS_PER_MB = 1.0
SMALL, LARGE = 10_000, 1_000_000  # characters

_LABELS = [re.compile(rf"(?<!\w){name}(?!\w)\s*[=:]\s*(?=\[)") for name in ("model_id", "subtasks", "access_list")]
_BRACKETS = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[\[\]]", re.DOTALL)

_STRING = r"\"(?:[^\"\\]+|\\.)*\"|'(?:[^'\\]+|\\.)*'"
_ITEMS = rf"(?:[^\[\]\"']+|{_STRING})"
_LISTS = [
    re.compile(rf"\b{name}\s*[=:]\s*({list_})")
    for name, list_ in (
        ("model_id", r"\[[^\]]*\]"),
        ("subtasks", rf"\[{_ITEMS}*\]"),
        ("access_list", rf"\[(?:{_ITEMS}|\[{_ITEMS}*\])*\]"),
    )
]


def regular_expressions(text: str) -> list[Any]:
    """The three lists of a well-behaved completion: one regular expression for each label with its list."""
    return [ast.literal_eval(lists.findall(text)[-1]) for lists in _LISTS]


def bracket_count(text: str) -> list[Any]:
    """The same with a regular expression for each label, and a count of brackets that knows strings."""
    found = []
    for label in _LABELS:
        start = list(label.finditer(text))[-1].end()
        found.append(ast.literal_eval(text[start : _end_of_list(text, start)]))
    return found


def _end_of_list(text: str, start: int) -> int:
    depth = 0
    for match in _BRACKETS.finditer(text, start):
        depth += {"[": 1, "]": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    raise ValueError("the list does not end")


FAMILIES: dict[str, Callable[[int], str]] = {
    "plain prose": lambda n: "A careful look at the question shows two parts. " * (n // 48),
    "prose with every delimiter": lambda n: "Consider [a], {b}, (c), 'd', \"e\" and model x. " * (n // 48),
    "labels without lists": lambda n: "model_id subtasks access_list " * (n // 30),
    "labels with equals": lambda n: "model_id = " * (n // 11),
    "open lists": lambda n: "model_id = [\n" * (n // 13),
    "open lists of strings": lambda n: 'subtasks = ["' * (n // 13),
    "comments before labels": lambda n: "model_id = [ # subtasks = [\n" * (n // 28),
    "spaces after a label": lambda n: "model_id =" + " " * n + "(0)",
    "spaces behind labels": lambda n: ("model_id" + " " * 90 + "\n") * (n // 99),
    "spaces after a fence": lambda n: "```" + " " * n + '\nsubtasks = ["x"]',
    "opening brackets": lambda n: "model_id = " + "[" * n,
    "opening round brackets": lambda n: "subtasks = [" + "(" * n,
    "matched round brackets": lambda n: "subtasks = [" + "(" * (n // 2) + '"a"' + ")" * (n // 2) + "]",
    "braces": lambda n: "{" * n,
    "backslashes in a string": lambda n: 'subtasks = ["' + "\\" * n,
    "quotes": lambda n: 'subtasks = ["a" ' + '"' * n,
    "triple quotes": lambda n: "subtasks = [" + '"""' * (n // 3),
    "one long string": lambda n: 'subtasks = ["' + "x" * n + '"]',
    "one long list": lambda n: "model_id = [" + "0, " * (n // 3) + "0]",
    "one long access entry": lambda n: "access_list = [[" + "0, " * (n // 3) + "0]]",
    "wrong types": lambda n: "model_id = [" + "None, " * (n // 6) + "0]",
    "one long number": lambda n: "model_id = [" + "9" * n + "]",
    "annotations": lambda n: "model_id: list[list[ " * (n // 21),
    "annotation without end": lambda n: "model_id: list[" + "a, " * (n // 3),
    "annotation of many brackets": lambda n: "model_id: list[" + "[a]" * (n // 3),
    "mentions": lambda n: 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]\n' + "model_id = [0, 1]\n" * (n // 18),
    "mentions of one label": lambda n: "model_id = [0]\n" * (n // 15),
    "numbers as strings": lambda n: "model_id = [" + '"0", ' * (n // 5) + "0]",
    "tiny steps": lambda n: (
        "model_id = ["
        + "0," * (n // 9)
        + "]\nsubtasks = ["
        + "'a'," * (n // 9)
        + "]\naccess_list = ["
        + "[]," * (n // 9)
        + "]"
    ),
    "fences": lambda n: "model_id\n```python\n" * (n // 19),
    "changes": lambda n: 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]\n' + "model_id += [1]\n" * (n // 16),
    "changes without end": lambda n: "model_id[0" * (n // 10),
    "summaries": lambda n: "<details><summary>" * (n // 18),
    "prefixed tags": lambda n: "<abcdefghijklmnopqrs" * (n // 20),
    "comments with slashes": lambda n: "model_id = [" + "0, // x\n" * (n // 8) + "0]",
    "escaped strings": lambda n: "subtasks = [" + '\\"a\\", ' * (n // 7) + '\\"a\\"]',
    "escaped line breaks": lambda n: "model_id = [" + "\\n" * (n // 2),
    "tags": lambda n: "<model_id>" * (n // 10),
    "remarks": lambda n: "model_id (" * (n // 10),
    "reasoning tags": lambda n: "<think></think>" * (n // 15),
    "drafts": lambda n: 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]\n' * (n // 50),
    "curly quotes": lambda n: "subtasks = [“" * (n // 13),
    "apostrophes": lambda n: "subtasks = [‘a’b" + "’b" * (n // 2),
    "no-break spaces": lambda n: "model_id = [" + "0,\u00a0" * (n // 3) + "0]",
    "line breaks in strings": lambda n: 'subtasks = ["' + "a\n" * (n // 2) + '"]',
    "steps that are not there": lambda n: (
        'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[' + "9, " * (n // 3) + "9]]"
    ),
    "floats": lambda n: "model_id = [" + "1.0, " * (n // 5) + '0]\nsubtasks = ["a"]\naccess_list = [[]]',
    "many alls": lambda n: 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[' + '"all", ' * (n // 7) + "0]]",
    "escapes": lambda n: 'subtasks = ["' + "\\u0041" * (n // 6) + '"]',
    "broken escapes": lambda n: 'subtasks = ["' + "\\u00" * (n // 4) + '"]',
}


def main() -> None:
    """Print the tables."""
    _costs()
    _growth("completions", FAMILIES, _checked)
    _growth("workflow files", {name: _sized(make) for name, make in wf_families.FAMILIES.items()}, _file)


def _costs() -> None:
    rows, worst = [], []
    for steps in (2, 3, 5):
        text = (CORPUS / f"typical_{steps}.txt").read_text()
        runs = [[_seconds(read, text) for read in (regular_expressions, bracket_count, _checked)] for _ in range(15)]
        fast, slow = (statistics.median(run[2] / run[which] for run in runs) for which in (0, 1))
        worst.append(fast)
        times = [f"{statistics.median(column) * 1e6:.0f}" for column in zip(*runs, strict=True)]
        rows.append((f"{steps} steps", *times, f"{fast:.2f}", f"{slow:.2f}"))
    rows.append(("largest", "", "", "", f"{max(worst):.2f} {mark(max(worst), TARGET_RATIO)}", ""))
    headings = "completion", "regular expressions us", "bracket count us", "wfdsl us", "ratio", "ratio"
    show(f"parse + check against two references (target: at most {TARGET_RATIO:.1f})", headings, rows)
    _file(EXAMPLE.read_text("utf-8"))  # the grammar is built once
    short = 1e3 * min(_seconds(_file, EXAMPLE.read_text("utf-8"), times=1) for _ in range(50))
    print(f"{EXAMPLE.name}: {short:.2f} ms (target {TARGET_FILE_MS:g} ms: {mark(short, TARGET_FILE_MS)})")


def _growth(what: str, families: dict[str, Callable[[int], str]], read: Callable[[str], Any]) -> None:
    rows = []
    for name, make in families.items():
        small, large = make(SMALL), make(LARGE)
        few = min(_seconds(read, small, times=3) for _ in range(3))
        many = min(_seconds(read, large, times=1) for _ in range(2))
        exponent = math.log(many / few) / math.log(len(large) / len(small))
        per_mb = mark(many / (len(large) / 1e6), TARGET_SECONDS_PER_MB) if read is _checked else ""
        shown = f"{few * 1e3:.2f}", f"{many * 1e3:.0f}", f"{exponent:.2f} {mark(exponent, TARGET_EXPONENT)}"
        rows.append((name, *shown, per_mb))
    headings = what, "10 KB ms", "1 MB ms", f"exponent, at most {TARGET_EXPONENT}", "at most 1 s per MB"
    show(f"growth from 10 KB to 1 MB: {what}", headings, rows)


def _checked(text: str) -> None:
    analyze(text, pool=7, profile="strict")


def _file(text: str) -> None:
    tree, _ = read_workflow_file(Source(text))
    expand(tree, pool=ToyPool())


def _sized(make: Callable[[int], str]) -> Callable[[int], str]:
    """A family of workflow files by the characters of a text, not by its items."""
    return lambda chars: make(max(1, int(chars / (len(make(1000)) / 1000))))


def _seconds(read: Callable[[str], Any], text: str, *, times: int = 100) -> float:
    start = time.process_time()
    for _ in range(times):
        read(text)
    return (time.process_time() - start) / times
