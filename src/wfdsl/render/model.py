"""The model that every picture of a workflow shares (a card for each step, the edges, a heading), and its JSON.

A step that sees `"all"` is tagged so, and edges that its other edges imply are left out: thirty steps that all see
everything are one line of cards and not a thicket. A list of steps is drawn as it was written, edge for edge.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict, Unpack

from wfdsl.graph import Topology, graph_of, is_conductor
from wfdsl.language.tree import ALL, Access, Worker
from wfdsl.language.workflow import Workflow
from wfdsl.render.status import StepStatus
from wfdsl.render.text import plain


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


@dataclass(frozen=True, slots=True)
class Card:
    """One step as it is shown. Texts are plain: one line, nothing in them acts on its surroundings."""

    index: int
    name: str
    """Empty if steps have no names."""
    worker: Worker
    worker_label: str
    subtask: str
    access: Access
    sees: tuple[int, ...]
    drawn: tuple[int, ...]
    """The steps seen to which a line is drawn."""
    depth: int | None
    is_live: bool
    is_answer: bool
    is_conductor: bool
    status: StepStatus | None

    @property
    def heading(self) -> str:
        """The step's name, or its index in words."""
        return self.name or f"step {self.index}"

    @property
    def tags(self) -> tuple[str, ...]:
        """What marks this step out, in a word or two each."""
        conductor = "conductor" if self.depth is None else f"conductor, depth {self.depth}"
        marks = (("answer", self.is_answer), ("dead", not self.is_live), (conductor, self.is_conductor))
        return tuple(word for word, holds in marks if holds)

    @property
    def status_text(self) -> str:
        """The state of the step in a run, in one line; empty if it is not known."""
        return plain(self.status.text()) if self.status else ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A workflow ready to be drawn."""

    title: str
    description: str
    cards: tuple[Card, ...]
    topology: Topology
    depth: int
    width: int
    calls: int

    @property
    def entries(self) -> tuple[int, ...]:
        """The steps that start from the question alone."""
        return tuple(card.index for card in self.cards if not card.sees)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The lines to draw, from the earlier step to the later one."""
        return tuple((seen, card.index) for card in self.cards for seen in card.drawn)

    @property
    def summary(self) -> str:
        """The shape in one line."""
        dead = len(self.cards) - self.calls
        parts = [_counted(len(self.cards), "step"), self.topology, f"depth {self.depth}", f"width {self.width}"]
        return " · ".join([*parts, f"{dead} dead"] if dead else parts)


def draw(
    workflow: Workflow,
    *,
    names: Sequence[str] | None = None,
    title: str = "",
    description: str = "",
    workers: Mapping[int, str] | None = None,
    status: Mapping[int, StepStatus] | None = None,
    conductors: Collection[int] = (),
) -> Drawing:
    """Collect what the pictures of a workflow show.

    Raises:
        ValueError: `names` has not one name for each step.
    """
    if names is not None and len(names) != len(workflow):
        raise ValueError(f"{_counted(len(workflow), 'step')} but {_counted(len(names), 'name')}: give one for each")
    graph = graph_of(workflow)
    cards = tuple(
        Card(
            index=index,
            name=plain(names[index]) if names else "",
            worker=step.worker,
            worker_label=_worker_label(step.worker, workers or {}),
            subtask=plain(step.subtask),
            access=step.access,
            sees=workflow.sees(index),
            drawn=graph.essential[index] if step.access == ALL else workflow.sees(index),
            depth=step.depth,
            is_live=index in graph.live,
            is_answer=index == len(workflow) - 1,
            is_conductor=is_conductor(step, conductors),
            status=(status or {}).get(index),
        )
        for index, step in enumerate(workflow)
    )
    return Drawing(
        title=plain(title),
        description=plain(description),
        cards=cards,
        topology=graph.topology,
        depth=graph.depth,
        width=graph.width,
        calls=graph.calls,
    )


def _worker_label(worker: Worker, labels: Mapping[int, str]) -> str:
    return plain(worker) if isinstance(worker, str) else plain(labels.get(worker, f"worker {worker}"))


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def to_json(workflow: Workflow, **options: Unpack[Options]) -> str:
    """Write a workflow's graph as one JSON object.

    Keys: `title`, `description`, `steps` (objects with `index`, `name` or null, `worker`, `subtask`, `sees`, `access`,
    `live`, `conductor`, `depth`, and `status` where one is given), `edges` (pairs, one for each step that a step sees),
    `topology`, `depth`, `width`, `calls`, `answer` (the last step's index; null without steps).

    Raises:
        ValueError: `names` has not one name for each step.
    """
    drawing = draw(workflow, **options)
    names: Sequence[str | None] = options.get("names") or [None] * len(workflow)
    found = {
        "title": options.get("title", ""),
        "description": options.get("description", ""),
        "steps": [
            _step(card, name, subtask=step.subtask)
            for card, name, step in zip(drawing.cards, names, workflow, strict=True)
        ],
        "edges": [[seen, card.index] for card in drawing.cards for seen in card.sees],
        "topology": drawing.topology,
        "depth": drawing.depth,
        "width": drawing.width,
        "calls": drawing.calls,
        "answer": len(workflow) - 1 if len(workflow) else None,
    }
    return json.dumps(found, indent=2) + "\n"


def _step(card: Card, name: str | None, *, subtask: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "index": card.index,
        "name": name,
        "worker": card.worker,
        "subtask": subtask,
        "sees": list(card.sees),
        "access": ALL if card.access == ALL else list(card.access),
        "live": card.is_live,
        "conductor": card.is_conductor,
        "depth": card.depth,
    }
    return found if card.status is None else {**found, "status": asdict(card.status)}
