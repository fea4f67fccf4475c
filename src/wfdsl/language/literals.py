"""String literals: from a literal to its value, with escapes as in Python, and from a value to a literal.

Nothing is evaluated. Which texts are literals is decided by the grammar.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wfdsl.language.source import Span

LINE_BREAK = re.compile(r"\r\n|\r|\n")
LONG_QUOTE = '"""'
MOST_DIGITS = 18  # of a worker index or a step: no pool has so many workers, and it limits what int() reads
_BLANK = " \t\f"
_QUOTES = "\"'“‘"
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BLOCK_ESCAPES = {"\\": "\\\\", "\r": "\\r", "\t": "\\t"}
_SIMPLE = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\n": "", "\r": "", "\r\n": "",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|(?:x(?=[0-9a-fA-F]{2})|u(?=[0-9a-fA-F]{4})|U(?=[0-9a-fA-F]{8}))"
    r"(?P<hex>(?<=x)..|(?<=u).{4}|(?<=U).{8})|N\{(?P<name>[^{}\r\n]*)\}|(?P<other>\r\n|[\s\S]))|(?P<line>\r\n?)"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_HIGHEST = 0x10FFFF


class BadEscape(NamedTuple):
    """An escape sequence that means nothing."""

    span: Span
    message: str


def string_value(text: str, offset: int = 0, *, json: bool = False) -> tuple[str, list[BadEscape]]:
    r"""The value of one string token, and its broken escapes, which stay in the value as they are.

    `offset` is where the token starts; `json` also reads `\/` as `/`. Line breaks become `\n`, as in Python source.
    """
    start = 0 if text[0] in _QUOTES else 1
    width = 3 if text[start] * 3 == text[start : start + 3] and len(text) >= start + 6 else 1
    body = text[start + width : -width]
    if "\\" not in body and "\r" not in body:
        return body, []
    if start and text[0] in "rR":
        return body.replace("\r\n", "\n").replace("\r", "\n"), []
    reader = _EscapeReader(offset + start + width, json=json)
    return _ESCAPE.sub(reader.read, body), reader.bad


def joined_surrogates(value: str) -> tuple[str, bool]:
    r"""The value with surrogate pairs made one character, and whether a lone half was replaced by U+FFFD."""
    if value.isascii() or not _SURROGATE.search(value):
        return value, False
    joined = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    replaced = _SURROGATE.sub(_REPLACEMENT, joined)
    return replaced, replaced != joined


def split_literal(literal: str) -> tuple[str, str, int]:
    """A string literal's prefix, the text between its quotes, and the offset of that text."""
    prefix = literal[0] if literal[0] not in "\"'" else ""
    start = len(prefix) + (3 if is_long(literal) else 1)
    return prefix, literal[start : len(literal) - start + len(prefix)], start


def is_long(literal: str) -> bool:
    """Whether it has triple quotes."""
    return len(literal) >= 6 and literal[-1] * 3 == literal[-3:] == literal.lstrip("rRuU")[:3]


def dedent(body: str) -> str:
    """What a triple-quoted text says before its escapes are read. `workflow.lark` defines the rule."""
    lines = LINE_BREAK.split(body)
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
    """Whether a backslash at its end makes an escape of the line break after it."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def quoted(value: str, *, braces: bool = False) -> str:
    """A string literal on one line with this value; `braces`: they are doubled, as in a subtask."""
    if braces:
        value = value.replace("{", "{{").replace("}", "}}")
    return '"' + "".join(_ESCAPES.get(char) or _written(char) for char in value) + '"'


def block(value: str, indent: str, *, braces: bool = False) -> str | None:
    """A triple-quoted literal with this value, one line for each of its lines; None if there is none."""
    doubled = value.replace("{", "{{").replace("}", "}}") if braces else value
    lines = ["".join(_BLOCK_ESCAPES.get(char) or _written(char) for char in line) for line in doubled.split("\n")]
    literal = "\n".join([LONG_QUOTE, *(indent + line if line else "" for line in lines), indent + LONG_QUOTE])
    body = literal[len(LONG_QUOTE) : -len(LONG_QUOTE)].replace(LONG_QUOTE, '""\\"')
    literal = LONG_QUOTE + body + LONG_QUOTE
    said = string_value(LONG_QUOTE + dedent(body) + LONG_QUOTE)[0]
    return literal if said == doubled else None


def _written(char: str) -> str:
    """A character, as an escape if it cannot be seen."""
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _EscapeReader:
    def __init__(self, offset: int, *, json: bool) -> None:
        self.bad: list[BadEscape] = []
        self._offset = offset
        self._json = json

    def read(self, match: re.Match[str]) -> str:
        kind = match.lastgroup
        if kind == "other":
            return self._other(match)
        if kind == "octal":
            return chr(int(match["octal"], 8))
        if kind == "hex":
            return self._code_point(match)
        return "\n" if kind == "line" else self._named(match)

    def _other(self, match: re.Match[str]) -> str:
        char = match["other"]
        if char in _SIMPLE:
            return _SIMPLE[char]
        if char == "/" and self._json:
            return "/"
        if char in "xuU":
            digits = {"x": "two", "u": "four", "U": "eight"}[char]
            return self._broken(match, rf"`\{char}` needs {digits} hexadecimal digits")
        if char == "N":
            return self._broken(match, r"`\N` needs the name of a character in curly brackets")
        return match[0]

    def _code_point(self, match: re.Match[str]) -> str:
        number = int(match["hex"], 16)
        if number > _HIGHEST:
            return self._broken(match, "the largest code point is U+10FFFF")
        return chr(number)

    def _named(self, match: re.Match[str]) -> str:
        import unicodedata  # noqa: PLC0415  (a large table that hardly any text needs)

        try:
            found = unicodedata.lookup(match["name"])
        except (KeyError, UnicodeEncodeError):  # the second for half of a surrogate pair
            found = ""
        # Python's literals know characters and their aliases, not the names of sequences.
        return found if len(found) == 1 else self._broken(match, f"there is no character named {match['name']!r}")

    def _broken(self, match: re.Match[str], message: str) -> str:
        start = self._offset + match.start()
        self.bad.append(BadEscape(Span(start, start + len(match[0])), message))
        return match[0]
