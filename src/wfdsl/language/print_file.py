"""A workflow as a workflow file: one plain step for each of its steps. Reading it gives an equal workflow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wfdsl.language.file_scan import file_grammar
from wfdsl.language.file_text import block, quoted
from wfdsl.language.file_workers import worker_clause
from wfdsl.language.format_file import format_file
from wfdsl.language.source import Source
from wfdsl.language.tree import ALL
from wfdsl.language.workflow_file import read_workflow_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.language.workflow import Step, Workflow

_COPY = re.compile(r"\[([0-9]+)\]\Z")
_SIGHT = ("STEP", "NAME", "BY", "INT", "SEES")


def print_file(
    workflow: Workflow, *, names: Sequence[str] | None = None, title: str = "", description: str = ""
) -> str:
    """The text of a workflow file.

    Args:
        workflow: valid steps; workers that no pool has resolved are written as they were.
        names: what the steps are called; copies as in `attempt[1]`. Names that no step can have are replaced.
        title: the file's title.
        description: its description.
    """
    called = _step_names(names or (), len(workflow))
    headings = [("title", title), ("description", description)]
    statements = [f"{keyword} {_literal(text)}\n" for keyword, text in headings if text]
    statements += ["\n"] if statements else []
    statements += [_statement(step, called[index], called) for index, step in enumerate(workflow)]
    tree, _ = read_workflow_file(Source("".join(statements)))
    return format_file(tree)


def _statement(step: Step, name: str, names: Sequence[str]) -> str:
    words = ["step", name, "by", worker_clause(step.worker)]
    if step.depth is not None:
        words += ["depth", str(step.depth)]
    if step.access == ALL:
        words += ["sees", ALL]
    elif step.access:
        words += ["sees", ", ".join(names[index] for index in step.access)]
    return f"{' '.join(words)}: {_literal(step.subtask, braces=True)}\n"


def _literal(text: str, *, braces: bool = False) -> str:
    several = block(text, "", braces=braces) if "\n" in text else None
    return several or quoted(text, braces=braces)


def _step_names(wanted: Sequence[str], count: int) -> list[str]:
    """A name for each step that can be written and read, and no name twice."""
    grammar = file_grammar()
    names: list[str] = []
    taken: set[str] = set()
    spoken_for = set(wanted)
    for index in range(count):
        name = _COPY.sub(r"-\1", wanted[index]) if index < len(wanted) else ""
        if not grammar.is_name(name, *_SIGHT) or name in taken:
            name = f"s{index}"
            while name in taken or name in spoken_for:
                name += "_"
        names.append(name)
        taken.add(name)
    return names
