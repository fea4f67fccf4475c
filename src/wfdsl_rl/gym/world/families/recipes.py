"""Recipes: small programs that keep some items, change them and gather the result, and how they go wrong.

Each part stands twice, as Python source for the program and as a function that computes what the program should do. So
expected results never come from running source, and running the program against them is a real test. A slip is a recipe
too; only slips that some input shows to be wrong are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

Apply: TypeAlias = Callable[[Any, Any], Any]
"""Called with what the part works on and with its parameter."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a recipe."""

    phrase: str
    """How a question names it; `{k}` is the parameter."""
    source: str
    """A Python expression over `x` or `ys`; `{k}` is the parameter."""
    apply: Apply
    weight: float = 0.0
    """How much harder it makes a question."""
    slip: Part | None = None
    """What a hasty programmer writes instead."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A part with its parameter, as read from a question."""

    part: Part
    k: Any = None

    @property
    def source(self) -> str:
        return self.part.source.format(k=repr(self.k))

    @property
    def pair(self) -> tuple[Apply, Any]:
        return self.part.apply, self.k

    def slipped(self) -> Chosen:
        return replace(self, part=self.part.slip or self.part)


class Parts:
    """A table of parts that can be read back from their phrases."""

    def __init__(self, parts: Sequence[Part], *, parameter: str) -> None:
        self.all = tuple(parts)
        self._readers = [(part, re.compile(_reader(part, f"({parameter})"))) for part in parts]
        self.pattern = "|".join(_reader(part, f"(?:{parameter})") for part in parts)
        """A regular expression without groups for any of the phrases."""

    def read(self, phrase: str) -> Chosen:
        """The part that a phrase names.

        Raises: ValueError if none does.
        """
        for part, reader in self._readers:
            found = reader.fullmatch(phrase)
            if found:
                text = found[1] if found.groups() else None
                return Chosen(part, int(text) if text is not None and text.isdecimal() else text)
        raise ValueError(f"no part is called {phrase!r}")


def _reader(part: Part, parameter: str) -> str:
    return re.escape(part.phrase).replace(r"\{k\}", parameter)


FAILED = object()
"""What a recipe gives where its program raises an error."""
_MOST = 5
"""As many slips are kept."""
_LEAST = 3
"""With fewer slips, or fewer different results, a recipe makes no question."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Keep some items, change them, gather the result."""

    items: str
    """A Python expression for the list of items."""
    keep: Chosen
    change: Chosen
    gather: Chosen
    late: bool = False
    """The test is made on the changed items."""
    cut: str = ""
    """A slice that loses items, `[1:]` or `[:-1]`."""

    def body(self) -> tuple[str, str]:
        """The line that makes `ys`, and the expression for the result."""
        items = self.items + self.cut
        if self.late:
            items = f"[{self.change.source} for x in {items}]"
            return f"ys = [x for x in {items} if {self.keep.source}]", self.gather.source
        return f"ys = [{self.change.source} for x in {items} if {self.keep.source}]", self.gather.source

    def __call__(self, items: list[Any]) -> Any:
        """What the program makes of the items."""
        (keep, k), (change, m), (gather, n) = self.keep.pair, self.change.pair, self.gather.pair
        if self.cut:
            items = items[1:] if self.cut == "[1:]" else items[:-1]
        try:
            if self.late:
                return gather([y for y in [change(x, m) for x in items] if keep(y, k)], n)
            return gather([change(x, m) for x in items if keep(x, k)], n)
        except (ValueError, IndexError):
            return FAILED

    def results(self, cases: Sequence[list[Any]]) -> list[Any]:
        """What the program makes of each list of items."""
        return [self(items) for items in cases]

    def examined(self, cases: Sequence[list[Any]]) -> tuple[list[Any], list[Recipe]] | None:
        """The results for the cases, and the slips that they show; None if the cases show too little."""
        expected = self.results(cases)
        slips = self.failing(cases, expected)
        if len(slips) < _LEAST or FAILED in expected or len(set(map(repr, expected))) < _LEAST:
            return None
        return expected, slips

    def failing(self, cases: Sequence[list[Any]], expected: Sequence[Any]) -> list[Recipe]:
        """Some slips that give another result than the expected one for at least one case."""
        pairs = list(zip(cases, expected, strict=True))
        found = (slip for slip in self._slips() if any(slip(items) != result for items, result in pairs))
        return list(islice(found, _MOST))

    def _slips(self) -> Iterable[Recipe]:
        """Recipes with one mistake, the most tempting first; the last with two."""
        keep, gather = self.keep.slipped(), self.gather.slipped()
        yield replace(self, keep=keep)
        yield replace(self, gather=gather)
        yield replace(self, cut="[:-1]")
        yield replace(self, late=True)
        yield replace(self, cut="[1:]")
        yield replace(self, keep=keep, gather=gather)

    @property
    def load(self) -> float:
        return self.keep.part.weight + self.change.part.weight + self.gather.part.weight


def chosen(fields: Mapping[str, str], *tables: tuple[str, Parts]) -> list[Chosen]:
    """The parts that the fields name, in the order of the tables."""
    return [parts.read(fields[name]) for name, parts in tables]
