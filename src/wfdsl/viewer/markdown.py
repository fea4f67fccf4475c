"""A run as Markdown, to be pasted where people talk: the question, each step with its reply, and the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from wfdsl.interpreter.record import Run
from wfdsl.render.html import Section
from wfdsl.render.run_page import facts_of_run, said_in, sections_of
from wfdsl.render.text import plain

_FENCE: Final = re.compile(r"`{3,}")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown_of(run: Run, *, as_written: bool = True) -> str:
    """The run as Markdown. Texts of workers are in fences, so that nothing in them acts as Markdown.

    Without `as_written`, replies act as the Markdown that they are.
    """
    return "\n\n".join(_parts(run, _fenced if as_written else str)) + "\n"


def _parts(run: Run, shown: Callable[[str], str]) -> Iterator[str]:
    yield f"# Run {_line(run.id)}"
    yield "\n".join(f"- {fact.label}: {_line(fact.value)}" for fact in facts_of_run(run))
    origin = run.settings.get("origin", {})
    if "from" in origin:
        where = f"round {origin['round']}, " if "round" in origin else ""
        yield f"From run {_line(origin['from'])}, with {where}step {origin['step']} asked again."
    for lost in run.lost:
        step = "/".join(map(str, lost.path))
        yield f"Step {step}, {_line(lost.worker_name)}, was in flight when its process ended; it stays charged."
    yield "## Question"
    for said in said_in(run.question):
        if said.label:
            yield f"{said.label}:"
        yield _fenced(said.text)
    for section in sections_of(run):
        yield from _section(section, 2, shown)
    if run.error:
        yield from ("## Error", _fenced(run.error))
    if run.answer is not None:
        yield from ("## Answer", shown(run.answer))


def _section(section: Section, level: int, shown: Callable[[str], str]) -> Iterator[str]:
    mark = "#" * min(level, 6)
    yield f"{mark} {_line(section.title)}"
    yield from (_line(note.text) for note in section.notes)
    for written in section.written:
        yield from (f"{_line(written.label)}:", _fenced(written.text))
    for step in section.steps:
        yield f"{mark}# {_line(step.name)}: {_line(step.worker)}, {step.status}"
        sees = ", ".join(_line(seen.name) for seen in step.sees) or "the question"
        facts = ", ".join(_line(fact.value) for fact in step.facts)
        yield f"Sees {sees}.{f' {facts}.' if facts else ''}"
        yield _fenced(step.subtask)
        for inside in step.inside:
            yield from _section(inside, level + 2, shown)
        if step.error:
            yield from ("Error:", _fenced(step.error))
        if step.reply is not None:
            yield from ("Reply:", shown(step.reply))


def _line(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", plain(text))


def _fenced(text: str) -> str:
    longest = max((len(found[0]) for found in _FENCE.finditer(text)), default=2)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}text\n{text}\n{fence}"
