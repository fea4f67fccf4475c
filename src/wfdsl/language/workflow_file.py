"""Workflow files (`.wf`): from text to a tree of statements, and every problem that needs no pool and no parameters.

The scan finds statements; this says what they hold. What they mean together is the business of `expand`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from wfdsl.language.diagnostics.diagnostic import Diagnostic
from wfdsl.language.file_scan import BrokenToken, FileGrammar, file_grammar
from wfdsl.language.file_text import TextReader
from wfdsl.language.file_tree import Clause, FileTree, Heading, Operand, Param, Statement, StepStatement, Version
from wfdsl.language.scan import scanner
from wfdsl.language.source import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.language.lalr import Token
    from wfdsl.language.source import Source

VERSION = 1
"""The version of the language of workflow files."""

MOST_DIGITS = 18
"""The longest integer that is read, as in completions."""

_OPERANDS = {"INT", "PARAMETER", "NAME", "STRING", "ALL"}
_KINDS = {"INT": "number", "PARAMETER": "parameter", "ALL": "all"}


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
        self.texts = TextReader(grammar.pieces)
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
                    f"this wfdsl does not know version {phrase.children[1].text[:MOST_DIGITS]} of the language",
                    Span(number.start, number.end),
                    label=f"known: {VERSION}",
                    help=f"write `wfdsl {VERSION}`, or install a newer wfdsl",
                )
            )
        return Version(tuple(phrase.children))

    def _heading(self, phrase: Token) -> Heading:
        keyword, text = phrase.children
        kind: Any = phrase.type
        return Heading(kind, (keyword,), self.texts.plain(text.children))

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
            self.texts.subtask(text.children),
        )

    def _clause(self, phrase: Token) -> Clause:
        tokens = phrase.children
        operands = [self._operand(token) for token in tokens if token.type in _OPERANDS]
        return Clause(cast(Any, phrase.type), tuple(operands), tuple(tokens))

    def _operand(self, token: Token) -> Operand:
        kind: Any = _KINDS.get(token.type, "name")
        return Operand(kind, self._operand_value(token), token.start, token.end)

    def _operand_value(self, token: Token) -> int | str:
        if token.type == "INT":
            return self._number(token)
        if token.type == "STRING":
            return "".join(map(str, self.texts.plain([token]).parts))
        return token.text[1:-1] if token.type == "PARAMETER" else token.text

    def _number(self, token: Token) -> int:
        digits = token.text.lstrip("-")
        if len(digits) <= MOST_DIGITS:
            return int(token.text)
        self.found.append(
            Diagnostic(
                "number-too-large",
                "error",
                f"an integer of {len(digits)} digits is too large",
                Span(token.start, token.end),
                help=f"integers have at most {MOST_DIGITS} digits",
            )
        )
        return 1


def _completion_by_mistake(text: str) -> list[Diagnostic]:
    """One clear message in place of many, for a text that holds the lists of a completion."""
    lists = [part for part in scanner().scan(text).parts if "THINK" not in part.type]
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
