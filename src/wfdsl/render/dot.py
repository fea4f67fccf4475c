"""A workflow as a Graphviz DOT graph. Labels are plain strings, so that nothing in them is read as markup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Unpack

from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Workflow
from wfdsl.render.model import Card, Drawing, Options, draw
from wfdsl.render.text import cells, wrap

_WIDTH, _LINES = 36, 4
_INK, _FAINT = "#8a93a3", "#c3c8d1"
_STATE_INK = {"running": "#2f6fde", "done": "#1a8a4f", "failed": "#d0342c"}
_FONT = 'fontname="Helvetica,Arial,sans-serif"'
_DEFAULTS = (
    f"graph [rankdir=TB, ranksep=0.45, nodesep=0.3, labelloc=t, {_FONT}]",
    f'node [shape=box, style="rounded,filled", fillcolor="#ffffff", color="{_INK}", margin="0.16,0.1", fontsize=11]',
    f"node [{_FONT}]",
    f'edge [color="{_INK}", arrowsize=0.7]',
)


def to_dot(workflow: Workflow, **options: Unpack[Options]) -> str:
    """Write a workflow as a DOT digraph.

    Raises:
        ValueError: `names` has not one name for each step.
    """
    return "\n".join(["digraph workflow {", *(f"  {line}" for line in _lines(draw(workflow, **options))), "}"]) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    yield from _DEFAULTS
    if drawing.title:
        yield f"label={_quoted(drawing.title)}"
    yield 'question [style="filled", fillcolor="#eceff4", shape=oval]'
    for card in drawing.cards:
        yield f"s{card.index} [{_attributes(_node(card))}]"
    for source, target in [*(("question", entry) for entry in drawing.entries), *drawing.edges]:
        start = source if source == "question" else f"s{source}"
        faint = "" if drawing.cards[target].is_live else f' [style=dashed, color="{_FAINT}"]'
        yield f"{start} -> s{target}{faint}"


def _node(card: Card) -> Mapping[str, str]:
    found = {"label": _label(card), "tooltip": _escaped(f"{card.heading} · {card.worker_label} · {card.subtask}")}
    if card.is_conductor:
        found["style"] = "filled,diagonals"
    if card.is_answer:
        found |= {"color": "#2f6fde", "penwidth": "2"}
    if card.status and card.status.state in _STATE_INK:
        found["color"] = _STATE_INK[card.status.state]
    if not card.is_live:
        found |= {"style": "rounded,filled,dashed", "color": _FAINT, "fontcolor": _INK}
    return found


def _label(card: Card) -> str:
    tags = [*card.tags, *(["sees all"] if card.access == ALL else [])]
    body = wrap(card.subtask, width=_WIDTH, lines=_LINES, measure=cells)
    foot = [text for text in (" · ".join(tags), card.status_text) if text]
    lines = [f"{card.heading} · {card.worker_label}", *body, *foot]
    return "".join(f"{_escaped(line)}\\l" for line in lines)


def _attributes(values: Mapping[str, str]) -> str:
    return ", ".join(f'{name}="{value}"' for name, value in values.items())


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Graphviz reads escapes such as `\\N` and HTML entities in every string."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
