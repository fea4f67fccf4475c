"""A workflow as a Graphviz DOT graph. Labels are plain strings, so that nothing in them is read as markup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wfdsl.language.tree import ALL
from wfdsl.render.model import Card, Drawing, Panel, Placed, placed
from wfdsl.render.text import cells, wrap

_WIDTH, _LINES, _REASON_LINES = 36, 4, 12
_INK, _FAINT = "#8a93a3", "#c3c8d1"
_STATE_INK: dict[str | None, str] = {"running": "#2f6fde", "done": "#1a8a4f", "failed": "#d0342c"}
_FONT = 'fontname="Helvetica,Arial,sans-serif"'
_DEFAULTS = (
    f"graph [rankdir=TB, ranksep=0.45, nodesep=0.3, labelloc=t, {_FONT}]",
    f'node [shape=box, style="rounded,filled", fillcolor="#ffffff", color="{_INK}", margin="0.16,0.1", fontsize=11]',
    f"node [{_FONT}]",
    f'edge [color="{_INK}", arrowsize=0.7]',
)


def dot_of(panel: Panel) -> str:
    """Write a picture as a DOT digraph; where workflows ran in it, each is a cluster."""
    return "\n".join(["digraph workflow {", *(f"  {line}" for line in _lines(panel)), "}"]) + "\n"


def _lines(panel: Panel) -> Iterator[str]:
    yield from _DEFAULTS
    found = placed(panel)
    if panel.title:
        notes = [note.text for note in panel.notes] if len(found) == 1 or not panel.shown else []
        yield f"label={_quoted([panel.title, *notes])}"
    if len(found) == 1:
        yield from _graph(panel.shown, "") if panel.shown else ()
        return
    yield "compound=true"
    for each in found:
        yield from _cluster(each)
    yield from _links(found)


def _cluster(each: Placed) -> Iterator[str]:
    panel, prefix = each.panel, f"p{each.number}"
    said = [panel.title, *(note.text for note in panel.notes)]
    if panel.shown is None:
        if each.number:
            yield f'{prefix}question [shape=note, fillcolor="#eceff4", label={_quoted(said)}]'
        return
    yield f"subgraph cluster_{prefix} {{"
    yield f'  label={_quoted(said)}; style="rounded"; color="{_FAINT}"'
    yield from (f"  {line}" for line in _graph(panel.shown, prefix))
    yield "}"


def _links(found: Sequence[Placed]) -> Iterator[str]:
    """From a Conductor node to the first workflow inside of it, and from each round to the next."""
    for each in found:
        start, tail = "", ""
        if each.previous is not None:
            before = found[each.previous].panel.shown
            start = f"p{each.previous}" + (f"s{before.cards[-1].index}" if before and before.cards else "question")
            tail = f", ltail=cluster_p{each.previous}" if before else ""
        elif each.parent is not None:
            parent = found[each.parent].panel.shown
            assert parent is not None  # only panels that are shown are parents
            start = f"p{each.parent}s{parent.cards[each.card].index}"
        if start:
            head = f", lhead=cluster_p{each.number}" if each.panel.shown else ""
            yield f"{start} -> p{each.number}question [style=dotted{tail}{head}]"


def _graph(drawing: Drawing, prefix: str) -> Iterator[str]:
    cards, question = drawing.cards, f"{prefix}question"
    label = ', label="question"' if prefix else ""
    yield f'{question} [style="filled", fillcolor="#eceff4", shape=oval{label}]'
    for card in cards:
        yield f"{prefix}s{card.index} [{_attributes(_node(card))}]"
    lines = [(question, entry) for entry in drawing.entries]
    lines += [(f"{prefix}s{cards[source].index}", target) for source, target in drawing.edges]
    for start, target in lines:
        faint = "" if cards[target].is_live else f' [style=dashed, color="{_FAINT}"]'
        yield f"{start} -> {prefix}s{cards[target].index}{faint}"


def _node(card: Card) -> Mapping[str, str]:
    found = {"label": _label(card), "tooltip": _escaped(card.tooltip)}
    if card.count > 1:
        found["peripheries"] = "2"
    if card.is_conductor:
        found["style"] = "filled,diagonals"
    if card.is_answer:
        found |= {"color": "#2f6fde", "penwidth": "2"}
    if card.state in _STATE_INK:
        found["color"] = _STATE_INK[card.state]
    if card.state == "failed":
        found |= {"penwidth": "3", "fillcolor": "#fdecea"}
    if not card.is_live:
        found |= {"style": "rounded,filled,dashed", "color": _FAINT, "fontcolor": _INK}
    return found


def _label(card: Card) -> str:
    tags = [*card.tags, *(["sees all"] if card.access == ALL else [])]
    body = wrap(card.subtask, width=_WIDTH, lines=_LINES, measure=cells)
    foot = [text for text in (" · ".join(tags), card.facts) if text]
    foot += [line for reason in card.reasons for line in _wrapped(reason)]
    lines = [f"{card.counted_heading} · {card.worker_label}", *body, *foot]
    return "".join(f"{_escaped(line)}\\l" for line in lines)


def _attributes(values: Mapping[str, str]) -> str:
    return ", ".join(f'{name}="{value}"' for name, value in values.items())


def _wrapped(text: str) -> tuple[str, ...]:
    return wrap(text, width=_WIDTH, lines=_REASON_LINES, measure=cells)


def _quoted(texts: Sequence[str]) -> str:
    """A label of lines, the first as it is, the others wrapped."""
    lines = [*texts[:1], *(line for text in texts[1:] for line in _wrapped(text))]
    return '"' + "\\n".join(map(_escaped, lines)) + '"'


def _escaped(text: str) -> str:
    """Graphviz reads escapes such as `\\N` and HTML entities in every string."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
