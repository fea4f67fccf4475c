"""Syntax errors of workflow files, in words: what is wrong at an unexpected token, and what may have been meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from wfdsl.language.diagnostics import Diagnostic, Suggestions
from wfdsl.language.grammar import Token
from wfdsl.language.source import Span

_LONGEST = 40  # characters of a token that a message shows; our choice
_CURLY = "“”„‟‘’‚‛«»"
_STATEMENTS = ("STEP", "PARAM", "TITLE", "DESCRIPTION")
_SHAPES = {
    "STEP": 'a step is written `step NAME by WORKER: "..."`; all other clauses go before the colon',
    "PARAM": "a parameter is written `param NAME = VALUE`; the value is a number or a text in quotes",
    "TITLE": 'a title is written `title "..."`',
    "DESCRIPTION": 'a description is written `description "..."`',
    "WFDSL": "the version of the language is written `wfdsl 1`",
}
_BETWEEN = 'a file is made of steps, `step NAME by WORKER: "..."`; comments begin with `#`'
_TIMES = re.compile(r"[x*×]([0-9]{1,9})|([0-9]{1,9})[x×]", re.IGNORECASE)
_MARKS = {
    "COLON": 'write a colon between the clauses of a step and its text: `step NAME by WORKER: "..."`',
    "COMMA": "names are separated by commas: `sees NAME, NAME`",
    "EQUAL": "write an equals sign between the name of a parameter and its default: `param NAME = VALUE`",
    "BY": '`by` says who does a step: `step NAME by WORKER: "..."`',
}
_COUNTED = ("COPIES", "CHAIN", "DEPTH", "TEMPERATURE", "MAX_TOKENS")
_KINDS = {
    "NAME": "a name",
    "INT": "an integer",
    "DECIMAL": "a decimal number",
    "STRING": "a text in quotes",
    "PARAMETER": "a parameter `{name}`",
}


class SyntaxErrors:
    """Collects the syntax errors of one file."""

    def __init__(self, words: Mapping[str, str], marks: Mapping[str, str]) -> None:
        """`words` and `marks`: the keywords and punctuation of the grammar, by the names of their terminals."""
        self.found: list[Diagnostic] = []
        self._written = {**words, **marks}
        self._suggestions = Suggestions()

    def misspelt(self, token: Token, fitting: Collection[str]) -> str | None:
        """The keyword that the token was meant to be, if it looks like one of those that fit."""
        word = self._suggestions.closest(token.text, fitting)
        if word is not None:
            message = f"{shown(token)} is not a word of the language"
            self._add(token, message, f"did you mean `{word}`?", f"write `{word}`")
        return word

    def missing(self, mark: str, token: Token) -> None:
        """Something has been left out before a token."""
        written = self._written[mark]
        self._add(token, f"`{written}` is missing before {shown(token)}", f"expected `{written}`", _MARKS.get(mark, ""))

    def confused(self, mark: str, token: Token) -> None:
        """One mark is written instead of another."""
        written = self._written[mark]
        message = f"{shown(token)} is written instead of `{written}`"
        self._add(token, message, f"expected `{written}`", _MARKS.get(mark, ""))

    def superfluous(self, token: Token) -> None:
        """A mark too many."""
        self._add(token, f"{shown(token)} is not expected here", "remove it", _hint(token))

    def open_string(self, token: Token, quote: str) -> None:
        """A string without an end."""
        if len(quote) == 3:
            message, help_ = "a text is not closed", f"close it with `{quote}`"
        else:
            message = "a text is not closed before its line ends"
            help_ = f"close it with `{quote}`; for text of several lines use `{quote * 3}`, or write `\\n`"
        opening = Span(token.start, token.start + len(token.text) - len(token.text.lstrip("rRuU")) + len(quote))
        self.found.append(Diagnostic("syntax", "error", message, opening, "opened here", help_))

    def swallowed(self, string: Token, token: Token) -> None:
        """A long text without an end, which extends to the quotes that should have opened the next one."""
        quote = string.text[-3:]
        opening = Span(string.start, string.start + string.text.index(quote) + 3)
        message = "a text is not closed before the next statement begins"
        help_ = f"close it with `{quote}`; now it ends before {shown(token)}"
        self.found.append(Diagnostic("syntax", "error", message, opening, "opened here", help_))

    def unexpected(
        self, token: Token, expected: Collection[str], opened: Token | None, before: Sequence[str] = ()
    ) -> None:
        """Any other unexpected token.

        `opened` is the keyword of the statement around it; `before` are the types of the terminals read last.
        """
        wanted = self._list(expected)
        if token.type == "$END":
            message, help_ = f"the file ends before {f'this {opened.text}' if opened else 'it'} is complete", ""
        elif token.type in _STATEMENTS and opened:
            message = f"the {opened.text} before this `{token.text}` is not complete"
            help_ = f"complete the {opened.text}; `{token.text}` itself cannot be a name" if "NAME" in expected else ""
        else:
            message, help_ = f"{shown(token)} is not expected here", _clause_hint(token, before) or _hint(token)
        help_ = help_ or _SHAPES.get(opened.type if opened else "", _BETWEEN)
        self._add(token, message, f"expected {wanted}" if wanted else "", help_)

    def _list(self, expected: Collection[str]) -> str:
        if set(_STATEMENTS) <= set(expected):
            expected = _STATEMENTS
        kinds = [text for kind, text in _KINDS.items() if kind in expected]
        written = [f"`{text}`" for name, text in self._written.items() if name in expected]
        return _one_of(kinds + written)

    def _add(self, token: Token, message: str, label: str, help_: str) -> None:
        self.found.append(Diagnostic("syntax", "error", message, Span(token.start, token.end), label, help_))


def shown(token: Token) -> str:
    """A token as a message names it."""
    if token.type == "$END":
        return "the end of the file"
    if token.type in ("STRING", "X_OPEN_STRING"):
        return "this text"
    if not token.text.isprintable():
        return f"the character U+{ord(token.text[0]):04X}"
    return f"`{token.text if len(token.text) <= _LONGEST else token.text[:_LONGEST] + '...'}`"


def _hint(token: Token) -> str:
    if copies := _TIMES.fullmatch(token.text):
        return f"independent copies of a step are written `copies {copies[1] or copies[2]}`"
    if token.text == ";":
        return "no mark stands between statements or clauses"
    if token.text == "steps":
        return "`all` alone means every earlier step"
    if token.type in ("X_NUMBER", "DECIMAL"):
        return "an integer is written in decimal digits, without leading zeros, points and letters"
    if token.text in _CURLY and token.text:
        return "write texts between straight quotes, `\"` or `'`"
    if token.text in ("{", "}"):
        return "a parameter is written `{name}`, without spaces"
    if token.text == "wfdsl":
        return "the version of the language must be the first statement of a file"
    return ""


def _clause_hint(token: Token, before: Sequence[str]) -> str:
    if token.type == "INT" and tuple(before[-2:]) == ("BY", "NAME"):
        return f"a worker's index follows `by` directly: write `by {token.text}`"
    if token.text and token.text[0] in "/.@+~" and tuple(before[-2:]) == ("BY", "NAME"):
        return 'a name with such characters is written in quotes: `by "..."`'
    last = before[-1] if before else ""
    if token.type == "X_NUMBER" and last in ("STEP", "PARAM", "SEES"):
        return "a name begins with a letter or `_`"
    if token.type == "NAME" and last in _COUNTED:
        return f"write a number in digits, or a parameter in braces: `{{{token.text}}}`"
    if token.text == "," and tuple(before[-2:]) in (("BY", "INT"), ("BY", "NAME")):
        return "a step has one worker: write a step for each, or `by each worker`"
    if token.text == ":" and last == "SEES":
        return "`sees` takes the names of earlier steps, `all` or `nothing`"
    if token.type == "INT" and last == "SEES":
        return "`sees` takes the names of earlier steps, not their numbers"
    if token.text == ":" and last == "STEP":
        return 'there is no list of steps: each one is a statement, `step NAME by WORKER: "..."`'
    if token.text == "[" and "BY" not in before and last == "NAME":
        return "the name of a repeated step means all its copies: write the name alone"
    return ""


def _one_of(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
