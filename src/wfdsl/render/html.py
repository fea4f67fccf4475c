"""A run or a workflow as one HTML page that needs nothing else: no script, no font, no picture is fetched.

All text of workers and models is escaped and never read as markup, and a content security policy lets the page use its
own two style sheets and nothing more. Steps open and close with the keyboard; `#step=2` in the address leads to step 2,
`#step=0.1.2` to step 2 of round 1 inside step 0.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from wfdsl.language.workflow import Workflow
from wfdsl.render.markup import STYLE as MARKUP_STYLE
from wfdsl.render.markup import markup
from wfdsl.render.model import Drawing, Note, Options, panel_of_value
from wfdsl.render.status import State
from wfdsl.render.svg import STYLE as PICTURE_STYLE
from wfdsl.render.svg import svg_of
from wfdsl.render.text import harmless


class Fact(NamedTuple):
    """A figure with its name."""

    label: str
    value: str


class Link(NamedTuple):
    """A reference to a step of the page."""

    text: str
    anchor: str


class Labelled(NamedTuple):
    """A text that somebody wrote, and who or what it is."""

    label: str
    text: str


class Span(NamedTuple):
    """When a step ran, as parts of the whole run from 0 to 1."""

    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepText:
    """A step on the page."""

    anchor: str
    name: str
    worker: str
    subtask: str
    state: State | None = None
    facts: tuple[Fact, ...] = ()
    span: Span | None = None
    sees: tuple[Link, ...] = ()
    messages: tuple[Labelled, ...] = ()
    reply: str | None = None
    error: str = ""
    inside: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A workflow on the page, or what is said where nothing was run."""

    anchor: str
    title: str
    notes: tuple[Note, ...] = ()
    written: tuple[Labelled, ...] = ()
    """What the Conductor wrote."""
    steps: tuple[StepText, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything that the page says."""

    title: str
    svg: str
    description: str = ""
    facts: tuple[Fact, ...] = ()
    notes: tuple[Note, ...] = ()
    question: tuple[Labelled, ...] = ()
    answer: str | None = None
    sections: tuple[Section, ...] = ()


_IN_SUMMARY = ("time", "tokens", "cost", "retries")
_STYLE = """
:root{color-scheme:light dark;--ink:#1f2430;--soft:#5b6472;--page:#ffffff;--box:#f6f7f9;--line:#d5d9e0;--link:#1d5bc4;
--good:#14713f;--bad:#b3261e;--warn:#7a5000}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#a3acbb;--page:#16191f;--box:#20242c;--line:#39404c;
--link:#8ab4f8;--good:#4cc38a;--bad:#ff9d96;--warn:#e3b34d}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem 1.25rem 4rem;background:var(--page);color:var(--ink);
font:15px/1.5 -apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
h1{font-size:1.35rem;margin:.5rem 0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:1.75rem 0 .5rem}
h3{font-size:.8rem;margin:1rem 0 .25rem;color:var(--soft);font-weight:600}
a{color:var(--link)}:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.skip{position:absolute;left:-100rem}.skip:focus{position:static}
dl{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;margin:.25rem 0}dt{color:var(--soft);font-size:.8rem}dd{margin:0}
figure{margin:1rem 0;overflow-x:auto}
pre{margin:0;padding:.6rem .8rem;background:var(--box);border:1px solid var(--line);border-radius:8px;
white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext;font:13px/1.5 ui-monospace,Menlo,Consolas,monospace}
details{border:1px solid var(--line);border-radius:8px;margin:.5rem 0;padding:0 .8rem}
details[open]{padding-bottom:.8rem}
summary{cursor:pointer;padding:.5rem 0;overflow-wrap:anywhere}
summary .name{font-weight:600}summary .soft,.soft{color:var(--soft)}
.state{font-size:.8rem;font-weight:600;border:1px solid;border-radius:99px;padding:0 .5rem;color:var(--soft)}
.state.done{color:var(--good)}.state.failed{color:var(--bad)}details.failed{border:2px solid var(--bad)}
.note{color:var(--warn);overflow-wrap:anywhere}.note.bad{color:var(--bad);font-weight:600}
.error{border-color:var(--bad);color:var(--bad)}
.bar{display:block;width:100%;height:6px;margin-top:.25rem}.bar rect{fill:var(--line)}.bar .ran{fill:var(--link)}
ul{margin:.25rem 0;padding-left:1.25rem}
@media print{details{break-inside:avoid}}
""".strip()
_STYLE += f"\n{MARKUP_STYLE}"


def page_of_value(workflow: Workflow, options: Options) -> Page:
    """The page of a workflow that has not run."""
    picture = panel_of_value(workflow, options)
    assert picture.drawing is not None  # it is a workflow's
    return Page(
        title=picture.title or "Workflow",
        description=picture.description,
        svg=svg_of(picture),
        sections=(Section(anchor="workflow", title="Steps", steps=tuple(_planned(picture.drawing))),),
    )


def _planned(drawing: Drawing) -> Iterator[StepText]:
    """The steps of a workflow that has not run."""
    names = [drawing.names[step] if drawing.names else f"step {step}" for step in range(len(drawing.workflow))]
    for index, card in drawing.by_step():
        yield StepText(
            anchor=anchor_of((index,)),
            name=names[index],
            worker=card.worker_label,
            subtask=drawing.workflow[index].subtask,
            sees=tuple(Link(names[seen], anchor_of((seen,))) for seen in drawing.workflow.sees(index)),
            facts=tuple(Fact("marks", tag) for tag in card.tags),
        )


def dotted(path: tuple[int, ...]) -> str:
    """The path of a step as addresses have it."""
    return ".".join(map(str, path))


def anchor_of(path: tuple[int, ...]) -> str:
    """The address of a step on its page."""
    return f"step={dotted(path)}"


def html_of(page: Page) -> str:
    """Write the page."""
    return "\n".join(_document(page)) + "\n"


def fragment_of(page: Page) -> str:
    """The page without its head, for a notebook, which shows it among others: the picture, the answer and the steps."""
    parts = [page.svg]
    if page.answer is not None:
        parts += ["<details open><summary>Answer</summary>", markup(page.answer), "</details>"]
    for section in page.sections:
        for step in section.steps:
            parts += _step(step, with_anchor=False)
    return "\n".join(["<div>", *parts, "</div>"])


def _document(page: Page) -> Iterator[str]:
    policy = (
        f"default-src 'none'; style-src {_hash(_STYLE)} {_hash(PICTURE_STYLE)}; base-uri 'none'; form-action 'none'"
    )
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield '<head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{_line(page.title)}</title>"
    yield f"<style>{_STYLE}</style></head>"
    yield '<body><a class="skip" href="#steps">Skip to the steps</a>'
    yield f'<header><h1 dir="auto">{_line(page.title)}</h1>'
    if page.description:
        yield f'<p dir="auto">{_line(page.description)}</p>'
    yield from _facts(page.facts)
    yield from _notes(page.notes)
    yield "</header><main>"
    if page.question:
        yield '<section aria-label="Question"><h2>Question</h2>'
        yield from _labelled(page.question)
        yield "</section>"
    if page.answer is not None:
        yield f'<section aria-label="Answer"><h2>Answer</h2>{markup(page.answer)}</section>'
    yield f'<section aria-label="Picture"><h2>Picture</h2><figure tabindex="0" aria-label="Picture">{page.svg}</figure>'
    yield '</section><div id="steps" tabindex="-1">'
    for section in page.sections:
        yield from _section(section)
    yield "</div></main></body></html>"


def _hash(style: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"


def _section(section: Section) -> Iterator[str]:
    yield f'<section aria-label="{_line(section.title)}"><h2 id="{section.anchor}">{_line(section.title)}</h2>'
    yield from _inside(section)
    yield "</section>"


def _inside(section: Section) -> Iterator[str]:
    yield from _notes(section.notes)
    if section.written:
        yield "<details><summary>What the Conductor wrote</summary>"
        yield from _labelled(section.written)
        yield "</details>"
    for step in section.steps:
        yield from _step(step)


def _step(step: StepText, *, with_anchor: bool = True) -> Iterator[str]:
    failed = " failed" if step.state == "failed" else ""
    yield f'<details class="step{failed}"{" open" if failed else ""}><summary>'
    if step.state:
        yield f'<span class="state {step.state}">{step.state}</span>'
    yield f'<bdi class="name">{_line(step.name)}</bdi> <bdi>{_line(step.worker)}</bdi>'
    figures = " · ".join(fact.value for fact in step.facts if fact.label in _IN_SUMMARY)
    yield f'<span class="soft">{_line(figures)}</span>'
    if step.span:
        yield _bar(step.span)
    anchor = f' id="{step.anchor}"' if with_anchor else ""
    yield f"</summary><div{anchor}>"
    yield from _facts(step.facts)
    yield f"<h3>Subtask</h3>{_pre(step.subtask)}"
    if step.sees and with_anchor:
        links = ", ".join(f'<a href="#{link.anchor}">{_line(link.text)}</a>' for link in step.sees)
        yield f"<h3>Sees</h3><p>{links}</p>"
    if step.messages:
        yield "<details><summary>What this worker saw</summary>"
        yield from _labelled(step.messages)
        yield "</details>"
    for section in step.inside:
        yield f"<details open><summary>{_line(section.title)}</summary>"
        yield from _inside(section)
        yield "</details>"
    if step.error:
        yield f'<h3>Error</h3><pre class="error" dir="auto">{_text(step.error)}</pre>'
    if step.reply is not None:
        yield f"<h3>Reply</h3>{markup(step.reply)}"
    yield "</div></details>"


def _bar(span: Span) -> str:
    start, wide = 100 * span.start, max(100 * (span.end - span.start), 0.5)
    return (
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect x="0" y="2" width="100" height="2"/>'
        f'<rect class="ran" x="{min(start, 99.5):.2f}" y="0" width="{wide:.2f}" height="6"/></svg>'
    )


def _facts(facts: tuple[Fact, ...]) -> Iterator[str]:
    if facts:
        yield "<dl>"
        yield from (f"<div><dt>{_line(fact.label)}</dt><dd>{_line(fact.value)}</dd></div>" for fact in facts)
        yield "</dl>"


def _notes(notes: tuple[Note, ...]) -> Iterator[str]:
    for note in notes:
        yield f'<p class="note{" bad" if note.is_bad else ""}">{_line(note.text)}</p>'


def _labelled(texts: tuple[Labelled, ...]) -> Iterator[str]:
    for each in texts:
        yield f"<h3>{_line(each.label)}</h3>" if each.label else ""
        yield _pre(each.text)


def _pre(text: str) -> str:
    return f'<pre dir="auto">{_text(text)}</pre>'


def _line(text: str) -> str:
    return escape(harmless(text).replace("\n", " "))


def _text(text: str) -> str:
    """Escaped text. A line break right after a start tag would be lost, so one is put there."""
    return "\n" + escape(harmless(text))
