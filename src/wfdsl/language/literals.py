"""What a string literal says: its quotes taken off, its escapes read as Python reads them. Nothing is evaluated.

Which texts are literals is the grammar's business; this is about their values.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wfdsl.language.source import Span

_QUOTES = "\"'“‘"
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
    mended = _SURROGATE.sub(_REPLACEMENT, joined)
    return mended, mended != joined


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
            return self._broken(match, "there is no character beyond U+10FFFF")
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
