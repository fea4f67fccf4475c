"""A run as graphs: each workflow by itself, those inside a Conductor's step below it, large ones when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.datastructures import QueryParams

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.conductor.round_log import RoundLog, rounds_inside
from wfdsl.interpreter.record import Run
from wfdsl.pictures import options_of_run, picture_of, round_panels
from wfdsl.render.model import Card, Note, Panel, draw
from wfdsl.render.svg import svg_of
from wfdsl.viewer.places import Path, Place, dotted

MOST_NODES: Final = 100
"""Nodes that are drawn without being asked for. Our choice; larger graphs are slow to draw and hard to read."""

Address = Callable[[str], str]
"""The address of a step's page, from the step's path."""


class Stack(NamedTuple):
    """Copies of a step that share a card, or that have been drawn by themselves instead."""

    label: str
    """What following the address does."""
    query: str
    """The query of the address at which they are drawn in the other way."""


@dataclass(frozen=True, slots=True)
class Graph:
    """One workflow as it is drawn, or what is said where nothing ran."""

    id: str
    title: str
    notes: Sequence[Note]
    nodes: int
    svg: Markup | None
    """None: there is nothing to draw, or it is large and was not asked for."""
    stacks: Sequence[Stack] = ()
    inside: Sequence[tuple[Place, Sequence[Graph]]] = ()
    """What ran inside its steps."""
    query: str = ""
    """The query of the address at which it is drawn although it is large."""

    @property
    def asks(self) -> bool:
        """Whether it is drawn only when asked for."""
        return self.nodes > 0 and self.svg is None


class GraphPage:
    """Draws the graphs of a page."""

    def __init__(self, address: Address, query: QueryParams) -> None:
        """The query says which large graphs are drawn (`draw`, by their ids), whether each copy of a step has a card of
        its own (`copies=all`), and which steps' copies do (`open`, by paths).
        """
        self._address = address
        self._drawn = query.getlist("draw")
        self._opened = query.getlist("open")
        self.all_copies = query.get("copies") == "all"
        self._left = MOST_NODES * 3
        """Nodes that the page still has room for."""

    def graphs(self, run: Run) -> list[Graph]:
        """The graphs of a run: the rounds of a Conductor, or the one workflow that was given."""
        panel = picture_of(run, all_copies=self.all_copies)
        if run.workflow == ROOT_WORKFLOW:
            return self._rounds(Place((0,), run, run.steps[0]))
        return [self._graph(panel, run, ())]

    def _rounds(self, place: Place) -> list[Graph]:
        panels = list(round_panels(place.run, place.step, {"all_copies": self.all_copies}))
        found = []
        for number, run, logs in rounds_inside(place.step):
            found.append(self._graph(panels.pop(0), run, (*place.path, number)))
            found += [self._note(log, panels.pop(0), place.path) for log in logs[1:]]
        return found

    def _note(self, log: RoundLog, panel: Panel, path: Path) -> Graph:
        return Graph(f"graph={dotted((*path, log.round))}", panel.title, panel.notes, 0, None)

    def _graph(self, panel: Panel, run: Run, path: Path) -> Graph:
        own = f"graph={dotted(path)}"
        opened = [step for step in range(len(run.workflow)) if dotted((*path, step)) in self._opened]
        if opened and not self.all_copies:
            options = options_of_run(run)
            options["opened"] = opened
            panel = replace(panel, drawing=draw(run.workflow, **options))
        drawing = panel.drawing
        assert drawing is not None, "a run has a workflow"
        nodes = len(drawing.cards)
        is_drawn = own in self._drawn or (nodes <= MOST_NODES and nodes <= self._left)
        svg = None
        if is_drawn:
            self._left -= nodes
            alone = replace(panel, inside={}, is_shell=False, title="", notes=())
            svg = Markup(svg_of(alone, lambda card: self._link(card, path)))
        places = [Place((*path, step.step), run, step) for step in run.steps if step.nested]
        inside = [(place, self._rounds(place)) for place in places]
        stacks = () if self.all_copies else tuple(self._stacks(drawing.cards, run, path, opened))
        return Graph(own, panel.title, panel.notes, nodes, svg, stacks, inside, self._query(drawn=[*self._drawn, own]))

    def _stacks(self, cards: Sequence[Card], run: Run, path: Path, opened: Sequence[int]) -> Iterator[Stack]:
        for card in cards:
            if card.count > 1:
                query = self._query(opened=[*self._opened, dotted((*path, card.steps[0]))])
                yield Stack(f"Open {card.heading}: {card.count} copies", query)
        for step in opened:
            left = [each for each in self._opened if each != dotted((*path, step))]
            yield Stack(f"Stack the copies of {run.name_of(step)}", self._query(opened=left))

    def _query(self, *, drawn: Sequence[str] | None = None, opened: Sequence[str] | None = None) -> str:
        """The query of this page's address, changed."""
        found = [("view", "graph")] + ([("copies", "all")] if self.all_copies else [])
        found += [("draw", each) for each in (self._drawn if drawn is None else drawn)]
        return urlencode(found + [("open", each) for each in (self._opened if opened is None else opened)])

    def _link(self, card: Card, path: Path) -> Mapping[str, str]:
        steps = [dotted((*path, step)) for step in card.steps]
        return {"href": self._address(steps[0]), "data-steps": " ".join(steps)}
