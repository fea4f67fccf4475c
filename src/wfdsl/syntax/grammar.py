"""Where the grammar files are, and how they are loaded.

They lie beside the package in a wheel, and at the root of the repository in a checkout: there they are read in place,
so that no copy can be stale.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lark import Lark
from lark.lexer import Lexer

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = Path(__file__).resolve().parent.parent
_PLACES = (_PACKAGE.parent.parent / "grammars", _PACKAGE / "grammars")


@cache
def grammar_folder() -> Path:
    """The folder with `conductor.lark`, `workflow.lark` and `literals.lark`.

    Raises:
        FileNotFoundError: the installation is damaged.
    """
    for place in _PLACES:
        if (place / "conductor.lark").is_file():
            return place
    raise FileNotFoundError(f"the grammar files are in none of {', '.join(map(str, _PLACES))}: reinstall wfdsl")


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
