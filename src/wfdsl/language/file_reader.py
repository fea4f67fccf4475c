"""Workflow files (`.wf`): from text to a tree of statements, and every problem that needs no pool and no parameters.

The scanner finds statements; the reader says what they hold; what they mean together is the business of
`file_expansion`. In string literals, indentation is removed first, then braces are read, then escapes; so a brace that
an escape makes is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

from wfdsl.language.diagnostics import Diagnostic
from wfdsl.language.file_scanner import BrokenToken, FileGrammar, file_grammar
from wfdsl.language.file_tree import Clause, FileTree, Heading, Operand, Param, Statement, StepStatement, Text, Version
from wfdsl.language.grammar import Phrase, Token
from wfdsl.language.literals import (
    LINE_BREAK,
    LONG_QUOTE,
    MOST_DIGITS,
    dedent,
    is_long,
    joined_surrogates,
    split_literal,
    string_value,
)
from wfdsl.language.source import Source, Span

_SPECIAL = re.compile(r"[\\{}\r\n]")  # what makes a text more than the characters between its quotes


class _Piece(NamedTuple):
    """A terminal of the rule `subtask`, and its place in the file."""

    kind: str
    text: str
    start: int
    end: int


class TextReader:
    """Reads the literals of one file; `found` collects what is wrong with them."""

    def __init__(self, grammar: FileGrammar) -> None:
        self._grammar = grammar
        self.found: list[Diagnostic] = []

    def plain(self, strings: Sequence[Token]) -> Text:
        """A text in which braces mean nothing."""
        return self._text(strings, braces=False)

    def filled(self, strings: Sequence[Token]) -> Text:
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
        dedented = dedent(body) if is_long(string.text) and LINE_BREAK.search(body) else body
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
        for match in self._grammar.pieces.finditer(body):
            yield _Piece(match.lastgroup or "", match[0], offset + match.start(), offset + match.end())

    def _value(self, prefix: str, piece: _Piece) -> str | Operand:
        if piece.kind == "TEXT":
            return string_value(prefix + LONG_QUOTE + piece.text + LONG_QUOTE)[0]
        if piece.kind == "PARAMETER":
            return Operand("parameter", piece.text[1:-1], piece.start, piece.end)
        return piece.text[0]

    def _examine(self, prefix: str, piece: _Piece) -> None:
        if piece.kind == "X_BRACE":
            self.found.append(_stray_brace(piece))
        elif piece.kind == "TEXT" and "\\" in piece.text:
            wrapped = prefix + LONG_QUOTE + piece.text + LONG_QUOTE
            for bad in string_value(wrapped, piece.start - len(prefix) - len(LONG_QUOTE))[1]:
                self.found.append(
                    Diagnostic(
                        "bad-escape",
                        "error",
                        f"this is not an escape sequence: {bad.message}",
                        bad.span,
                        label="broken escape",
                        help="write `\\\\` for a literal backslash",
                    )
                )

    def _joined(self, parts: list[str | Operand], span: Span) -> Iterator[str | Operand]:
        """Neighbouring strings as one, so that halves of a surrogate pair meet."""
        run: list[str] = []
        for part in (*parts, None):
            if isinstance(part, str):
                run.append(part)
                continue
            value, replaced = joined_surrogates("".join(run))
            if replaced:
                self.found.append(_lone_surrogate(span))
            if value:
                yield value
            run.clear()
            if part is not None:
                yield part


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
        "this text contains half of a surrogate pair, which is not a character",
        span,
        help="write both halves, or the character itself",
    )


VERSION = 1
"""The version of the language of workflow files."""

_OPERANDS = {"INT", "DECIMAL", "PARAMETER", "NAME", "STRING", "ALL"}
_KINDS = {"INT": "number", "DECIMAL": "number", "PARAMETER": "parameter", "ALL": "all"}
_SELECTIONS = {"OWN": "own", "LATEST": "latest"}


def read_workflow_file(source: Source, grammar: FileGrammar | None = None) -> tuple[FileTree, list[Diagnostic]]:
    """Read a text of any kind as a workflow file. With errors, the tree holds what could be read."""
    scan = (grammar or file_grammar()).scan(source.text)
    reader = _Reader(source, grammar or file_grammar())
    statements = tuple(reader.statement(part) for part in scan.parts)
    found = scan.found + reader.found + reader.texts.found
    if scan.found and not any(isinstance(found, StepStatement) for found in statements):
        found = _completion_by_mistake(source.text) or found
    return FileTree(source, statements, tuple(scan.comments)), found


class _Reader:
    """Makes statements of phrases."""

    def __init__(self, source: Source, grammar: FileGrammar) -> None:
        self.texts = TextReader(grammar)
        self.found: list[Diagnostic] = []
        self._source = source

    def statement(self, part: Token) -> Statement:
        if isinstance(part, BrokenToken):
            return part.statement
        if part.type == "step":
            return self._step(part.children)
        if part.type == "param":
            return self._param(part.children)
        return self._version(part) if part.type == "version" else self._heading(part)

    def _version(self, phrase: Token) -> Version:
        number = self._operand(phrase.children[1])
        if number.value != VERSION:
            self.found.append(
                Diagnostic(
                    "version-unknown",
                    "error",
                    f"version {phrase.children[1].text[:MOST_DIGITS]} of the language is not known to this wfdsl",
                    Span(number.start, number.end),
                    label=f"known: {VERSION}",
                    help=f"write `wfdsl {VERSION}`, or install a newer wfdsl",
                )
            )
        return Version(tuple(phrase.children))

    def _heading(self, phrase: Token) -> Heading:
        keyword, text = phrase.children
        kind: Any = phrase.type
        return Heading(kind, (keyword,), self.texts.filled(text.children))

    def _param(self, children: Sequence[Token]) -> Param:
        name, default = self._operand(children[1]), children[3]
        if default.type == "text":
            text = self.texts.plain(default.children)
            return Param(tuple(children[:3]), name, "".join(map(str, text.parts)), text)
        return Param(tuple(children), name, self._operand(default).value, None)

    def _step(self, children: Sequence[Token]) -> StepStatement:
        keyword, name, *clauses, colon, text = children
        return StepStatement(
            (keyword, name),
            self._operand(name),
            tuple(self._clause(clause) for clause in clauses),
            colon,
            self.texts.filled(text.children),
        )

    def _clause(self, phrase: Token) -> Clause:
        tokens = phrase.children
        operands = [
            self._operand(token, _SELECTIONS.get(before.type))
            for before, token in pairwise(tokens)
            if token.type in _OPERANDS
        ]
        return Clause(cast(Any, phrase.type), tuple(operands), tuple(tokens))

    def _operand(self, token: Token, kind: Any = None) -> Operand:
        kind = kind or _KINDS.get(token.type, "name")
        return Operand(kind, self._operand_value(token), token.start, token.end)

    def _operand_value(self, token: Token) -> int | float | str:
        if token.type in ("INT", "DECIMAL"):
            return self._number(token)
        if token.type == "STRING":
            return "".join(map(str, self.texts.plain([token]).parts))
        return token.text[1:-1] if token.type == "PARAMETER" else token.text

    def _number(self, token: Token) -> int | float:
        digits = token.text.lstrip("-").replace(".", "")
        if len(digits) <= MOST_DIGITS:
            return int(token.text) if token.type == "INT" else float(token.text)
        self.found.append(
            Diagnostic(
                "number-too-large",
                "error",
                f"a number of {len(digits)} digits is too large",
                Span(token.start, token.end),
                help=f"numbers have at most {MOST_DIGITS} digits",
            )
        )
        return 1


def _completion_by_mistake(text: str) -> list[Diagnostic]:
    """One clear message instead of many, for a text that holds the lists of a completion."""
    from wfdsl.language.completion_scanner import BadList, scanner  # noqa: PLC0415  (start-up time: an error's text)

    lists = [part for part in scanner().scan(text).parts if isinstance(part, Phrase | BadList)]
    if not lists:
        return []
    return [
        Diagnostic(
            "syntax",
            "error",
            "this is a completion with three lists, not a workflow file",
            Span(lists[0].start, lists[0].start + 1),
            label="the lists begin here",
            help="save it under a name that does not end in `.wf`; `wfdsl fmt` shows what a workflow file looks like",
        )
    ]
