"""An SVG picture: for each workflow rows of cards, from the question at the top to the answer at the bottom.

The picture is whole in itself (no fonts, scripts or images are fetched, no ids that could clash in a notebook),
brings its own background, and follows the reader's light or dark setting where the viewer knows it. Units: pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias
from xml.sax.saxutils import escape

from wfdsl.language.tree import ALL
from wfdsl.render.layout import Lane, Layout, Spot, place
from wfdsl.render.model import Card, Drawing, Panel, Placed, placed
from wfdsl.render.text import shorten, text_width, wrap

_MARGIN = 24
_PAD = 14
_LINE = 17
_ROW_GAP = 46
_ROW_LENGTH = 8
_PILL = (92, 28)
_TITLE = 16
_HEADING = 13.5
_TEXT = 12
_SMALL = 11
_SUBTASK_LINES = 4
_REASON_LINES = 12
_NOTE_LINES = 8
_STACKED = 4  # how far the cards of a stack after the first one stand out
_INDENT = 28  # for each workflow that a workflow ran in
_WIDEST_CAPTION = 720.0
_BOLD = 1.15  # bold letters, and typefaces wider than Arial

STYLE = """
.wfdsl{max-width:100%;height:auto}
.wfdsl text{font-family:-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;fill:#1f2430}
.wfdsl .page{fill:#fafbfc;stroke:#e3e6eb}
.wfdsl .title{font-size:16px;font-weight:600}
.wfdsl .heading{font-size:13.5px;font-weight:600}
.wfdsl .body{font-size:12px;fill:#434a57}
.wfdsl .small{font-size:11px;fill:#6b7280}
.wfdsl .box{fill:#ffffff;stroke:#c9ced8;stroke-width:1.25}
.wfdsl .answer .box{stroke:#2f6fde;stroke-width:2}
.wfdsl .answer .tag{fill:#2f6fde;font-weight:600}
.wfdsl .bad .box{stroke:#d0342c;stroke-width:2.5;fill:#fdecea}
.wfdsl .bad .heading{fill:#b3261e}
.wfdsl .count{fill:#1f2430;font-weight:700}
.wfdsl .inner{fill:none;stroke:#d5d9e0;stroke-width:1}
.wfdsl .pill{fill:#eceff4;stroke:#c9ced8;stroke-width:1.25}
.wfdsl .line{fill:none;stroke:#8a93a3;stroke-width:1.5}
.wfdsl .head{fill:#8a93a3}
.wfdsl .faint{opacity:.5}
.wfdsl .faint .box,.wfdsl .line.faint{stroke-dasharray:5 4}
.wfdsl .running{fill:#2f6fde}.wfdsl .done{fill:#1a8a4f}.wfdsl .failed{fill:#b3261e}
.wfdsl .reason{fill:#b3261e}.wfdsl .remark{fill:#8a5a00}
.wfdsl .waiting,.wfdsl .pruned{fill:#8a93a3}
.wfdsl .w0{fill:#4c78dd}.wfdsl .w1{fill:#e08a2c}.wfdsl .w2{fill:#2fa37c}.wfdsl .w3{fill:#c5527f}
.wfdsl .w4{fill:#8b63d0}.wfdsl .w5{fill:#2aa0bd}.wfdsl .w6{fill:#b0a02a}.wfdsl .w7{fill:#d2604a}
.wfdsl .w{fill:#8a93a3}
@media (prefers-color-scheme:dark){
.wfdsl text{fill:#e6e9ef}
.wfdsl .page{fill:#16191f;stroke:#2b303a}
.wfdsl .body{fill:#b9c0cc}.wfdsl .small{fill:#8f98a8}
.wfdsl .box{fill:#20242c;stroke:#454c59}
.wfdsl .pill{fill:#2a2f39;stroke:#454c59}
.wfdsl .line{stroke:#737d8e}.wfdsl .head{fill:#737d8e}
.wfdsl .answer .box{stroke:#6f9ff0}.wfdsl .answer .tag{fill:#6f9ff0}
.wfdsl .bad .box{stroke:#f0776f;fill:#3a2224}.wfdsl .bad .heading{fill:#ff9d96}
.wfdsl .count{fill:#e6e9ef}.wfdsl .inner{stroke:#39404c}
.wfdsl .running{fill:#6f9ff0}.wfdsl .done{fill:#4cc38a}.wfdsl .failed{fill:#ff9d96}
.wfdsl .reason{fill:#ff9d96}.wfdsl .remark{fill:#e3b34d}
}
""".strip()


LinkOf: TypeAlias = Callable[[Card], Mapping[str, str]]
"""The attributes of the link that a card is, such as `href`."""


def svg_of(panel: Panel, link: LinkOf | None = None) -> str:
    """Draw a picture as a complete SVG document; with `link`, each card is a link."""
    return "\n".join(_document([_Sheet(each) for each in placed(panel)], link))


_EMPTY = Layout((), {}, {})


class _Lettered(NamedTuple):
    """A card with its text broken into lines."""

    card: Card
    heading: str
    tag: str
    tag_style: str
    worker: str
    subtask: tuple[str, ...]
    notes: tuple[tuple[str, str], ...]
    """Small lines at the foot: the style and the text of each."""

    @property
    def height(self) -> float:
        return (
            2 * _PAD
            + _LINE * (2 + len(self.subtask) + len(self.notes))
            + (6 if self.subtask else 0)
            + (4 if self.notes else 0)
            - 4
        )


class _Sheet:
    """Where everything of a panel is. Box 0 of the layout is the question, box i + 1 is card i."""

    def __init__(self, found: Placed) -> None:
        panel = found.panel
        self.panel = panel
        self.level = found.level
        self.drawing = drawing = panel.shown
        self.box_width, self.layout = _laid_out(drawing) if drawing else (0.0, _EMPTY)
        self.cards = tuple(_lettered(card, self.box_width) for card in drawing.cards) if drawing else ()
        self.row = {spot: number for number, row in enumerate(self.layout.rows) for spot in row}
        self.heights = tuple(max(map(self._height, row), default=0.0) for row in self.layout.rows)
        summary = drawing.summary if drawing else ""
        caption = max(_BOLD * text_width(panel.title, _TITLE), text_width(summary, _SMALL), *_note_widths(panel))
        drawn = max((at + self.box_width / 2 for at in self.layout.x.values()), default=0.0)
        self.width = max(drawn, min(caption, _WIDEST_CAPTION)) + 2 * _MARGIN
        self.left = (self.width - drawn) / 2
        self.caption = tuple(_caption(panel, summary, self.width - 2 * _MARGIN))
        self.top = _MARGIN + sum(line.height for line in self.caption) + (12 if drawing else -6)
        self.height = self.top + sum(self.heights) + _ROW_GAP * max(len(self.heights) - 1, 0) + _MARGIN

    def _height(self, spot: Spot) -> float:
        if isinstance(spot, Lane):
            return 0.0
        return _PILL[1] if spot == 0 else self.cards[spot - 1].height

    def box_height(self, spot: Spot) -> float:
        """How high a box is: all cards of a row are alike."""
        return _PILL[1] if spot == 0 else self.heights[self.row[spot]]

    def x(self, spot: Spot) -> float:
        """The centre of a spot."""
        return self.left + self.layout.x[spot]

    def y(self, row: int) -> float:
        """The upper edge of a row."""
        return self.top + sum(self.heights[:row]) + _ROW_GAP * row


def _laid_out(drawing: Drawing) -> tuple[float, Layout]:
    edges = [(0, entry + 1) for entry in drawing.entries]
    edges += [(source + 1, target + 1) for source, target in drawing.edges]

    def with_boxes(width: float) -> Layout:
        return place(edges, len(drawing.cards) + 1, box=width, lane=14, gap=20, row_length=_ROW_LENGTH)

    roomy = with_boxes(212)
    boxes_across = max(sum(isinstance(spot, int) for spot in row) for row in roomy.rows)
    return (212, roomy) if boxes_across <= 5 else (168, with_boxes(168))


def _lettered(card: Card, width: float) -> _Lettered:
    inner = width - 2 * _PAD
    tag = f"× {card.count}" if card.count > 1 else " · ".join(card.tags)
    taken = text_width(tag, _SMALL) + 10 if tag else 0.0
    if taken > inner / 2:
        tag, taken = "", 0.0
    left_over = "" if tag and card.count == 1 else " · ".join(card.tags)
    notes = [("small", text) for text in (_sees(card), left_over) if text]
    if card.state:
        notes += [(f"small {card.state}", line) for line in _small_lines(card.facts, inner, lines=2)]
    for reason in card.reasons:
        notes += [("small reason", line) for line in _small_lines(reason, inner, lines=_REASON_LINES)]
    return _Lettered(
        card,
        shorten(card.heading, width=inner - taken, measure=_measure(_HEADING)),
        tag,
        "small count" if card.count > 1 else "small tag",
        shorten(card.worker_label, width=inner - 14, measure=_measure(_TEXT)),
        wrap(card.subtask, width=inner, lines=_SUBTASK_LINES, measure=_measure(_TEXT)),
        tuple(notes),
    )


def _small_lines(text: str, width: float, *, lines: int) -> tuple[str, ...]:
    return wrap(text, width=width, lines=lines, measure=_measure(_SMALL))


def _sees(card: Card) -> str:
    """What the lines do not say: that a step asked for everything."""
    return "sees all" if card.access == ALL else ""


def _measure(size: float) -> Callable[[str], float]:
    return lambda text: text_width(text, size)


def _document(sheets: list[_Sheet], link: LinkOf | None) -> Iterator[str]:
    wide = max(_INDENT * sheet.level + sheet.width for sheet in sheets)
    size = f"{wide:.0f} {sum(sheet.height for sheet in sheets):.0f}"
    width, height = size.split()
    role = "img" if link is None else "group"  # what an image holds cannot be reached
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wfdsl" role="{role}" width="{width}" height="{height}" '
        f'viewBox="0 0 {size}">'
    )
    first = sheets[0].panel
    summary = next((sheet.drawing.summary for sheet in sheets if sheet.drawing), "")
    yield f"<title>{escape(first.title or 'Workflow')}{escape(f': {summary}' if summary else '')}</title>"
    if first.description:
        yield f"<desc>{escape(first.description)}</desc>"
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="page" x="0.5" y="0.5" width="{wide - 1:.0f}" height="{float(height) - 1:.0f}" rx="12"/>'
    top = 0.0
    for sheet in sheets:
        left = (wide - sheet.width) / 2 if not sheet.level else _INDENT * sheet.level
        yield from _panel(sheet, left, top, link) if len(sheets) > 1 else _content(sheet, link)
        top += sheet.height
    yield "</svg>\n"


def _panel(sheet: _Sheet, left: float, top: float, link: LinkOf | None) -> Iterator[str]:
    yield f'<g transform="translate({left:.1f} {top:.1f})">'
    if sheet.level:
        yield f'<rect class="inner" x="6" y="4" width="{sheet.width - 12:.1f}" height="{sheet.height - 8:.1f}" rx="9"/>'
    yield from _content(sheet, link)
    yield "</g>"


def _content(sheet: _Sheet, link: LinkOf | None) -> Iterator[str]:
    base = float(_MARGIN)
    for line in sheet.caption:
        base += line.height
        yield _text(line.style, sheet.width / 2, base - 6, line.text, anchor="middle")
    drawing = sheet.drawing
    if drawing is None:
        return
    for (source, target), spots in sheet.layout.lines.items():
        yield from _line(sheet, spots, is_faint=not _is_live(drawing, source, target))
    yield from _question(sheet)
    for at, lettered in enumerate(sheet.cards):
        if link is None:
            yield from _card(sheet, at, lettered)
        else:
            attributes = "".join(f' {name}="{escape(value)}"' for name, value in link(lettered.card).items())
            yield f"<a{attributes}>"
            yield from _card(sheet, at, lettered)
            yield "</a>"


def _is_live(drawing: Drawing, source: int, target: int) -> bool:
    return (source == 0 or drawing.cards[source - 1].is_live) and drawing.cards[target - 1].is_live


class _CaptionLine(NamedTuple):
    style: str
    text: str
    height: float


def _caption(panel: Panel, summary: str, room: float) -> Iterator[_CaptionLine]:
    """What is written above a drawing: the title, the shape, the remarks."""
    if panel.title:
        yield _CaptionLine("title", shorten(panel.title, width=room, measure=_measure(_BOLD * _TITLE)), 20.0)
    if summary:
        yield _CaptionLine("small", shorten(summary, width=room, measure=_measure(_SMALL)), 18.0)
    for note in panel.notes:
        for line in wrap(note.text, width=room, lines=_NOTE_LINES, measure=_measure(_SMALL)):
            yield _CaptionLine("small reason" if note.is_bad else "small remark", line, 16.0)


def _note_widths(panel: Panel) -> list[float]:
    return [0.0, *(text_width(note.text, _SMALL) for note in panel.notes)]


def _question(sheet: _Sheet) -> Iterator[str]:
    middle, top = sheet.x(0), sheet.y(0)
    wide, high = _PILL
    left = middle - wide / 2
    yield f'<rect class="pill" x="{left:.1f}" y="{top:.1f}" width="{wide}" height="{high}" rx="{high / 2}"/>'
    yield _text("body", middle, top + high / 2 + 4, "question", anchor="middle")


def _line(sheet: _Sheet, spots: tuple[Spot, ...], *, is_faint: bool) -> Iterator[str]:
    """A line runs straight down within a row and bends only between rows, where no box is."""
    rows, start = sheet.row, spots[0]
    at, bottom = sheet.x(start), sheet.y(rows[start]) + sheet.heights[rows[start]]
    path = [f"M{at:.1f} {sheet.y(rows[start]) + sheet.box_height(start):.1f}V{bottom:.1f}"]
    for spot in spots[1:]:
        upper, lower = sheet.y(rows[spot]) - _ROW_GAP, sheet.y(rows[spot])
        end = lower if isinstance(spot, Lane) else lower - 6
        bend = (end - upper) * 0.55
        path.append(f"C{at:.1f} {upper + bend:.1f} {sheet.x(spot):.1f} {end - bend:.1f} {sheet.x(spot):.1f} {end:.1f}")
        at = sheet.x(spot)
        if isinstance(spot, Lane):
            path.append(f"V{lower + sheet.heights[rows[spot]]:.1f}")
    faint = " faint" if is_faint else ""
    tip = sheet.y(rows[spots[-1]])
    yield f'<path class="line{faint}" d="{"".join(path)}"/>'
    yield f'<path class="head{faint}" d="M{at:.1f} {tip - 1:.1f}l-4.5 -8h9z"/>'


def _card(sheet: _Sheet, at: int, lettered: _Lettered) -> Iterator[str]:
    card = lettered.card
    width, height = sheet.box_width, sheet.box_height(at + 1)
    left, top = sheet.x(at + 1) - width / 2, sheet.y(sheet.row[at + 1])
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
    yield f'<circle class="{_hue(lettered.card)}" cx="{left + 4:.1f}" cy="{base - 4:.1f}" r="4"/>'
    yield _text("body", left + 14, base, lettered.worker)
    base += 6 if lettered.subtask else 0
    for line in lettered.subtask:
        base += _LINE
        yield _text("body", left, base, line)
    base += 4 if lettered.notes else 0
    for style, note in lettered.notes:
        base += _LINE
        yield _text(style, left, base, note)


def _hue(card: Card) -> str:
    return f"w{card.worker % 8}" if isinstance(card.worker, int) else "w"


def _text(style: str, x: float, y: float, text: str, *, anchor: str = "start") -> str:
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}"{place}>{escape(text)}</text>'
