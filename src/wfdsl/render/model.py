"""The model that every picture shares: panels, each with the cards and edges of one workflow.

A picture of a workflow is one panel. A picture of a run has a panel for each workflow that ran in it: the rounds of a
Conductor, and the runs inside Conductor nodes.

A step that sees `"all"` is tagged so, and edges that its other edges imply are left out: thirty steps that all see
everything are one line of cards and not a thicket. A list of steps is drawn as it was written, edge for edge. Copies
of a step (same worker, subtask and neighbours) share one card; so do more than eight steps with the same neighbours.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypedDict, Unpack

from wfdsl.graph import Graph, graph_of, is_conductor
from wfdsl.language.tree import ALL, Access, Worker
from wfdsl.language.workflow import Workflow
from wfdsl.render.status import State, StepStatus, dollars, duration
from wfdsl.render.text import counted, plain

FEWEST_COPIES: Final = 3
"""As many equal steps share one card; two side by side are as easy to read as one card that says so. Our choice."""
WIDEST: Final = 8
"""More cards of equal neighbours share one that lists their steps. Our choice."""
_MOST_LISTED: Final = 3
"""Neighbouring indices that are listed one by one; our choice."""
_WORST_FIRST: Final[tuple[State, ...]] = ("failed", "running", "waiting", "done", "pruned")
_NUMBERED = re.compile(r"(.+)\[\d+\]")


class Options(TypedDict, total=False):
    """What may be said about a workflow that the workflow itself does not hold; every format takes the same."""

    names: Sequence[str] | None
    """The steps' names, in order."""
    title: str
    description: str
    """What the workflow is for, in a sentence or two."""
    workers: Mapping[int, str] | None
    """What to call the worker with an index; one that is missing here is called `worker` and its index."""
    status: Mapping[int, StepStatus] | None
    """The state of steps in a run."""
    conductors: Collection[int]
    """The indices of workers that are Conductors."""
    opened: Collection[int]
    """Steps that get a card of their own, as do all copies of them."""


@dataclass(frozen=True, slots=True)
class Card:
    """A step, or several copies of one, as it is shown. Texts are plain: one line, nothing in them acts."""

    steps: tuple[int, ...]
    """The indices of the steps; more than one for copies."""
    heading: str
    """The step's name, or its index in words."""
    is_named: bool
    members: str
    """The names of the steps, where the heading does not say them."""
    worker: Worker
    worker_label: str
    subtask: str
    access: Access
    sees: tuple[int, ...]
    """The steps that it sees."""
    drawn: tuple[int, ...]
    """The positions of the cards from which a line leads here."""
    depth: int | None
    settings: tuple[str, ...]
    """The step's own settings, in words."""
    is_live: bool
    is_answer: bool
    is_conductor: bool
    state: State | None
    """None if it is not known; of copies, the one that matters most."""
    facts: str
    """State, time and cost in one line; empty if nothing is known."""
    reasons: tuple[str, ...]
    """Why it failed."""

    @property
    def index(self) -> int:
        """The index of the step, or of the first copy."""
        return self.steps[0]

    @property
    def count(self) -> int:
        """How many copies there are; 1 for a step of its own."""
        return len(self.steps)

    @property
    def tags(self) -> tuple[str, ...]:
        """What marks this step out, in a word or two each."""
        conductor = "conductor" if self.depth is None else f"conductor, depth {self.depth}"
        marks = (("answer", self.is_answer), ("dead", not self.is_live), (conductor, self.is_conductor))
        return (*(word for word, holds in marks if holds), *self.settings)

    @property
    def counted_heading(self) -> str:
        """The heading, with the number of copies if there are several."""
        return f"{self.heading} × {self.count}" if self.count > 1 else self.heading

    @property
    def tooltip(self) -> str:
        """Everything in one line."""
        parts = (self.counted_heading, self.worker_label, self.subtask, self.facts, *self.reasons)
        return " · ".join(part for part in parts if part)


class Drawing(NamedTuple):
    """A workflow ready to be drawn."""

    workflow: Workflow
    options: Options
    cards: tuple[Card, ...]
    graph: Graph

    @property
    def names(self) -> Sequence[str] | None:
        """The steps' names, in order."""
        return self.options.get("names")

    @property
    def entries(self) -> tuple[int, ...]:
        """The positions of the cards that start from the question alone."""
        return tuple(at for at, card in enumerate(self.cards) if not card.sees)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The lines to draw, from the position of the earlier card to that of the later one."""
        return tuple((seen, at) for at, card in enumerate(self.cards) for seen in card.drawn)

    @property
    def ranks(self) -> tuple[int, ...]:
        """How many lines lead one after the other from the question to each card."""
        found: list[int] = []
        for card in self.cards:
            found.append(1 + max((found[seen] for seen in card.drawn), default=0))
        return tuple(found)

    @property
    def summary(self) -> str:
        """The shape in one line."""
        graph, dead = self.graph, len(self.workflow) - len(self.graph.live)
        parts = [counted(len(self.workflow), "step"), graph.topology, f"depth {graph.depth}", f"width {graph.width}"]
        return " · ".join([*parts, f"{dead} dead"] if dead else parts)

    def card_of(self, step: int) -> int:
        """The position of the card that a step is on."""
        return next(at for at, card in enumerate(self.cards) if step in card.steps)


class Note(NamedTuple):
    """A remark below a panel's title."""

    text: str
    is_bad: bool = False


class Panel(NamedTuple):
    """One workflow of a picture, or what is said where nothing was run; with the panels inside its steps."""

    title: str = ""
    description: str = ""
    notes: tuple[Note, ...] = ()
    drawing: Drawing | None = None
    inside: Mapping[int, tuple[Panel, ...]] = MappingProxyType({})
    """The workflows that ran inside a step, in order."""
    path: tuple[int, ...] = ()
    """Where it is in a run: the step that it is inside of and its round, after those further out."""
    is_shell: bool = False
    """Whether the drawing only holds what is inside: the one step of a run that a Conductor answered."""

    @property
    def shown(self) -> Drawing | None:
        """The drawing, where it says something."""
        return None if self.is_shell else self.drawing


class Placed(NamedTuple):
    """A panel in its picture."""

    panel: Panel
    level: int
    """How many panels it is inside of."""
    number: int
    """Its place in the order of reading."""
    parent: int | None
    """The number of the shown panel that it is inside of; None if there is none."""
    card: int
    """The position of its step's card in the parent's drawing."""
    previous: int | None
    """The number of the panel of the round before."""


def placed(panel: Panel) -> list[Placed]:
    """The panels of a picture in the order of reading: each before those inside of it, rounds in order."""
    found: list[Placed] = []
    _place(found, Placed(panel, level=0, number=0, parent=None, card=0, previous=None))
    return found


def _place(found: list[Placed], outer: Placed) -> None:
    found.append(outer)
    drawing = outer.panel.shown
    for step, panels in outer.panel.inside.items():
        before: int | None = None
        for panel in panels:
            inner = outer._replace(panel=panel, number=len(found), previous=before)
            if drawing:
                inner = inner._replace(level=outer.level + 1, parent=outer.number, card=drawing.card_of(step))
            before = inner.number
            _place(found, inner)


def panel_of_value(workflow: Workflow, options: Options) -> Panel:
    """The picture of a workflow, with what its file calls things where the options do not say it.

    Raises:
        ValueError: `names` has not one name for each step.
    """
    said: Options = {}
    if (labels := workflow.labels) is not None:
        said = {"names": labels.names, "title": labels.title, "workers": labels.workers}
        said["description"] = labels.description
    said.update(options)
    title, description = plain(said.get("title", "")), plain(said.get("description", ""))
    return Panel(title, description, drawing=draw(workflow, **said))


def draw(workflow: Workflow, **options: Unpack[Options]) -> Drawing:
    """Collect what the pictures of a workflow show.

    Raises:
        ValueError: `names` has not one name for each step.
    """
    names = options.get("names")
    if names is not None and len(names) != len(workflow):
        raise ValueError(f"{counted(len(workflow), 'step')} but {counted(len(names), 'name')}: give one for each")
    groups = _groups(workflow, options.get("opened", ()), options.get("conductors", ()))
    position = {step: at for at, steps in enumerate(groups) for step in steps}
    cards = tuple(_card(workflow, steps, position, options) for steps in groups)
    return Drawing(workflow, options, cards, graph_of(workflow))


def _groups(workflow: Workflow, opened: Collection[int], conductors: Collection[int]) -> list[tuple[int, ...]]:
    """The steps that share a card, in the order of the first of each: copies, and the steps of a layer that is wide.

    They see the same steps and are seen by the same steps, so that one line stands for the lines of all.
    """
    seen_by = defaultdict(list)
    for index in range(len(workflow)):
        for earlier in workflow.sees(index):
            seen_by[earlier].append(index)
    alike: dict[Any, list[int]] = defaultdict(list)
    for index, step in enumerate(workflow):
        is_answer = index == len(workflow) - 1
        place = step.access == ALL, workflow.sees(index), tuple(seen_by[index]), is_answer
        alike[replace(step, access=()), *place].append(index)
    groups: list[tuple[int, ...]] = []
    beside: dict[Any, list[tuple[int, ...]]] = defaultdict(list)
    for (step, *place), steps in alike.items():
        is_stack = len(steps) >= FEWEST_COPIES and not any(each in opened for each in steps)
        stacks = [tuple(steps)] if is_stack else [(each,) for each in steps]
        is_plain = not is_conductor(step, conductors) and not any(each in opened for each in steps)
        beside[tuple(place) if is_plain else (step, *place)] += stacks
    for cards in beside.values():
        is_wide = len(cards) > WIDEST and not any(step in opened for card in cards for step in card)
        groups += [tuple(sorted(step for card in cards for step in card))] if is_wide else cards
    return sorted(groups)


def _card(workflow: Workflow, steps: tuple[int, ...], position: Mapping[int, int], options: Options) -> Card:
    first, graph = steps[0], graph_of(workflow)
    step, names = workflow[first], options.get("names")
    states = {index: (options.get("status") or {}).get(index) for index in steps}
    known = {index: state for index, state in states.items() if state}
    drawn = graph.essential[first] if step.access == ALL else workflow.sees(first)
    return Card(
        steps=steps,
        heading=_heading(steps, names),
        is_named=bool(names),
        members=_members(steps, names),
        worker=step.worker,
        worker_label=_listed(worker_label(workflow[each].worker, options.get("workers") or {}) for each in steps),
        subtask=_listed(plain(workflow[each].subtask) for each in steps),
        access=step.access,
        sees=workflow.sees(first),
        drawn=tuple(dict.fromkeys(position[seen] for seen in drawn)),
        depth=step.depth,
        settings=tuple(f"{name} {value}" for name, value in step.settings.items()),
        is_live=first in graph.live,
        is_answer=first == len(workflow) - 1,
        is_conductor=is_conductor(step, options.get("conductors", ())),
        state=min((each.state for each in known.values()), key=_WORST_FIRST.index, default=None),
        facts=_facts(list(known.values()), len(steps)),
        reasons=_reasons(known, names),
    )


def _heading(steps: tuple[int, ...], names: Sequence[str] | None) -> str:
    if not names:
        return f"step {steps[0]}" if len(steps) == 1 else f"steps {spans(steps)}"
    if len(steps) == 1:
        return plain(names[steps[0]])
    bases = _bases(steps, names)
    return plain(bases.pop()) if len(bases) == 1 else f"{plain(names[steps[0]])} to {plain(names[steps[-1]])}"


def _bases(steps: Sequence[int], names: Sequence[str]) -> set[str]:
    return {found[1] if (found := _NUMBERED.fullmatch(names[step])) else names[step] for step in steps}


def _members(steps: Sequence[int], names: Sequence[str] | None) -> str:
    if not names or len(_bases(steps, names)) == 1:
        return ""
    return ", ".join(plain(names[step]) for step in steps)


def spans(steps: Sequence[int]) -> str:
    """Indices in few words: `0, 1, 3-8`."""
    found: list[list[int]] = []
    for step in steps:
        if found and step == found[-1][-1] + 1:
            found[-1].append(step)
        else:
            found.append([step])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > _MOST_LISTED else ", ".join(map(str, run)) for run in found)


def _facts(known: Sequence[StepStatus], count: int) -> str:
    if count == 1 or not known:
        return plain(known[0].facts()) if known else ""
    states = Counter(each.state for each in known)
    parts = [", ".join(f"{states[state]} {state}" for state in reversed(_WORST_FIRST) if state in states)]
    seconds = [each.seconds for each in known if each.seconds is not None]
    usd = [each.usd for each in known if each.usd is not None]
    parts += [f"longest {duration(max(seconds))}"] if seconds else []
    parts += [dollars(sum(usd))] if usd else []
    return " · ".join(parts)


def _reasons(known: Mapping[int, StepStatus], names: Sequence[str] | None) -> tuple[str, ...]:
    """Why steps failed; of copies, which ones, for each reason once."""
    why: dict[str, list[int]] = defaultdict(list)
    for index, state in known.items():
        if state.error:
            why[plain(state.error)].append(index)
    if len(known) == 1:
        return tuple(why)
    return tuple(f"{_which(steps, names)}: {reason}" for reason, steps in why.items())


def _which(steps: Sequence[int], names: Sequence[str] | None) -> str:
    if names is not None:
        return ", ".join(plain(names[step]) for step in steps)
    return f"step{'' if len(steps) == 1 else 's'} {spans(steps)}"


def _listed(texts: Iterable[str]) -> str:
    """The text that all steps of a card have, or each one with the number of steps that have it."""
    counts = Counter(texts)
    if len(counts) == 1:
        return next(iter(counts))
    return " · ".join(text if count == 1 else f"{text} × {count}" for text, count in counts.items())


def worker_label(worker: Worker, labels: Mapping[int, str]) -> str:
    """What to call a worker."""
    return plain(worker) if isinstance(worker, str) else plain(labels.get(worker, f"worker {worker}"))
