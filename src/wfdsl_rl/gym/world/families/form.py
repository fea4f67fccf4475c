"""Families, forms and wordings: a question is a wording with its fields filled in, and can be read back from its text.

A wording is a format string such as `What is {p}% of {n}?`. The same string writes a question and, with a regular
expression for each field, reads one, so that whatever is drawn is also recognised, with a user's own numbers too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from wfdsl_rl.gym.world.families.chance import Chance
    from wfdsl_rl.tasks.task import CodeTests, Kind

Split: TypeAlias = Literal["train", "test"]
Fields: TypeAlias = Mapping[str, str]
"""What stands in the gaps of a wording, as text."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a form says about one filled-in question."""

    gold: str
    wrong: tuple[str, ...]
    """The most tempting first."""
    load: float
    """How much work it is, in the form's own unit; `Form.scale` makes it a difficulty."""
    choices: tuple[str, ...] = ()
    tests: CodeTests | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """One thing that a family asks, with several wordings."""

    name: str
    patterns: Mapping[str, str]
    """A regular expression without groups for each field."""
    train: tuple[str, ...]
    """Wordings for training."""
    test: tuple[str, ...]
    """Wordings that are held out."""
    draw: Callable[[Chance], dict[str, str]]
    answer: Callable[[Fields], Answer | None]
    """None if the fields make no question that has one answer."""
    scale: tuple[float, float] = (0.0, 1.0)
    """Mean and standard deviation of the load over drawn questions (measured; a test holds them)."""

    def wordings(self, split: Split) -> tuple[str, ...]:
        return self.train if split == "train" else self.test


@dataclass(frozen=True, slots=True)
class Family:
    """A generator of questions of one kind."""

    name: str
    kind: Kind
    summary: str
    """One line: what it asks and how its answers are computed."""
    forms: tuple[Form, ...]


_GAP = re.compile(r"\{(\w+)\}")


def reader(wording: str, patterns: Mapping[str, str]) -> re.Pattern[str]:
    """The regular expression that reads the fields back out of a question in this wording.

    A field that comes again must say the same again.
    """
    parts = _GAP.split(wording)
    literals, names = parts[::2], parts[1::2]
    first = {name: names.index(name) for name in names}
    gaps = [f"(?P<{n}>{patterns[n]})" if first[n] == at else f"(?P={n})" for at, n in enumerate(names)]
    return re.compile("".join(re.escape(text) + gap for text, gap in zip(literals, [*gaps, ""], strict=True)), re.ASCII)


def other_numbers(gold: Fraction | int, candidates: Iterable[Fraction | int]) -> tuple[str, ...]:
    """Four wrong numbers that differ from the gold and each other: the candidates, then near misses.

    Answers that are not negative get near misses that are not, so that none can be ruled out at a glance.
    """
    value = Fraction(gold)
    near = [value + step for step in (1, -1, 2, 10, -2, -10, 3, 5, 4)]
    fitting = [one for one in near if one >= 0 or value < 0]
    different = dict.fromkeys(one for one in (*map(Fraction, candidates), *fitting) if one != value)
    return tuple(map(str, islice(different, 4)))


def bare(text: str) -> str:
    """A text as the most lenient grader could see it: its letters and digits alone, without case."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def other_texts(gold: str, candidates: Iterable[str], *, least: int = 3, most: int = 5) -> tuple[str, ...] | None:
    """The candidates that differ from the gold and each other under lenient grading; None if they are too few."""
    seen = {bare(gold), ""}
    chosen = []
    for one in candidates:
        if bare(one) not in seen:
            seen.add(bare(one))
            chosen.append(one)
    return tuple(chosen[:most]) if len(chosen) >= least else None
