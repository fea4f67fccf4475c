"""Colours of workflow files for Pygments, from the terminals of the grammar: `get_lexer_by_name("wf")`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import Token

from wfdsl.language.grammar import load_grammar_data

_KINDS = {
    "STRING": Token.Literal.String,
    "COMMENT": Token.Comment.Single,
    "INT": Token.Literal.Number.Integer,
    "DECIMAL": Token.Literal.Number.Float,
    "PARAMETER": Token.Name.Variable,
    "NAME": Token.Name,
    "SPACE": Token.Text.Whitespace,
    "BYTE_ORDER_MARK": Token.Text.Whitespace,
}
_INSIDE_STRINGS = {"TEXT", "TWO_BRACES", "X_BRACE"}


class WorkflowLexer(Lexer):  # type: ignore[misc]  # Pygments has no types
    """Lexer of `.wf` files. A keyword's word is coloured also where it is a name."""

    name = "wfdsl"
    aliases: ClassVar[list[str]] = ["wf", "wfdsl"]
    filenames: ClassVar[list[str]] = ["*.wf"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Each token with its offset."""
        tokens, parameter, kinds = _terminals()
        for found in tokens.finditer(text):
            start, kind = found.start(), kinds[str(found.lastgroup)]
            pieces = parameter.split(found[0]) if kind is Token.Literal.String else [found[0]]
            for index, piece in enumerate(pieces):
                if piece:
                    yield start, Token.Literal.String.Interpol if index % 2 else kind, piece
                start += len(piece)


@cache
def _terminals() -> tuple[re.Pattern[str], re.Pattern[str], dict[str, Any]]:
    """What matches any token, what divides a string at its parameters, and the kind of each terminal."""
    patterns = load_grammar_data("workflow.lark", start="file", also=["subtask", "misread"])["terminals"]
    tokens = {name: pattern for name, pattern in patterns.items() if name not in _INSIDE_STRINGS}
    others = {
        name: Token.Error if name.startswith("X_") else Token.Keyword if pattern[0].isalpha() else Token.Punctuation
        for name, pattern in tokens.items()
    }
    return (
        re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in tokens.items())),
        re.compile(rf"(?<!\{{)({patterns['PARAMETER']})(?!\}})"),
        others | _KINDS,
    )
