"""A workflow as a Mermaid flowchart, for Markdown pages.

Labels are in double quotes, and whatever Mermaid might act on in them (quotes, HTML, Markdown, comments, entity
codes) is written as an entity code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Unpack

from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Workflow
from wfdsl.render.model import Card, Drawing, Options, draw
from wfdsl.render.text import cells, wrap

_WIDTH, _LINES = 26, 5  # Mermaid itself breaks lines at 200 pixels
# ASCII signs that Mermaid, Markdown or HTML may act on, and the signs that represent entity codes inside Mermaid.
_UNSAFE = re.compile(r"(?<=\d)\.|[!-~ﬂ¶](?<![\w.,?!'])|_")
_WIDE_SIGNS = str.maketrans("<>&", "＜＞＆")
_CLASSES = (
    "classDef answer stroke:#2f6fde,stroke-width:2px",
    "classDef dead stroke-dasharray:5 4,opacity:0.5",
    "classDef running stroke:#2f6fde",
    "classDef done stroke:#1a8a4f",
    "classDef failed stroke:#d0342c,stroke-width:2px",
)


def to_mermaid(workflow: Workflow, **options: Unpack[Options]) -> str:
    """Write a workflow as a Mermaid flowchart.

    Raises:
        ValueError: `names` has not one name for each step.
    """
    drawing = draw(workflow, **options)
    return "\n".join(_lines(drawing)) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    if drawing.title:
        yield from ("---", f"title: {_title(drawing.title)}", "---")
    yield "flowchart TD"
    yield '  question(["question"])'
    classes = [_classes(card) for card in drawing.cards]
    for card, names in zip(drawing.cards, classes, strict=True):
        yield f"  s{card.index}{_shape(card)}" + (f":::{names[0]}" if names else "")
    for entry in drawing.entries:
        yield f"  question {_arrow(is_live=drawing.cards[entry].is_live)} s{entry}"
    for source, target in drawing.edges:
        yield f"  s{source} {_arrow(is_live=drawing.cards[target].is_live)} s{target}"
    used = {name for names in classes for name in names}
    yield from (f"  {line}" for line in _CLASSES if line.split()[1] in used)
    yield from (f"  class s{card.index} {name}" for card in drawing.cards for name in classes[card.index][1:])


def _shape(card: Card) -> str:
    label = f'"{_label(card)}"'
    return f"{{{{{label}}}}}" if card.is_conductor else f"[{label}]"


def _arrow(*, is_live: bool) -> str:
    return "-->" if is_live else "-.->"


def _classes(card: Card) -> list[str]:
    marks = (("dead", not card.is_live), ("answer", card.is_answer))
    states = [card.status.state] if card.status and card.status.state in {"running", "done", "failed"} else []
    return [*(name for name, holds in marks if holds), *states]


def _label(card: Card) -> str:
    tags = [*card.tags, *(["sees all"] if card.access == ALL else [])]
    head = f"<b>{_text(card.heading)}</b> {_text('· ' + card.worker_label)}"
    body = map(_text, wrap(card.subtask, width=_WIDTH, lines=_LINES, measure=cells))
    foot = [f"<i>{_text(text)}</i>" for text in (" · ".join(tags), card.status_text) if text]
    return "<br/>".join([head, *body, *foot])


def _text(text: str) -> str:
    """ASCII signs but plain punctuation become codes, and so does a dot after a digit, which may start a list.

    A word joiner parts a backslash from an n, because Mermaid makes a line break of the two even as codes.
    """
    return _UNSAFE.sub(lambda found: f"#{ord(found[0])};", text.replace("\\n", "\\\u2060n"))


def _title(text: str) -> str:
    """A YAML string in double quotes. Mermaid drops or garbles HTML signs in a title: wide forms replace them."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').translate(_WIDE_SIGNS) + '"'
