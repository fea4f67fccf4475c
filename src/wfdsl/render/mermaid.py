"""A workflow as a Mermaid flowchart, for Markdown pages.

Labels are in double quotes, and whatever Mermaid might act on in them (quotes, HTML, Markdown, comments, entity
codes) is written as an entity code. There is no markup but line breaks: not every viewer has HTML labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wfdsl.language.diagnostics import cells
from wfdsl.language.tree import ALL
from wfdsl.render.model import Card, Drawing, Panel, Placed, placed
from wfdsl.render.text import wrap

_MOST_LINES = 20
_WIDTH, _LINES = 22, 6  # Mermaid itself breaks lines at 200 pixels
# ASCII signs that Mermaid, Markdown or HTML may act on, and the signs that represent entity codes inside Mermaid.
_UNSAFE = re.compile(r"(?<=\d)\.|[!-~ﬂ¶](?<![\w.,?!'])|_")
_ACTING = re.compile(r"\\(?=n)|\$(?=\$)|\bfa\w?:(?=fa-)|direction(?=\s)")
_WIDE_SIGNS = str.maketrans("<>&", "＜＞＆")
_CLASSES = (
    "classDef answer stroke:#2f6fde,stroke-width:2px",
    "classDef dead stroke-dasharray:5 4,opacity:0.5",
    "classDef running stroke:#2f6fde",
    "classDef done stroke:#1a8a4f",
    "classDef failed stroke:#d0342c,stroke-width:3px",
)


def mermaid_of(panel: Panel) -> str:
    """Write a picture as a Mermaid flowchart; where workflows ran in it, each is a subgraph."""
    return "\n".join(_lines(panel)) + "\n"


def _lines(panel: Panel) -> Iterator[str]:
    if panel.title:
        yield from ("---", f"title: {_title(panel.title)}", "---")
    yield "flowchart TD"
    found = placed(panel)
    if len(found) == 1 and panel.shown:
        yield from _notes(found[0])
        yield from _graph(panel.shown, "", "  ")
    else:
        for each in found:
            yield from _subgraph(each)
        yield from _links(found)
    drawings = [(f"p{each.number}" if len(found) > 1 else "", each.panel.shown) for each in found if each.panel.shown]
    classes = [(f"{prefix}s{card.index}", _classes(card)) for prefix, its in drawings for card in its.cards]
    used = {name for _, names in classes for name in names}
    yield from (f"  {line}" for line in _CLASSES if line.split()[1] in used)
    yield from (f"  class {node} {name}" for node, names in classes for name in names[1:])


def _subgraph(each: Placed) -> Iterator[str]:
    panel, prefix = each.panel, f"p{each.number}"
    if panel.shown is None:
        if each.number:
            yield from _notes(each)
        return
    label = " · ".join([panel.title, *(note.text for note in panel.notes)])
    yield f'  subgraph {prefix}["{_text(label)}"]'
    yield from _graph(panel.shown, prefix, "    ")
    yield "  end"


def _notes(each: Placed) -> Iterator[str]:
    """A box with what is said of a panel that has no drawing."""
    panel = each.panel
    said = [panel.title] if each.number else []
    lines = [line for text in [*said, *(note.text for note in panel.notes)] for line in _wrapped(text, _WIDTH)]
    if lines:
        yield f'  p{each.number}(["{"<br/>".join(lines)}"])'


def _links(found: Sequence[Placed]) -> Iterator[str]:
    """From a Conductor node to the first workflow inside of it, and from each round to the next."""
    for each in found:
        if each.previous is not None:
            yield f"  p{each.previous} -.-> p{each.number}"
        elif each.parent is not None:
            parent = found[each.parent].panel.shown
            assert parent is not None  # only panels that are shown are parents
            yield f"  p{each.parent}s{parent.cards[each.card].index} -.-> p{each.number}"


def _graph(drawing: Drawing, prefix: str, indent: str) -> Iterator[str]:
    cards = drawing.cards
    yield f'{indent}{prefix}question(["question"])'
    for card in cards:
        names = _classes(card)
        yield f"{indent}{prefix}s{card.index}{_shape(card)}" + (f":::{names[0]}" if names else "")
    edges = [("question", target) for target in drawing.entries]
    edges += [(f"s{cards[source].index}", target) for source, target in drawing.edges]
    for start, target in edges:
        arrow = "-->" if cards[target].is_live else "-.->"
        yield f"{indent}{prefix}{start} {arrow} {prefix}s{cards[target].index}"


def _shape(card: Card) -> str:
    label = f'"{_label(card)}"'
    if card.is_conductor:
        return f"{{{{{label}}}}}"
    return f"[[{label}]]" if card.count > 1 else f"[{label}]"


def _classes(card: Card) -> list[str]:
    marks = (("dead", not card.is_live), ("answer", card.is_answer))
    states = [card.state] if card.state in {"running", "done", "failed"} else []
    return [*(name for name, holds in marks if holds), *states]


def _label(card: Card) -> str:
    tags = [*card.tags, *(["sees all"] if card.access == ALL else [])]
    head = _text(f"{card.counted_heading} · {card.worker_label}")
    body = map(_text, wrap(card.subtask, width=_WIDTH, lines=_LINES, measure=cells))
    foot = [_text(text) for text in (" · ".join(tags), card.facts) if text]
    reasons = [line for reason in card.reasons for line in _wrapped(reason, _WIDTH)]
    return "<br/>".join([head, *body, *_wrapped(card.members, _WIDTH), *foot, *reasons])


def _wrapped(text: str, width: int) -> list[str]:
    return [_text(line) for line in wrap(text, width=width, lines=_MOST_LINES, measure=cells)]


def _text(text: str) -> str:
    """ASCII signs but plain punctuation become codes, and so does a dot after a digit, which may start a list.

    A word joiner parts what Mermaid acts on even as codes: a backslash and an n are a line break, two dollars begin a
    formula, `fa:fa-` an icon, and `direction LR` anywhere in a label is a statement.
    """
    return _UNSAFE.sub(lambda found: f"#{ord(found[0])};", _ACTING.sub("\\g<0>\u2060", text))


def _title(text: str) -> str:
    """A YAML string in double quotes. Mermaid drops or garbles HTML signs in a title: wide forms replace them."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').translate(_WIDE_SIGNS) + '"'
