"""A run as graphs: each workflow by itself, those inside a Conductor's step below it, large ones when asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from markupsafe import Markup

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.conductor.round_log import RoundLog, rounds_inside
from wfdsl.interpreter.record import Run
from wfdsl.pictures import picture_of, round_panels
from wfdsl.render.model import Card, Note, Panel
from wfdsl.render.svg import svg_of
from wfdsl.viewer.places import Path, Place, dotted

MOST_NODES: Final = 100
"""Nodes that are drawn without being asked for. Our choice; larger graphs are slow to draw and hard to read."""

Address = Callable[[str], str]
"""The address of a step's page, from the step's path."""


@dataclass(frozen=True, slots=True)
class Graph:
    """One workflow as it is drawn, or what is said where nothing ran."""

    id: str
    title: str
    notes: Sequence[Note]
    nodes: int
    svg: Markup | None
    """None: there is nothing to draw, or it is large and was not asked for."""
    inside: Sequence[tuple[Place, Sequence[Graph]]] = ()
    """What ran inside its steps."""

    @property
    def asks(self) -> bool:
        """Whether it is drawn only when asked for."""
        return self.nodes > 0 and self.svg is None


class GraphPage:
    """Draws the graphs of a page."""

    def __init__(self, address: Address, *, drawn: Collection[str] = (), all_copies: bool = False) -> None:
        """`drawn` are the ids of large graphs that have been asked for; `all_copies` draws each copy of a step."""
        self._address = address
        self._drawn = drawn
        self._all_copies = all_copies
        self._left = MOST_NODES * 3
        """Nodes that the page still has room for."""

    def graphs(self, run: Run) -> list[Graph]:
        """The graphs of a run: the rounds of a Conductor, or the one workflow that was given."""
        panel = picture_of(run, all_copies=self._all_copies)
        if run.workflow == ROOT_WORKFLOW:
            return self._rounds(Place((0,), run, run.steps[0]))
        return [self._graph(panel, run, ())]

    def _rounds(self, place: Place) -> list[Graph]:
        panels = list(round_panels(place.run, place.step, {"all_copies": self._all_copies}))
        found = []
        for number, run, logs in rounds_inside(place.step):
            found.append(self._graph(panels.pop(0), run, (*place.path, number)))
            found += [self._note(log, panels.pop(0), place.path) for log in logs[1:]]
        return found

    def _note(self, log: RoundLog, panel: Panel, path: Path) -> Graph:
        return Graph(f"graph={dotted((*path, log.round))}", panel.title, panel.notes, 0, None)

    def _graph(self, panel: Panel, run: Run, path: Path) -> Graph:
        own = f"graph={dotted(path)}"
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
        return Graph(own, panel.title, panel.notes, nodes, svg, inside)

    def _link(self, card: Card, path: Path) -> Mapping[str, str]:
        steps = [dotted((*path, step)) for step in card.steps]
        return {"href": self._address(steps[0]), "data-steps": " ".join(steps)}
