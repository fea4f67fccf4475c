"""A run as one graph: each workflow is drawn inside the step that it ran in, once that is opened; large ones if asked.

What is opened is in the address: the paths of steps with workflows inside, and of steps that share a card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.datastructures import QueryParams

from wfdsl.interpreter.record import Run
from wfdsl.render.model import Card, Panel, draw
from wfdsl.render.pictures import picture_of
from wfdsl.render.svg import svg_of
from wfdsl.render.text import counted
from wfdsl.viewer.places import Path, dotted

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
    """Draw a run. The query says what is opened: paths of steps, `all`; and `draw`, whether it is large.

    `address` gives the address of a step's page, from the step's path.
    """
    opened = tuple(dict.fromkeys(query.getlist("open")))
    toggles: list[Toggle] = []
    panel, nodes = _opened(picture_of(run, all_copies="all" in opened), opened, toggles)
    is_drawn = nodes <= MOST_NODES or "draw" in query
    svg = Markup(svg_of(replace(panel, title="", notes=()), _links(address))) if is_drawn else None
    other = tuple(each for each in opened if each != "all") if "all" in opened else (*opened, "all")
    toggles.append(Toggle("Stack equal steps" if "all" in opened else "Draw each copy", _query(other)))
    return Graph(svg, nodes, toggles, f"{_query(opened)}&draw=1")


def _opened(panel: Panel, opened: Sequence[str], toggles: list[Toggle]) -> tuple[Panel, int]:
    """The panel with nothing inside steps that are not opened, how many nodes that is; and what can be toggled."""
    nodes = 0
    drawing = panel.shown
    if drawing is not None:
        steps = [step for step in range(len(drawing.workflow)) if dotted((*panel.path, step)) in opened]
        if steps and "all" not in opened:
            options = drawing.options.copy()
            options["opened"] = [*options.get("opened", ()), *steps]
            drawing = draw(drawing.workflow, **options)
            panel = replace(panel, drawing=drawing)
        nodes = len(drawing.cards)
        toggles += _stacks([card for card in drawing.cards if card.index not in panel.inside], panel.path, opened)
    inside: dict[int, tuple[Panel, ...]] = {}
    for step, panels in panel.inside.items():
        path = dotted((*panel.path, step))
        if drawing is not None:
            name = drawing.cards[drawing.card_of(step)].heading
            verb = "Close" if path in opened else "Open"
            toggles.append(Toggle(f"{verb} {name}: {counted(len(panels), 'round')}", _query(_toggled(opened, path))))
        if drawing is None or path in opened:
            found = [_opened(each, opened, toggles) for each in panels]
            inside[step] = tuple(each for each, _ in found)
            nodes += sum(count for _, count in found)
    return replace(panel, inside=inside), nodes


def _stacks(cards: Sequence[Card], where: Path, opened: Sequence[str]) -> Iterator[Toggle]:
    for card in cards:
        path = dotted((*where, card.index))
        if card.count > 1:
            yield Toggle(f"Open {card.heading}: {card.count} copies", _query(_toggled(opened, path)))
        elif path in opened:
            yield Toggle(f"Close {card.heading}", _query(_toggled(opened, path)))


def _toggled(opened: Sequence[str], path: str) -> tuple[str, ...]:
    return tuple(each for each in opened if each != path) if path in opened else (*opened, path)


def _query(opened: Sequence[str]) -> str:
    return urlencode([("view", "graph"), *(("open", each) for each in opened)])


def _links(address: Callable[[str], str]) -> Callable[[Card, Path], Mapping[str, str]]:
    def link(card: Card, path: Path) -> Mapping[str, str]:
        steps = [dotted((*path, step)) for step in card.steps]
        return {"href": address(steps[0]), "data-steps": " ".join(steps)}

    return link
