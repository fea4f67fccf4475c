"""The texts of workflow files: from string literals to what they say, and back.

Indentation goes first, then braces, then escapes; so a brace that an escape makes is text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from wfdsl.language.diagnostics.diagnostic import Diagnostic
from wfdsl.language.file_tree import Operand, Text
from wfdsl.language.literals import joined_surrogates, string_value
from wfdsl.language.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wfdsl.language.lalr import Token

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_SPECIAL = re.compile(r"[\\{}\r\n]")  # what makes a text more than what stands between its quotes
_BLANK = " \t\f"
_WRAP = '"""'


class _Piece(NamedTuple):
    """A terminal of the rule `subtask`, and where it stands in the file."""

    kind: str
    text: str
    start: int
    end: int


class TextReader:
    """Reads the literals of one file; `found` collects what is wrong with them."""

    def __init__(self, pieces: re.Pattern[str]) -> None:
        """`pieces` matches the terminals of the grammar's rule `subtask`."""
        self._pieces = pieces
        self.found: list[Diagnostic] = []

    def plain(self, strings: Sequence[Token]) -> Text:
        """A text in which braces mean nothing."""
        return self._text(strings, braces=False)

    def subtask(self, strings: Sequence[Token]) -> Text:
        """A text with parameters in it."""
        return self._text(strings, braces=True)

    def _text(self, strings: Sequence[Token], *, braces: bool) -> Text:
        parts = [part for string in strings for part in self._parts(string, braces=braces)]
        start, end = strings[0].start, strings[-1].end
        return Text(tuple(strings), tuple(self._joined(parts, Span(start, end))), start, end)

    def _parts(self, string: Token, *, braces: bool) -> Iterator[str | Operand]:
        prefix, body, start = split_literal(string.text)
        if not _SPECIAL.search(body):
            yield body
            return
        pieces = list(self._split(body, string.start + start, braces=braces))
        for piece in pieces:
            self._examine(prefix, piece)
        dedented = dedent(body) if is_long(string.text) and _LINE_BREAK.search(body) else body
        if dedented != body:
            places = (piece for piece in pieces if piece.kind == "PARAMETER")
            for piece in self._split(dedented, 0, braces=braces):
                yield self._value(prefix, next(places) if piece.kind == "PARAMETER" else piece)
        else:
            yield from (self._value(prefix, piece) for piece in pieces)

    def _split(self, body: str, offset: int, *, braces: bool) -> Iterator[_Piece]:
        if not braces or ("{" not in body and "}" not in body):
            yield _Piece("TEXT", body, offset, offset + len(body))
            return
        for match in self._pieces.finditer(body):
            yield _Piece(match.lastgroup or "", match[0], offset + match.start(), offset + match.end())

    def _value(self, prefix: str, piece: _Piece) -> str | Operand:
        if piece.kind == "TEXT":
            return string_value(prefix + _WRAP + piece.text + _WRAP)[0]
        if piece.kind == "PARAMETER":
            return Operand("parameter", piece.text[1:-1], piece.start, piece.end)
        return piece.text[0]

    def _examine(self, prefix: str, piece: _Piece) -> None:
        if piece.kind == "X_BRACE":
            self.found.append(_stray_brace(piece))
        elif piece.kind == "TEXT" and "\\" in piece.text:
            wrapped = prefix + _WRAP + piece.text + _WRAP
            for bad in string_value(wrapped, piece.start - len(prefix) - len(_WRAP))[1]:
                self.found.append(
                    Diagnostic(
                        "bad-escape",
                        "error",
                        f"this is no escape sequence: {bad.message}",
                        bad.span,
                        label="broken escape",
                        help="write `\\\\` for a backslash that is meant as such",
                    )
                )

    def _joined(self, parts: list[str | Operand], span: Span) -> Iterator[str | Operand]:
        """Neighbouring strings as one, so that halves of a surrogate pair meet."""
        run: list[str] = []
        for part in (*parts, None):
            if isinstance(part, str):
                run.append(part)
                continue
            value, mended = joined_surrogates("".join(run))
            if mended:
                self.found.append(_lone_surrogate(span))
            if value:
                yield value
            run.clear()
            if part is not None:
                yield part


def split_literal(literal: str) -> tuple[str, str, int]:
    """A string literal's prefix, what stands between its quotes, and the offset of that."""
    prefix = literal[0] if literal[0] not in "\"'" else ""
    start = len(prefix) + (3 if is_long(literal) else 1)
    return prefix, literal[start : len(literal) - start + len(prefix)], start


def is_long(literal: str) -> bool:
    """Whether it stands between triple quotes."""
    return len(literal) >= 6 and literal[-1] * 3 == literal[-3:] == literal.lstrip("rRuU")[:3]


def dedent(body: str) -> str:
    """What a triple-quoted text says before its escapes are read. The rule stands in `workflow.lark`."""
    lines = _LINE_BREAK.split(body)
    head = [] if _is_blank(lines[0]) else lines[:1]
    rest = [line if not _is_blank(line) else "" for line in lines[1:]]
    before = (head + rest[:-1] or [""])[-1]
    if rest and not rest[-1] and not _breaks_off(before):
        del rest[-1]
    width = len(_common_indent([line for line in rest if line]))
    return "\n".join([*head, *(line[width:] for line in rest)])


def _common_indent(lines: list[str]) -> str:
    if not lines:
        return ""
    low, high = min(lines), max(lines)
    shared = next((at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[: min(shared, len(low) - len(low.lstrip(_BLANK)))]


def _is_blank(line: str) -> bool:
    return not line.strip(_BLANK)


def _breaks_off(line: str) -> bool:
    """Whether a backslash at its end makes an escape of the line break behind it."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def quoted(value: str, *, braces: bool = False) -> str:
    """A string literal on one line that says this; `braces`: they are doubled, as in a subtask."""
    if braces:
        value = value.replace("{", "{{").replace("}", "}}")
    return '"' + "".join(_ESCAPES.get(char) or _written(char) for char in value) + '"'


def block(value: str, indent: str, *, braces: bool = False) -> str | None:
    """A literal between triple quotes that says this, one line for each of its lines; None if there is none."""
    doubled = value.replace("{", "{{").replace("}", "}}") if braces else value
    lines = ["".join(_BLOCK_ESCAPES.get(char) or _written(char) for char in line) for line in doubled.split("\n")]
    literal = "\n".join([_WRAP, *(indent + line if line else "" for line in lines), indent + _WRAP])
    body = literal[len(_WRAP) : -len(_WRAP)].replace(_WRAP, '""\\"')
    literal = _WRAP + body + _WRAP
    said = string_value(_WRAP + dedent(body) + _WRAP)[0]
    return literal if said == doubled else None


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BLOCK_ESCAPES = {"\\": "\\\\", "\r": "\\r", "\t": "\\t"}


def _written(char: str) -> str:
    """A character, as an escape if it cannot be seen."""
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _stray_brace(piece: _Piece) -> Diagnostic:
    return Diagnostic(
        "stray-brace",
        "error",
        f"a single `{piece.text}` in a subtask belongs to no parameter",
        Span(piece.start, piece.end),
        label="neither `{name}` nor doubled",
        help=f"write `{piece.text * 2}` for the brace itself, or `{{name}}` (without spaces) for a parameter",
    )


def _lone_surrogate(span: Span) -> Diagnostic:
    return Diagnostic(
        "bad-escape",
        "error",
        "this text holds half of a surrogate pair, which is no character",
        span,
        help="write both halves, or the character itself",
    )
