"""Recipes: small generated programs that filter, map and reduce a list, and the mistakes made in them.

Each part is given twice: as Python source, and as a function that computes what the program should do. So expected
results never come from running the source, and running the program against them is a real test. A mistake is a recipe
too; only mistakes that some input shows to be wrong are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

from wfdsl.tasks.task import CodeTests
from wfdsl_rl.gym.world.families.form import Answer, RandomStream

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


KEEP = Parts(
    (
        Part("greater than {k}", "x > {k}", lambda x, k: x > k, 0, Part("", "x >= {k}", lambda x, k: x >= k)),
        Part("less than {k}", "x < {k}", lambda x, k: x < k, 0, Part("", "x <= {k}", lambda x, k: x <= k)),
        Part("at least {k}", "x >= {k}", lambda x, k: x >= k, 0.5, Part("", "x > {k}", lambda x, k: x > k)),
        Part("at most {k}", "x <= {k}", lambda x, k: x <= k, 0.5, Part("", "x < {k}", lambda x, k: x < k)),
        Part(
            "divisible by {k}",
            "x % {k} == 0",
            lambda x, k: x % k == 0,
            1,
            Part("", "x > {k} and x % {k} == 0", lambda x, k: x > k and x % k == 0),
        ),
        Part(
            "not divisible by {k}",
            "x % {k} != 0",
            lambda x, k: x % k != 0,
            1.5,
            Part("", "x % {k} == 1", lambda x, k: x % k == 1),
        ),
    ),
    parameter=r"[1-9]\d{0,3}",
)
CHANGE = Parts(
    (
        Part("their doubles", "2 * x", lambda x, _: 2 * x, 0),
        Part("their squares", "x * x", lambda x, _: x * x, 0.5),
        Part("their cubes", "x ** 3", lambda x, _: x**3, 0.5),
        Part("their last digits", "abs(x) % 10", lambda x, _: abs(x) % 10, 1),
        Part("the values plus {k}", "x + {k}", lambda x, k: x + k, 0),
        Part("the values minus {k}", "x - {k}", lambda x, k: x - k, 0),
        Part("the values times {k}", "x * {k}", lambda x, k: x * k, 0.5),
    ),
    parameter=r"[1-9]\d{0,3}",
)
_SUM = Part("the sum", "sum(ys)", lambda ys, _: sum(ys), 0, Part("", "sum(ys[1:])", lambda ys, _: sum(ys[1:])))
_LARGEST = Part(
    "the largest or else 0",
    "max(ys, default=0)",
    lambda ys, _: max(ys, default=0),
    1,
    Part("", "max(ys)", lambda ys, _: max(ys)),
)
_SMALLEST = Part(
    "the smallest or else 0",
    "min(ys, default=0)",
    lambda ys, _: min(ys, default=0),
    1,
    Part("", "min(ys)", lambda ys, _: min(ys)),
)
_FIRST = Part(
    "the first or else 0",
    "ys[0] if ys else 0",
    lambda ys, _: ys[0] if ys else 0,
    1,
    Part("", "ys[0]", lambda ys, _: ys[0]),
)
_LAST = Part(
    "the last or else 0",
    "ys[-1] if ys else 0",
    lambda ys, _: ys[-1] if ys else 0,
    1,
    Part("", "ys[-1]", lambda ys, _: ys[-1]),
)
_DIFFERENT = Part(
    "the number of different values",
    "len(set(ys))",
    lambda ys, _: len(set(ys)),
    1.5,
    Part("", "len(ys)", lambda ys, _: len(ys)),
)
_LIST = Part("the list", "ys", lambda ys, _: ys, 0, Part("", "sorted(ys)", lambda ys, _: sorted(ys)))
_BACKWARDS = Part("the reversed list", "ys[::-1]", lambda ys, _: ys[::-1], 0.5, Part("", "ys", lambda ys, _: ys))

GATHER_NUMBER = Parts((_SUM, _LARGEST, _SMALLEST, _FIRST, _LAST, _DIFFERENT), parameter="")
"""Results that are one number."""
GATHER = Parts((*GATHER_NUMBER.all, _LIST, _BACKWARDS), parameter="")

NAMES = ("f", "g", "h", "pick", "work", "run", "take", "total", "form", "find", "make", "get")
"""What functions are called."""
NAME = "|".join(NAMES)


def phrase(rng: RandomStream, parts: Parts, parameters: Sequence[int | str]) -> str:
    """One of the parts with one of the parameters, as a question says it."""
    return rng.pick(parts.all).phrase.format(k=rng.pick(parameters))


def lists(limit: int, shift: int) -> list[list[int]]:
    """Lists that show slips around a limit: at it and beside it, negative, repeated, empty."""
    near = [limit, limit + 1, limit - 1]
    return [
        [limit + 3, *near, 2 * limit, 0, -limit, 3 * limit, limit + 5, limit + 2],
        [limit],
        [limit - 1, limit + 1, limit, limit + 1],
        [],
        [-7, 5, 2 * limit + 1, -7, 5 * limit, 12, 4, limit + shift],
        [3 * limit, limit + 2, -2 * limit, 1, limit - shift],
        [-limit, 2 * limit, -3, 11, 3 * limit + 1, limit],
    ]


def function_answer(recipe: Recipe, name: str, argument: str, cases: Sequence[tuple[Any, list[Any]]]) -> Answer | None:
    """The answer to a question for a function of one argument; None if the cases show too few slips to be wrong.

    A case is a value of the argument and the items that it stands for.
    """
    examined = recipe.examined([items for _, items in cases])
    if examined is None:
        return None
    expected, slips = examined
    tests = CodeTests(
        style="function",
        inputs=tuple(json.dumps([value]) for value, _ in cases),
        expected=tuple(map(json.dumps, expected)),
        entry_point=name,
    )
    right, *wrong = (_function(one, name, argument) for one in (recipe, *slips))
    return Answer(right, tuple(wrong), recipe.load, tests=tests)


def _function(recipe: Recipe, name: str, argument: str) -> str:
    first, result = recipe.body()
    return f"def {name}({argument}):\n    {first}\n    return {result}\n"
