"""A workflow file as it is written: statements, clauses, comments, and the places of all of them.

It holds what is written, not what it means: `expand` makes steps of it, `format_file` prints it again.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from wfdsl.language.grammar import Token
from wfdsl.language.source import Source

ClauseKind: TypeAlias = Literal[
    "worker",
    "tagged",
    "each",
    "each_tagged",
    "conductor",
    "copies",
    "chain",
    "depth",
    "temperature",
    "max_tokens",
    "sees",
]
WORKER_CLAUSES: frozenset[ClauseKind] = frozenset({"worker", "tagged", "each", "each_tagged", "conductor"})
"""The clauses that begin with `by`."""


class Operand(NamedTuple):
    """What follows a keyword. `own` and `latest` are names after these words; a parameter's value is its name."""

    kind: Literal["number", "name", "own", "latest", "parameter", "all"]
    value: int | float | str
    start: int
    end: int


class Text(NamedTuple):
    """One or more string literals, joined."""

    strings: tuple[Token, ...]
    parts: tuple[str | Operand, ...]
    """Literal pieces and parameters, in order; escapes are read, braces single."""
    start: int
    end: int


class Clause(NamedTuple):
    """A keyword with its operands. `sees nothing` has none."""

    kind: ClauseKind
    operands: tuple[Operand, ...]
    tokens: tuple[Token, ...]

    @property
    def start(self) -> int:
        """The offset of its keyword."""
        return self.tokens[0].start

    @property
    def end(self) -> int:
        """The offset after it."""
        return self.tokens[-1].end


class Version(NamedTuple):
    """`wfdsl 1`."""

    tokens: tuple[Token, ...]


class Heading(NamedTuple):
    """A title or a description."""

    kind: Literal["title", "description"]
    tokens: tuple[Token, ...]
    """The keyword."""
    text: Text


class Param(NamedTuple):
    """A parameter and its default."""

    tokens: tuple[Token, ...]
    """The keyword, the name, the equals sign, and the default if it is a number."""
    name: Operand
    value: int | float | str
    text: Text | None
    """The default if it is a string."""


class StepStatement(NamedTuple):
    """A step, or several by its clauses."""

    tokens: tuple[Token, ...]
    """The keyword and the name."""
    name: Operand
    clauses: tuple[Clause, ...]
    colon: Token
    text: Text

    def clause(self, *kinds: ClauseKind) -> Clause | None:
        """The first clause of one of these kinds."""
        return next((clause for clause in self.clauses if clause.kind in kinds), None)


class Broken(NamedTuple):
    """A statement that breaks off: its keyword and name as far as they were there, so that others can refer to it.

    Without a keyword it is something that is not a statement at all.
    """

    kind: str
    name: Operand | None
    start: int
    end: int


Statement: TypeAlias = Version | Heading | Param | StepStatement | Broken


class Comment(NamedTuple):
    """From `#` to the end of its line."""

    text: str
    start: int
    end: int


class FileTree(NamedTuple):
    """A workflow file, in the order of its text."""

    source: Source
    statements: tuple[Statement, ...]
    comments: tuple[Comment, ...]

    @property
    def params(self) -> dict[str, int | float | str]:
        """The parameters and their defaults."""
        return {str(found.name.value): found.value for found in self.statements if isinstance(found, Param)}
