"""An SVG picture: for each workflow rows of cards, from the question at the top to the answer at the bottom.

A workflow that ran inside a step is drawn inside the step's card.

The picture is whole in itself (no fonts, scripts or images are fetched, no ids that could clash in a notebook),
brings its own background, and follows the reader's light or dark setting where the viewer knows it. Units: pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple, TypeAlias

from wfdsl.language.tree import ALL
from wfdsl.render.layout import place
from wfdsl.render.model import Card, Drawing, Panel, spans
from wfdsl.render.routing import LANE, routed
from wfdsl.render.text import shorten, text_width, wrap

_MARGIN = 24
_PAD = 14
_LINE = 17
_ROW_LENGTH = 8
_PILL = (92, 28)
_TITLE = 16
_HEADING = 13.5
_TEXT = 12
_SMALL = 11
_SUBTASK_LINES = 4
_REASON_LINES = 12
_NOTE_LINES = 8
_MEMBER_LINES = 20
_STACKED = 4  # how far the cards of a stack after the first one stand out
_INNER_MARGIN, _INSET = 12, 10  # in and around a workflow that is drawn inside a card
_ROOMY, _NARROW, _MOST_ROOMY = 212.0, 168.0, 5  # widths of cards, and how many roomy ones share a row
_WIDEST_CAPTION = 720.0
_BOLD = 1.15  # bold letters, and typefaces wider than Arial

STYLE = (Path(__file__).parent / "styles" / "picture.css").read_text("utf-8").strip()


LinkOf: TypeAlias = Callable[[Card, tuple[int, ...]], Mapping[str, str]]
"""The attributes of the link that a card is, such as `href`; it is given the card and the path of its workflow."""


def svg_of(panel: Panel, link: LinkOf | None = None) -> str:
    """Draw a picture as a complete SVG document; with `link`, each card is a link."""
    return "\n".join(_document(_Sheet(panel), link))


class _Lettered(NamedTuple):
    """A card with its text broken into lines, and the workflows that ran inside its step."""

    card: Card
    heading: str
    tag: str
    tag_style: str
    worker: str
    subtask: tuple[str, ...]
    notes: tuple[tuple[str, str], ...]
    """Small lines at the foot: the style and the text of each."""
    inside: tuple[_Sheet, ...]

    @property
    def text_height(self) -> float:
        between = 6 * bool(self.subtask) + 4 * bool(self.notes) - 4
        return 2 * _PAD + _LINE * (2 + len(self.subtask) + len(self.notes)) + between

    @property
    def height(self) -> float:
        return self.text_height + sum(sheet.height + _PAD / 2 for sheet in self.inside)


class _Sheet:
    """Where everything of a panel is. Box 0 of the layout is the question, box i + 1 is card i."""

    width: float
    height: float

    def __init__(self, panel: Panel, *, is_inside: bool = False) -> None:
        self.panel, self.is_inside = panel, is_inside
        self.drawing = drawing = panel.shown
        inside = {step: tuple(_Sheet(each, is_inside=not panel.is_shell) for each in panel.inside[step])
                  for step in panel.inside}  # fmt: skip
        self.below = () if drawing else tuple(sheet for sheets in inside.values() for sheet in sheets)
        self.cards: tuple[_Lettered, ...] = ()
        self.widths: tuple[float, ...] = ()
        margin = _INNER_MARGIN if is_inside else _MARGIN
        drawn = high = 0.0
        if drawing:
            edges = [(0, entry + 1) for entry in drawing.entries]
            edges += [(source + 1, target + 1) for source, target in drawing.edges]
            width = _ROOMY if max(Counter(drawing.ranks).values(), default=0) <= _MOST_ROOMY else _NARROW
            self.cards = tuple(_lettered(card, width, inside.get(card.index, ())) for card in drawing.cards)
            wide = (max([width, *(sheet.width + 2 * _INSET for sheet in each.inside)]) for each in self.cards)
            self.widths = (float(_PILL[0]), *wide)
            self.routes = routed(place(edges, self.widths, lane=LANE, gap=20, row_length=_ROW_LENGTH))
            self.heights = tuple(max(map(self.box_height, row)) for row in self._boxes())
            drawn = max(self.routes.x[spot] + self.widths[spot] / 2 for row in self._boxes() for spot in row)
            drawn = max(drawn, *(at + LANE / 2 for at in self.routes.x.values()))
            high = sum(self.heights) + sum(gap.height for gap in self.routes.gaps)
        summary = drawing.summary if drawing else ""
        notes = [text_width(note.text, _SMALL) for note in panel.notes]
        caption = max(_BOLD * text_width(panel.title, _TITLE), text_width(summary, _SMALL), 0.0, *notes)
        below = max((sheet.width for sheet in self.below), default=0.0)
        self.width = max(max(drawn, min(caption, _WIDEST_CAPTION)) + 2 * margin, below)
        if drawing:
            self.routes = self.routes.moved((self.width - drawn) / 2)
        self.caption = tuple(_caption(panel, summary, self.width - 2 * margin, is_inside=is_inside))
        self.caption_top = margin
        above = margin + sum(height for _, _, height in self.caption) + (12 if drawing else -6)
        top = above if drawing or self.caption else 0
        self.height = top + high + margin + sum(sheet.height for sheet in self.below)
        self.top = [top]
        if drawing:
            for gap, height in zip(self.routes.gaps, self.heights, strict=False):
                self.top.append(self.top[-1] + height + gap.height)

    def _boxes(self) -> list[list[int]]:
        return [[spot for spot in row if isinstance(spot, int)] for row in self.routes.layout.rows]

    def box_height(self, box: int) -> float:
        """How high a box is: the cards of a row are alike, but for those with workflows inside."""
        if box == 0:
            return _PILL[1]
        if self.cards[box - 1].inside:
            return self.cards[box - 1].height
        beside = self._boxes()[self.routes.layout.row_of[box]]
        return max(self.cards[each - 1].height for each in beside if not self.cards[each - 1].inside)

    def y(self, box: int) -> float:
        """The upper edge of a box."""
        return self.top[self.routes.layout.row_of[box]]


def _lettered(card: Card, width: float, inside: tuple[_Sheet, ...]) -> _Lettered:
    inner = width - 2 * _PAD
    tag = f"× {card.count}" if card.count > 1 else " · ".join(card.tags)
    taken = text_width(tag, _SMALL) + 10 if tag else 0.0
    if taken > inner / 2:
        tag, taken = "", 0.0
    left_over = "" if tag and card.count == 1 else " · ".join(card.tags)
    heading, members = shorten(card.heading, width=inner - taken, measure=_measure(_HEADING)), card.members
    if heading != card.heading and card.count > 1 and not card.is_named:
        heading, members = "steps", spans(card.steps)
    sees = "sees all" if card.access == ALL else ""  # what the lines do not say
    notes = [("small", text) for text in (sees, left_over) if text]
    notes += [("small", line) for line in _small_lines(members, inner, lines=_MEMBER_LINES)]
    if card.state:
        notes += [(f"small {card.state}", line) for line in _small_lines(card.facts, inner, lines=2)]
    for reason in card.reasons:
        notes += [("small reason", line) for line in _small_lines(reason, inner, lines=_REASON_LINES)]
    return _Lettered(
        card,
        heading,
        tag,
        "small count" if card.count > 1 else "small tag",
        shorten(card.worker_label, width=inner - 14, measure=_measure(_TEXT)),
        wrap(card.subtask, width=inner, lines=_SUBTASK_LINES, measure=_measure(_TEXT)),
        tuple(notes),
        inside,
    )


def _small_lines(text: str, width: float, *, lines: int) -> tuple[str, ...]:
    return wrap(text, width=width, lines=lines, measure=_measure(_SMALL))


def _measure(size: float) -> Callable[[str], float]:
    return lambda text: text_width(text, size)


def _document(sheet: _Sheet, link: LinkOf | None) -> Iterator[str]:
    width, height = f"{sheet.width:.0f}", f"{sheet.height:.0f}"
    role = "img" if link is None else "group"  # what an image holds cannot be reached
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wfdsl" role="{role}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">'
    )
    panel = sheet.panel
    summary = next((each.drawing.summary for each in (sheet, *sheet.below) if each.drawing), "")
    yield f"<title>{escape(panel.title or 'Workflow')}{escape(f': {summary}' if summary else '')}</title>"
    if panel.description:
        yield f"<desc>{escape(panel.description)}</desc>"
    yield f"<style>{STYLE}</style>"
    yield (
        f'<rect class="page" x="0.5" y="0.5" width="{sheet.width - 1:.0f}" height="{sheet.height - 1:.0f}" rx="12"/>'
    )
    yield from _content(sheet, link)
    yield "</svg>\n"


def _at(left: float, top: float, content: Iterator[str]) -> Iterator[str]:
    yield f'<g transform="translate({left:.1f} {top:.1f})">'
    yield from content
    yield "</g>"


def _content(sheet: _Sheet, link: LinkOf | None) -> Iterator[str]:
    if sheet.is_inside:
        wide, high = sheet.width - 1, sheet.height - 1
        yield f'<rect class="inner" x="0.5" y="0.5" width="{wide:.1f}" height="{high:.1f}" rx="7"/>'
    base = float(sheet.caption_top)
    for style, text, height in sheet.caption:
        base += height
        yield _text(style, sheet.width / 2, base - 6, text, anchor="middle")
    if sheet.drawing is not None:
        yield from _graph(sheet, sheet.drawing, link)
    top = sheet.height - sum(each.height for each in sheet.below)
    for each in sheet.below:
        yield from _at((sheet.width - each.width) / 2, top, _content(each, link))
        top += each.height


def _graph(sheet: _Sheet, drawing: Drawing, link: LinkOf | None) -> Iterator[str]:
    heads: dict[str, None] = {}
    for edge in sheet.routes.layout.lines:
        source, target = edge
        is_live = (source == 0 or drawing.cards[source - 1].is_live) and drawing.cards[target - 1].is_live
        faint = "" if is_live else " faint"
        start = sheet.y(source) + sheet.box_height(source)
        yield f'<path class="line{faint}" d="{sheet.routes.path(edge, sheet.top, sheet.heights, start)}"/>'
        tip = f"M{sheet.routes.tip(edge):.1f} {sheet.y(target) - 1:.1f}l-4.5 -8h9z"
        heads[f'<path class="head{faint}" d="{tip}"/>'] = None
    yield from heads
    middle, high, (wide, tall) = sheet.routes.x[0], sheet.y(0), _PILL
    left = middle - wide / 2
    yield f'<rect class="pill" x="{left:.1f}" y="{high:.1f}" width="{wide}" height="{tall}" rx="{tall / 2}"/>'
    yield _text("body", middle, high + tall / 2 + 4, "question", anchor="middle")
    for box, lettered in enumerate(sheet.cards, 1):
        if link is None:
            yield from _card(sheet, box, lettered)
        else:
            where = link(lettered.card, sheet.panel.path)
            attributes = "".join(f' {name}="{escape(value)}"' for name, value in where.items())
            yield f"<a{attributes}>"
            yield from _card(sheet, box, lettered)
            yield "</a>"
        for left, top, each in _insides(sheet, box, lettered):
            yield from _at(left, top, _content(each, link))


def _insides(sheet: _Sheet, box: int, lettered: _Lettered) -> Iterator[tuple[float, float, _Sheet]]:
    """The workflows inside a card, with their places."""
    top = sheet.y(box) + lettered.text_height
    for each in lettered.inside:
        yield sheet.routes.x[box] - each.width / 2, top, each
        top += each.height + _PAD / 2


def _caption(panel: Panel, summary: str, room: float, *, is_inside: bool) -> Iterator[tuple[str, str, float]]:
    """What is written above a drawing (title, shape, remarks): the style, text and height of each line."""
    if panel.title:
        style, size = ("heading", _HEADING) if is_inside else ("title", _TITLE)
        yield style, shorten(panel.title, width=room, measure=_measure(_BOLD * size)), 20.0
    if summary:
        yield "small", shorten(summary, width=room, measure=_measure(_SMALL)), 18.0
    for note in panel.notes:
        for line in wrap(note.text, width=room, lines=_NOTE_LINES, measure=_measure(_SMALL)):
            yield "small reason" if note.is_bad else "small remark", line, 16.0


def _card(sheet: _Sheet, box: int, lettered: _Lettered) -> Iterator[str]:
    card = lettered.card
    width, height = sheet.widths[box], sheet.box_height(box)
    left, top = sheet.routes.x[box] - width / 2, sheet.y(box)
    states = (("answer", card.is_answer), ("faint", not card.is_live), ("bad", card.state == "failed"))
    yield f'<g class="{" ".join(["step", *(name for name, holds in states if holds)])}">'
    yield f"<title>{escape(card.tooltip)}</title>"
    for behind in (2, 1, 0) if card.count > 1 else (0,):
        out = behind * _STACKED
        yield _outline(left + out, top + out, width, height, is_conductor=card.is_conductor)
    yield from _writing(lettered, left + _PAD, top + _PAD, width - 2 * _PAD)
    yield "</g>"


def _outline(left: float, top: float, width: float, height: float, *, is_conductor: bool) -> str:
    """Round corners for a worker, cut corners for a Conductor."""
    if not is_conductor:
        return f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="9"/>'
    cut = 12
    across, down = width - 2 * cut, height - 2 * cut
    return (
        f'<path class="box" d="M{left + cut:.1f} {top:.1f}h{across:.1f}l{cut} {cut}v{down:.1f}l-{cut} {cut}'
        f'h-{across:.1f}l-{cut} -{cut}v-{down:.1f}z"/>'
    )


def _writing(lettered: _Lettered, left: float, top: float, inner: float) -> Iterator[str]:
    base = top + 11
    yield _text("heading", left, base, lettered.heading)
    if lettered.tag:
        yield _text(lettered.tag_style, left + inner, base, lettered.tag, anchor="end")
    base += _LINE + 1
    worker = lettered.card.worker
    hue = f"w{worker % 8}" if isinstance(worker, int) else "w"
    yield f'<circle class="{hue}" cx="{left + 4:.1f}" cy="{base - 4:.1f}" r="4"/>'
    yield _text("body", left + 14, base, lettered.worker)
    base += 6 if lettered.subtask else 0
    for line in lettered.subtask:
        base += _LINE
        yield _text("body", left, base, line)
    base += 4 if lettered.notes else 0
    for style, note in lettered.notes:
        base += _LINE
        yield _text(style, left, base, note)


def _text(style: str, x: float, y: float, text: str, *, anchor: str = "start") -> str:
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}"{place}>{escape(text)}</text>'
