"""A workflow written as a workflow file (`.wf`): other names, layouts, comments and quotes than the printer's."""

from __future__ import annotations

from typing import NamedTuple

from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.testing.pen import Pen
from wfdsl.testing.strings import escaped
from wfdsl.testing.writing import Written

_STEMS = ("s", "plan", "Solve", "check_it", "étape", "v-1.a", "by", "all1", "步")
_SPACES = (" ", "  ", "\t", "\n    ", " \\\n ", "  # why: \"so\"\n  ")  # fmt: skip
_REMARKS = ("", "\n", '# a comment: step x by 0: "no"\n', "\r\n\r\n")
_HEADINGS = ('title "A test"\n', 'title \'T\'\ndescription """Of\n    two lines."""\n', "wfdsl 1\n")
_STRAIGHT = {"{": "{{", "}": "}}"}


class _Run(NamedTuple):
    """Steps that are written as one statement."""

    name: str
    first: int
    copies: int


def write_file(pen: Pen, workflow: Workflow) -> Written:
    """The workflow as a workflow file.

    Raises:
        ValueError: a worker is not resolved, or a step has a depth of its own: those need a pool to be read.
    """
    if workflow.unresolved or any(step.depth is not None for step in workflow):
        raise ValueError("workflow files are drawn for workflows with ordinals as workers and without depths")
    runs = _runs(pen, workflow)
    text = pen.choose(("", *_HEADINGS))
    for run in runs:
        text += pen.choose(_REMARKS) if pen.seldom(3) else ""
        text += _statement(pen, workflow[run.first], run, runs)
    return Written(text, workflow)


def _runs(pen: Pen, workflow: Workflow) -> list[_Run]:
    stem = pen.choose(_STEMS)
    runs: list[_Run] = []
    at = 0
    while at < len(workflow):
        longest = _longest_run(workflow, at)
        count = longest if longest > 1 and pen.seldom(2) else 1
        runs.append(_Run(f"{stem}{at}", at, count))
        at += count
    return runs


def _longest_run(workflow: Workflow, first: int) -> int:
    """How many equal steps follow one another that every later step sees all or none of."""
    step = workflow[first]
    count = 1
    while step.access != ALL and first + count < len(workflow) and workflow[first + count] == step:
        count += 1
    while count > 1 and not _always_together(workflow, set(range(first, first + count))):
        count -= 1
    return count


def _always_together(workflow: Workflow, members: set[int]) -> bool:
    return all(step.access == ALL or members <= set(step.access) or not members & set(step.access) for step in workflow)


def _statement(pen: Pen, step: Step, run: _Run, runs: list[_Run]) -> str:
    clauses = [f"by{_space(pen)}{step.worker}", *_sees(pen, step.access, runs)]
    if run.copies > 1 or pen.seldom(8):
        clauses.append(f"copies{_space(pen)}{run.copies}")
    words = ["step", run.name, *pen.shuffled(clauses)]
    head = words[0] + "".join(_space(pen) + word for word in words[1:])
    return f"{head}{pen.choose(('', ' '))}:{pen.choose(('', ' ', chr(10) + '  '))}{_text(pen, step.subtask)}\n"


def _sees(pen: Pen, access: Access, runs: list[_Run]) -> list[str]:
    if access == ALL:
        return [f"sees{_space(pen)}all"]
    names = [run.name for run in runs if run.first in access]
    if names:
        return [f"sees{_space(pen)}" + pen.choose((", ", ",", " ,\n")).join(pen.shuffled(names))]
    return ["sees nothing"] if pen.seldom(3) else []


def _text(pen: Pen, value: str) -> str:
    """The subtask as one string, or two neighbours; braces are doubled."""
    cut = pen.number(0, len(value)) if pen.seldom(5) else 0
    strings = [part for part in (value[:cut], value[cut:]) if part] or [""]
    return "\n    ".join(_string(pen, part) for part in strings)


def _string(pen: Pen, value: str) -> str:
    quote = pen.choose(('"', "'"))
    body = "".join([_STRAIGHT.get(unit, unit) for unit in escaped(pen, value, forbidden=quote)])
    mark = quote * 3 if pen.seldom(5) else quote
    return pen.choose(("", "", "u")) + mark + body + mark


def _space(pen: Pen) -> str:
    return pen.choose(_SPACES) if pen.seldom(6) else " "
