"""Completion text to labelled lists by `conductor.lark`.

The terminals and the LALR table come from the grammar file. What is added here is what the head of that file says:
prose is skipped, and a list that is not a literal becomes a `BadList`. Every character is looked at a
bounded number of times, nothing recurses, and no input raises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from wfdsl.language.diagnostics import MOST_SHOWN
from wfdsl.language.grammar import END, Stack, Table, Token, load_grammar_data

_START = "completion"
_CUT = "cut"
_CUT_STRING = "CUT_STRING"
_PROSE = {"PROSE", "LANDMARK"}
REASONING_MARKS = ("THINK", "END_THINK", "ASIDE", "END_ASIDE")
"""The terminals that begin and end reasoning; `reasoning.py` says what they do."""
_FREQUENT = ("INT", "COMMA", "LSQB", "_END", "STRING", "LPAR", "RPAR")  # tried first, for speed alone
_OPENING = frozenset({"LSQB", "LPAR"})  # of brackets and commas only the place is kept
_CLOSING = frozenset({"COMMA", "_END", "RPAR"})
_REPAIRED_GAPS = frozenset({"X_NO_BREAK_SPACE", "X_ESCAPED_SPACE", "X_SLASH_COMMENT", "X_QUOTE_MARK"})
_REPAIRED = re.compile("[\u00a0\u2007\u202f\u3000\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff，、［］]")


class BadList(Token):
    """A label whose list is not a literal, or is cut by the end of the text. It is a terminal, too."""

    __slots__ = ("cut", "error", "label", "opened")

    def __init__(self, label: Token, opened: int, error: int, *, cut: bool) -> None:
        super().__init__("BAD_LIST", "", label.start, error)
        self.label = label
        self.opened = opened
        """The offset of its opening bracket."""
        self.error = error
        """The offset of the first unexpected character; the end of the text if the list is cut."""
        self.cut = cut


class Scan(NamedTuple):
    """What a text contains apart from prose, in order."""

    parts: Sequence[Token]
    """Lists (phrases named after their rule: a label's token, then the row), bad lists, marks of reasoning, changes."""
    odd_gaps: list[Token]
    """What is allowed between the tokens of lists only as a repair; of each list as many as are shown, and one more."""


class Scanner:
    """The scanner that a grammar file defines."""

    def __init__(self, folder: Path | None = None) -> None:
        data = load_grammar_data("conductor.lark", start=_START, also=[_CUT], folder=folder)
        terminals = data["terminals"]
        outside = [name for name in terminals if name in data["first"] and name not in _PROSE]
        inside = [name for name in terminals if name not in {*outside, *_PROSE, *data["ignored"]}]
        # No two of them match the same text, so the order is free.
        inside.sort(key=lambda name: _FREQUENT.index(name) if name in _FREQUENT else len(_FREQUENT))
        self._gap = f"(?:{'|'.join(f'(?:{terminals[name]})' for name in data['ignored'])})*+"
        self._table = Table(data["table"])
        self._landmark = re.compile(terminals["LANDMARK"])
        self._integer = re.compile(terminals["INT"])
        self._outside = re.compile(_any_of(terminals, outside))
        self._token = re.compile(f"{self._gap}(?:{_any_of(terminals, inside)})")
        self._terminals, self._lexemes = terminals, [*data["ignored"], *inside]

    @cached_property  # start-up time: many texts need none of these
    def reasoning(self) -> re.Pattern[str]:
        """The marks of reasoning, each in a group that is named after its terminal."""
        return re.compile(_any_of(self._terminals, REASONING_MARKS))

    @cached_property
    def _gaps(self) -> re.Pattern[str]:
        return re.compile(self._gap)

    @cached_property
    def _lexeme(self) -> re.Pattern[str]:
        return re.compile(_any_of(self._terminals, self._lexemes))

    def is_integer(self, text: str) -> bool:
        """Whether a whole text is an integer of the language."""
        return self._integer.fullmatch(text) is not None

    def scan(self, text: str, position: int = 0) -> Scan:
        """Read a text of any kind, from an offset on."""
        stack = Stack(self._table)
        gaps: list[Token] = []
        while landmark := self._landmark.search(text, position):
            match = self._outside.match(text, landmark.start())
            if match is None:
                position = landmark.end()
                continue
            position = match.end()
            stack.feed(token := Token(match.lastgroup or "", match.group(), match.start(), position))
            if not stack.may_end:
                list_start = position
                position = self._read_list(text, position, stack, token)
                gaps += self._odd_gaps(text, list_start, position)
        return Scan(stack.finish(Token(END, "", len(text), len(text))).children, gaps)

    def _read_list(self, text: str, position: int, stack: Stack, label: Token) -> int:
        """Feed the parser the tokens of the list after a label; the offset at which prose continues."""
        before_label = len(stack) - 1
        after_label = position
        position, done = self._feed_list(text, position, stack)
        if done:
            return position
        stack.cut_back(before_label)
        opened = self._gaps_end(text, after_label)
        cut = position == len(text)
        if cut or text[opened] in "[［":
            stack.feed(BadList(label, opened, position, cut=cut))
        return position

    def _feed_list(self, text: str, position: int, stack: Stack) -> tuple[int, bool]:
        """The offset after the list and True, or the offset of its error and False."""
        next_token, take, ends = self._token.match, stack.take, self._table.ends
        while match := next_token(text, position):
            name = match.lastgroup or ""
            start, position = match.span(name)
            if name == _CUT_STRING:
                return len(text), False
            if name in _OPENING:
                state = take(name, start)
            elif name in _CLOSING:
                state = take(name, position)
            else:
                state = take(name, Token(name, text[start:position], start, position))
            if state is None:
                return start, False
            if state in ends:
                return position, True
        return self._gaps_end(text, position), False

    def _gaps_end(self, text: str, position: int) -> int:
        match = self._gaps.match(text, position)
        return match.end() if match else position

    def _odd_gaps(self, text: str, start: int, end: int) -> list[Token]:
        if (
            text.find("//", start, end) < 0
            and text.find("/*", start, end) < 0
            and text.find("\\n", start, end) < 0
            and text.find("\n>", start, end) < 0
            and (text.isascii() or not _REPAIRED.search(text, start, end))
        ):
            return []
        lexemes = self._lexeme.finditer(text, start, end)
        odd = (Token(found.lastgroup or "", found[0], *found.span()) for found in lexemes if _is_odd(found))
        return list(islice(odd, MOST_SHOWN + 1))


def _is_odd(lexeme: re.Match[str]) -> bool:
    name = lexeme.lastgroup
    return name in _REPAIRED_GAPS or (not lexeme[0].isascii() and (name in _OPENING or name in _CLOSING))


def _any_of(terminals: dict[str, str], names: Sequence[str]) -> str:
    return "|".join(f"(?P<{name}>{terminals[name]})" for name in names)


@cache
def scanner() -> Scanner:
    """The scanner of the grammar that comes with the package."""
    return Scanner()
