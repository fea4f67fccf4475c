"""A run as one graph: each workflow is drawn inside the step that it ran in, and a large graph only if asked for.

What is opened and closed is in the address: the paths of steps that share a card, and of steps with workflows inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.datastructures import QueryParams

from wfdsl.interpreter.record import Run
from wfdsl.render.html import StepPath, dotted
from wfdsl.render.model import Card, Panel, draw
from wfdsl.render.pictures import picture_of
from wfdsl.render.svg import svg_of
from wfdsl.render.text import counted

MOST_NODES: Final = 100
"""Nodes that are drawn without being asked for. Our choice; larger graphs are slow to draw and hard to read."""


class Toggle(NamedTuple):
    """A link that opens or closes a step."""

    label: str
    query: str
    """The query of the address at which it is drawn in the other way."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A run as it is drawn."""

    svg: Markup | None
    """None: it is large, and was not asked for."""
    nodes: int
    toggles: Sequence[Toggle]
    query: str
    """The query of the address at which it is drawn although it is large."""


def graph_of_run(run: Run, query: QueryParams, address: Callable[[str], str]) -> Graph:
    """Draw a run. The query has paths of steps: `open` those whose copies are drawn apart, and `close` those with
    workflows inside that are not drawn; and `draw`, whether it is drawn although it is large.

    `address` gives the address of a step's page, from the step's path.
    """
    page = _Page(tuple(query.getlist("open")), tuple(query.getlist("close")), [])
    panel, nodes = page.opened(picture_of(run))
    is_drawn = nodes <= MOST_NODES or "draw" in query
    svg = Markup(svg_of(panel._replace(title="", notes=()), _links(address))) if is_drawn else None
    return Graph(svg, nodes, page.toggles, f"{page.query()}&draw=1")


class _Page(NamedTuple):
    """What is opened and closed, and the links that change it."""

    open: tuple[str, ...]
    close: tuple[str, ...]
    toggles: list[Toggle]

    def opened(self, panel: Panel) -> tuple[Panel, int]:
        """The panel as it is drawn, and how many nodes that is."""
        drawing, nodes = panel.shown, 0
        if drawing is not None:
            steps = [step for step in range(len(drawing.workflow)) if dotted((*panel.path, step)) in self.open]
            if steps:
                options = drawing.options.copy()
                options["opened"] = [*options.get("opened", ()), *steps]
                drawing = draw(drawing.workflow, **options)
                panel = panel._replace(drawing=drawing)
            nodes = len(drawing.cards)
            for card in drawing.cards:
                self._add_card(card, dotted((*panel.path, card.index)), len(panel.inside.get(card.index, ())))
        inside = {}
        for step, panels in panel.inside.items():
            if dotted((*panel.path, step)) not in self.close:
                found = [self.opened(each) for each in panels]
                inside[step] = tuple(each for each, _ in found)
                nodes += sum(count for _, count in found)
        return panel._replace(inside=inside), nodes

    def _add_card(self, card: Card, path: str, rounds: int) -> None:
        if rounds:
            verb = "Open" if path in self.close else "Close"
            self.add(f"{verb} {card.heading}: {counted(rounds, 'round')}", "close", path)
        elif card.count > 1:
            self.add(f"Open {card.heading}: {card.count} copies", "open", path)
        elif path in self.open:
            self.add(f"Stack the copies of {card.heading}", "open", path)

    def add(self, label: str, name: Literal["open", "close"], path: str) -> None:
        """Add the link that changes whether a path is in a part of the query."""
        own = self.open if name == "open" else self.close
        changed = tuple(each for each in own if each != path) if path in own else (*own, path)
        page = self._replace(open=changed) if name == "open" else self._replace(close=changed)
        self.toggles.append(Toggle(label, page.query()))

    def query(self) -> str:
        """The query of the page's address."""
        parts = [*(("open", each) for each in self.open), *(("close", each) for each in self.close)]
        return urlencode([("view", "graph"), *parts])


def _links(address: Callable[[str], str]) -> Callable[[Card, StepPath], Mapping[str, str]]:
    def link(card: Card, path: StepPath) -> Mapping[str, str]:
        steps = [dotted((*path, step)) for step in card.steps]
        return {"href": address(steps[0]), "data-steps": " ".join(steps)}

    return link
