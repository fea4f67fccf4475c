"""Diagnostics: problems in a text, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wfdsl.language.source import Span

NOWHERE = Span(0, 0)  # of a problem in a value that was never a text
Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: a stable code, how bad it is, where it is, and what to write instead.

    `label` is shown after the caret; `help` is the cure.
    """

    code: str
    """The stable name of the problem, which `wfdsl explain` takes."""
    severity: Severity
    """`error` or `warning`."""
    message: str
    """What is wrong, in one sentence."""
    span: Span
    """Where it is in the text."""
    label: str = ""
    """What is written under the marked place; may be empty."""
    help: str = ""
    """What to do; may be empty."""

    @property
    def is_error(self) -> bool:
        """Whether it makes the text invalid."""
        return self.severity == "error"


MOST_SHOWN = 100  # diagnostics of one code, so that a text made of problems stays cheap to check; our choice


def more_of_the_same(code: str, span: Span) -> Diagnostic:
    """The note that replaces all diagnostics of a code beyond those shown; `span` is the first one's."""
    message = f"there are more than {MOST_SHOWN} problems `{code}`; from here on they are not shown"
    return Diagnostic("more-of-the-same", "note", message, span, help="fix the first ones, and check again")


def in_order(found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics in the order of the text; at one place errors come first."""
    rank = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(found, key=lambda d: (d.span.start, rank[d.severity], d.span.end, d.code)))


def once_per_place(found: list[Diagnostic]) -> list[Diagnostic]:
    """Of several with one code at one place the first: the copies of a step have one place, and one cure."""
    first: dict[tuple[str, Span], Diagnostic] = {}
    for diagnostic in found:
        first.setdefault((diagnostic.code, diagnostic.span), diagnostic)
    return list(first.values())
