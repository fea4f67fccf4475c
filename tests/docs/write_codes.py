"""The reference of diagnostic codes, from the table that the program has them from."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from wfdsl.api import analyze
from wfdsl.cli.check import FORMS, KINDS
from wfdsl.language.codes import CODES
from wfdsl.language.diagnostics import as_text
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

from .pages import table

if TYPE_CHECKING:
    from wfdsl.language.codes import Code


POOL = Pool([WorkerEntry(name=name, provider="scripted") for name in ("planner", "solver")])


def code_list() -> str:
    """All codes in a table."""
    rows = ([f"[`{code.name}`](#{code.name})", code.kind, FORMS[code.form], code.summary] for code in CODES.values())
    return table(["code", "kind", "in", "what it says"], rows)


def code_pages() -> str:
    """A section for each code, under a heading for each group."""
    sections = []
    for title, codes in groupby(CODES.values(), _group):
        sections += [f"## {title}", *(_section(code) for code in codes)]
    return "\n\n".join(sections)


def rendered(code: Code) -> str:
    """What `wfdsl check` says to the code's example, of this code alone."""
    if _is_file(code):
        checked = analyze(code.wrong, name="example.wf", form="wf")
    else:
        checked = analyze(code.wrong, pool=POOL if code.name == "worker-name" else None)
    return "\n\n".join(as_text(found, checked.source) for found in checked.diagnostics if found.code == code.name)


def _group(code: Code) -> str:
    if code.kind == "repair":
        return "Repairs"
    return {"completion": "Completions", "both": "Both forms", "wf": "Workflow files"}[code.form]


def _section(code: Code) -> str:
    parts = [
        f"### {code.name}",
        f"{_sentence(code.summary)} ({KINDS[code.kind]}; {FORMS[code.form]})",
        code.explanation,
    ]
    if code.wrong:
        parts += ["Wrong:", _block(code, code.wrong, error=True), "The message:", _fenced("text", rendered(code))]
    if code.right:
        parts += ["Right:", _block(code, code.right, error=False)]
    return "\n\n".join(parts)


def _block(code: Code, text: str, *, error: bool) -> str:
    invalid = error and code.kind in {"error", "repair"}
    name = "worker-type" if code.name == "worker-name" else code.name  # which the page's test finds without a pool
    mark = f"<!-- error: {name} -->\n" if invalid else ""
    return mark + _fenced("wf" if _is_file(code) else "completion", text)


def _fenced(language: str, text: str) -> str:
    """A text in a fence that is longer than those in it."""
    marks = "`" * max([3, *(len(found) + 1 for found in re.findall("`{3,}", text))])
    return f"{marks}{language}\n{text}\n{marks}"


def _is_file(code: Code) -> bool:
    return code.form == "wf"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
