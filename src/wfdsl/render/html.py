"""Texts to read, as a page and its parts: sections, each with the steps of a workflow; and the page that needs nothing.

No script, no font, no picture is fetched by it. All text of workers and models is escaped and never read as markup, and
a content security policy lets the page use its own two style sheets and nothing more. Steps open and close with the
keyboard; `#step=2` in the address leads to step 2, `#step=0.1.2` to step 2 of round 1 inside step 0.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from wfdsl.language.workflow import Workflow
from wfdsl.render.markup import STYLE as MARKUP_STYLE
from wfdsl.render.markup import markup
from wfdsl.render.model import Drawing, Note, Options, panel_of_value, worker_label
from wfdsl.render.svg import STYLE as PICTURE_STYLE
from wfdsl.render.svg import svg_of
from wfdsl.render.text import harmless

StepPath: TypeAlias = tuple[int, ...]
"""Where a step is: its index, then for each level the round and the index inside."""


class Fact(NamedTuple):
    """A figure with its name."""

    label: str
    value: str


class Said(NamedTuple):
    """A text that somebody wrote, and who or what it is."""

    label: str
    text: str
    is_call: bool = False
    """Whether it is a call of a tool."""


class Written(NamedTuple):
    """A completion of a Conductor."""

    label: str
    text: str
    problems: tuple[str, ...]


class Link(NamedTuple):
    """A step to go to."""

    name: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepText:
    """A step on the page."""

    path: StepPath
    name: str
    worker: str
    subtask: str
    status: str = ""
    """Empty: it is not of a run."""
    facts: tuple[Fact, ...] = ()
    sees: tuple[Link, ...] = ()
    messages: tuple[Said, ...] = ()
    reply: str | None = None
    error: str = ""
    inside: tuple[Section, ...] = ()

    @property
    def id(self) -> str:
        """The path as addresses have it."""
        return dotted(self.path)

    @property
    def figures(self) -> str:
        """What is most worth knowing, in one line."""
        return " · ".join(fact.value for fact in self.facts if fact.label in _FIGURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A workflow on the page, or what is said where nothing was run."""

    title: str
    path: StepPath = ()
    """The step that it is inside of and the round; empty for the one workflow of a page."""
    notes: tuple[Note, ...] = ()
    written: tuple[Written, ...] = ()
    steps: tuple[StepText, ...] = ()

    @property
    def id(self) -> str:
        """The address on the page."""
        return f"round={dotted(self.path)}" if self.path else "workflow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything that the page says."""

    title: str
    svg: str
    description: str = ""
    facts: tuple[Fact, ...] = ()
    notes: tuple[Note, ...] = ()
    question: tuple[Said, ...] = ()
    answer: str | None = None
    sections: tuple[Section, ...] = ()


_FIGURES = ("time", "tokens", "cost", "retries", "source")
_HERE = Path(__file__).parent
_STYLE = f"{(_HERE / 'styles' / 'page.css').read_text('utf-8').strip()}\n{MARKUP_STYLE}"


def page_of_value(workflow: Workflow, options: Options) -> Page:
    """The page of a workflow that has not run."""
    picture = panel_of_value(workflow, options)
    assert picture.drawing is not None  # it is a workflow's
    return Page(
        title=picture.title or "Workflow",
        description=picture.description,
        svg=svg_of(picture),
        sections=(Section(title="Steps", steps=tuple(_planned(picture.drawing))),),
    )


def _planned(drawing: Drawing) -> Iterator[StepText]:
    """The steps of a workflow that has not run."""
    names = [drawing.names[step] if drawing.names else f"step {step}" for step in range(len(drawing.workflow))]
    for index in range(len(drawing.workflow)):
        card = drawing.cards[drawing.card_of(index)]
        yield StepText(
            path=(index,),
            name=names[index],
            worker=worker_label(drawing.workflow[index].worker, drawing.options.get("workers") or {}),
            subtask=drawing.workflow[index].subtask,
            sees=tuple(Link(names[seen], str(seen)) for seen in drawing.workflow.sees(index)),
            facts=tuple(Fact("marks", tag) for tag in card.tags),
        )


def dotted(path: StepPath) -> str:
    """The path of a step as addresses have it."""
    return ".".join(map(str, path))


def html_of(page: Page) -> str:
    """Write the page."""
    return _template("page.html").render(
        page=page,
        svg=Markup(page.svg),
        style=Markup(_STYLE),
        hashes=[hash_of(each) for each in (_STYLE, PICTURE_STYLE)],
    )


def fragment_of(page: Page) -> str:
    """The page without its head, for a notebook, which shows it among others: the picture, the answer and the steps."""
    return _template("fragment.html").render(page=page, svg=Markup(page.svg))


def hash_of(style: str) -> str:
    """The hash of a style element, as a content security policy names it."""
    return f"'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"


@cache
def _template(name: str) -> Template:
    return environment(_HERE / "templates").get_template(name)


def environment(folder: Path) -> Environment:
    """Templates that escape every text and make it harmless; only `Markup` stays as it is."""
    found = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["markup"] = lambda text: Markup(markup(text))
    return found


def _shown(value: Any) -> Any:
    if value is None:
        return ""
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value
