"""A workflow written as a workflow file (`.wf`): other names, layouts, comments and quotes than the printer's."""

from __future__ import annotations

from typing import NamedTuple

from wfdsl.language.file_printer import setting_clauses
from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.testing.completion_writer import Written, escaped
from wfdsl.testing.generators import Choices

_STEMS = ("s", "plan", "Solve", "check_it", "étape", "v-1.a", "by", "all1", "步")
_SPACES = (" ", "  ", "\t", "\n    ", " \\\n ", "  # why: \"so\"\n  ")  # fmt: skip
_REMARKS = ("", "\n", '# a comment: step x by 0: "no"\n', "\r\n\r\n")
_HEADINGS = ('title "A test"\n', 'title \'T\'\ndescription """Of\n    two lines."""\n', "wfdsl 1\n")
_BRACES = ("{", "}", "\\{", "\\}")  # the units that are a brace, or end in one that no escape is made of


class _Run(NamedTuple):
    """Steps that are written as one statement."""

    name: str
    first: int
    copies: int


def write_file(rng: Choices, workflow: Workflow) -> Written:
    """The workflow as a workflow file.

    Raises:
        ValueError: a worker is not resolved, or a step has a depth of its own: those need a pool to be read.
    """
    if workflow.unresolved or any(step.depth is not None for step in workflow):
        raise ValueError("workflow files are drawn only for workflows with indices as workers and without depths")
    runs = _runs(rng, workflow)
    text = rng.choose(("", *_HEADINGS))
    for run in runs:
        text += rng.choose(_REMARKS) if rng.one_in(3) else ""
        text += _statement(rng, workflow[run.first], run, runs)
    return Written(text, workflow)


def _runs(rng: Choices, workflow: Workflow) -> list[_Run]:
    stem = rng.choose(_STEMS)
    runs: list[_Run] = []
    at = 0
    while at < len(workflow):
        longest = _longest_run(workflow, at)
        count = longest if longest > 1 and rng.one_in(2) else 1
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


def _statement(rng: Choices, step: Step, run: _Run, runs: list[_Run]) -> str:
    clauses = [f"by{_space(rng)}{step.worker}", *_sees(rng, step.access, runs)]
    clauses += setting_clauses(step)
    if run.copies > 1 or rng.one_in(8):
        clauses.append(f"copies{_space(rng)}{run.copies}")
    words = ["step", run.name, *rng.shuffled(clauses)]
    head = words[0] + "".join(_space(rng) + word for word in words[1:])
    return f"{head}{rng.choose(('', ' '))}:{rng.choose(('', ' ', chr(10) + '  '))}{_text(rng, step.subtask)}\n"


def _sees(rng: Choices, access: Access, runs: list[_Run]) -> list[str]:
    if access == ALL:
        return [f"sees{_space(rng)}all"]
    names = [run.name for run in runs if run.first in access]
    if names:
        return [f"sees{_space(rng)}" + rng.choose((", ", ",", " ,\n")).join(rng.shuffled(names))]
    return ["sees nothing"] if rng.one_in(3) else []


def _text(rng: Choices, value: str) -> str:
    """The subtask as one string, or two neighbours; braces are doubled."""
    cut = rng.number(0, len(value)) if rng.one_in(5) else 0
    strings = [part for part in (value[:cut], value[cut:]) if part] or [""]
    return "\n    ".join(_string(rng, part) for part in strings)


def _string(rng: Choices, value: str) -> str:
    quote = rng.choose(('"', "'"))
    body = "".join([_doubled(unit) for unit in escaped(rng, value, forbidden=quote)])
    mark = quote * 3 if rng.one_in(5) else quote
    return rng.choose(("", "", "u")) + mark + body + mark


def _doubled(unit: str) -> str:
    """A character as it is written, with a brace doubled; one that belongs to an escape (`\\N{BULLET}`) is not."""
    return unit + unit[-1] if unit in _BRACES else unit


def _space(rng: Choices) -> str:
    return rng.choose(_SPACES) if rng.one_in(6) else " "
