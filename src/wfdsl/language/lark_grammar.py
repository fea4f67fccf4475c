"""Grammar files as Lark parsers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lark import Lark
from lark.lexer import Lexer

from wfdsl.language.grammar import grammar_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def load_grammar(name: str, *, start: list[str], folder: Path | None = None, **options: Any) -> Lark:
    """Build the LALR tables of a grammar file. Options are Lark's; without `lexer` the result only parses tokens."""
    folder = folder or grammar_folder()
    return Lark(
        (folder / name).read_text("utf-8"),
        parser="lalr",
        import_paths=[str(folder)],
        start=start,
        maybe_placeholders=False,
        **{"lexer": _NoLexer, **options},
    )


class _NoLexer(Lexer):
    """Stands in where tokens come from a scanner of our own; building Lark's would double the start-up time."""

    __future_interface__ = 2

    def __init__(self, lexer_conf: Any) -> None:
        del lexer_conf

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:  # noqa: ARG002  (Lark's signature)
        raise AssertionError("this parser is fed with tokens")
