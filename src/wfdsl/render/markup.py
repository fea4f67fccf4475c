"""A reply as HTML: Markdown, tables, code in colours, formulas as MathML. Made without a script, and it stays text.

Nothing that a model wrote becomes an element by itself: HTML is escaped, links and images are shown with their address
and lead nowhere, and of a formula only the elements and attributes of a list are kept.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from wfdsl.render.text import harmless

_LONGEST: Final = 30_000
"""Characters of a text; a longer one is shown as it was written, since reading it may take a second. Our choice."""
_MOST_LINES: Final = 50
"""Of a formula in lines of its own."""
_INLINE: Final = re.compile(
    r"\$\$(.{1,1000}?)\$\$|\$(?!\s)([^$\n]{1,1000})(?<!\s)\$(?!\d)|\\\((.{1,1000}?)\\\)|\\\[(.{1,1000}?)\\\]", re.DOTALL
)
_FENCES: Final = {"$$": "$$", r"\[": r"\]"}
_ELEMENTS: Final = re.compile(
    "math|mrow|mi|mn|mo|mtext|mspace|msup|msub|msubsup|mfrac|msqrt|mroot|mover|munder|munderover|mtable|mtr|mtd|mstyle|"
    "mpadded|mphantom|menclose"
)
_ATTRIBUTES: Final = re.compile(
    "display|mathvariant|stretchy|fence|form|separator|accent|linethickness|lspace|rspace|displaystyle|scriptlevel|"
    "minsize|maxsize|width|symmetric|largeop|movablelimits|columnalign|rowspacing|columnspacing|notation"
)
_NAMESPACE: Final = "{http://www.w3.org/1998/Math/MathML}"
STYLE: Final = (Path(__file__).parent / "styles" / "markup.css").read_text("utf-8").strip()
"""The style of what `markup` gives; the page has the colours as variables."""


def markup(text: str) -> str:
    """A text as HTML, with the text as it was written below it, folded, where the two differ."""
    shown = harmless(text)
    raw = f'<pre dir="auto">\n{escape(shown)}</pre>'
    if len(shown) > _LONGEST:
        return raw
    found = _markdown().render(shown)
    if found == f"<p>{escape(shown.strip())}</p>\n" and "\n" not in shown.strip():
        return raw
    return (
        f'<div class="markup" dir="auto">{found}</div><details class="raw"><summary>As written</summary>{raw}</details>'
    )


@cache
def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "xhtmlOut": True, "maxNesting": 20, "highlight": _coloured})
    made.enable(["table", "strikethrough"])
    made.inline.ruler.before("escape", "formula", _inline_formula)
    made.block.ruler.before("fence", "formulas", _block_formula, {"alt": ["paragraph", "blockquote", "list"]})
    made.add_render_rule("formula", lambda _, tokens, at, *__: tokens[at].content)
    made.add_render_rule("image", lambda _, tokens, at, *__: _address(tokens[at].content, tokens[at].attrs["src"]))
    made.add_render_rule("link_open", lambda *_: "<span>")
    made.add_render_rule("link_close", _link_end)
    for name in ("th_open", "td_open"):
        made.add_render_rule(name, _cell)
    for name in ("heading_open", "heading_close"):
        made.add_render_rule(name, _heading)
    return made


def _heading(_: Any, tokens: Any, at: int, *__: Any) -> str:
    """Headings of a reply are below those of the page."""
    return f"<{'/' * (tokens[at].nesting < 0)}h{min(int(tokens[at].tag[1:]) + 3, 6)}>"


def _cell(_: Any, tokens: Any, at: int, *__: Any) -> str:
    place = str(tokens[at].attrs.get("style", "")).removeprefix("text-align:")
    return f'<{tokens[at].tag} class="{place}">' if place in ("right", "center") else f"<{tokens[at].tag}>"


def _link_end(_: Any, tokens: Any, at: int, *__: Any) -> str:
    """The end of a link, with its address unless that is its text."""
    opened = next(each for each in range(at, -1, -1) if tokens[each].type == "link_open")
    address = str(tokens[opened].attrs["href"])
    text = "".join(token.content for token in tokens[opened:at])
    return "</span>" if text == address.removeprefix("mailto:") else f"{_address('', address)}</span>"


def _address(text: str, address: Any) -> str:
    return f'{escape(text)} <span class="address">({escape(str(address))})</span>'


def _coloured(code: str, language: str, _: str) -> str:
    """Code with a class for each kind of word; markdown-it escapes it where nothing is given."""
    if not language:
        return ""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def _inline_formula(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  (markdown-it calls it so)
    found = _INLINE.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content = _formula(next(filter(None, found.groups())), found[0], is_block=found[0][:2] in _FENCES)
    state.pos = found.end()
    return True


def _block_formula(state: StateBlock, first: int, last: int, silent: bool) -> bool:  # noqa: FBT001
    """A formula in lines of its own: its signs start no list and no heading."""

    def line(at: int) -> str:
        return state.src[state.bMarks[at] + state.tShift[at] : state.eMarks[at]].strip()

    lines = [line(first)]
    ends = _FENCES.get(lines[0])
    if ends is None:
        return False
    for at in range(first + 1, min(first + _MOST_LINES, last)):
        lines.append(line(at))
        if lines[-1] == ends:
            break
    else:
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content = _formula("\n".join(lines[1:-1]), "\n".join(lines), is_block=True)
    state.line = at + 1
    return True


def _formula(latex: str, source: str, *, is_block: bool) -> str:
    """A formula as MathML, or its source where it cannot be read or is more than a formula."""
    plain = f"<code>{escape(source)}</code>"
    if _MARKUP.search(latex):
        return plain
    try:
        tree = ElementTree.fromstring(convert(latex, display="block" if is_block else "inline"))
        made = _allowed(tree)
    except Exception:  # noqa: BLE001  (the converter raises anything on what models write)
        return plain
    return plain if made is None else made


_MARKUP: Final = re.compile(r"\\(href|style|class|cssId|htmlmathml)")


def _allowed(element: ElementTree.Element) -> str | None:
    """An element with what is inside it; None: it is not one that a formula has."""
    name = element.tag.removeprefix(_NAMESPACE)
    if not _ELEMENTS.fullmatch(name):
        return None
    inside = [_allowed(each) for each in element]
    if any(each is None for each in inside):
        return None
    kept = "".join(f' {key}="{escape(value)}"' for key, value in element.attrib.items() if _ATTRIBUTES.fullmatch(key))
    tails = [escape(each.tail or "") for each in element]
    content = "".join(f"{each}{tail}" for each, tail in zip(inside, tails, strict=True))
    return f"<{name}{kept}>{escape(element.text or '')}{content}</{name}>"
