"""How question families are written: items, wordings with gaps, wrong answers, and reproducible random draws.

A wording is a format string such as `What is {p}% of {n}?`. The same string writes a question and, with a regular
expression for each field, reads one. So every drawn question is recognised, and so is one with a user's own numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from itertools import islice
from typing import Literal, TypeAlias, TypeVar

from wfdsl.tasks.task import CodeTests, Kind


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its computed answer. The text of the question determines all the rest."""

    question: str
    """One paragraph, or several lines; never an empty line, which is where a subtask begins."""
    family: str
    """Which generator it comes from, such as `algebra`."""
    kind: Kind
    """How answers are judged; the paper's four domains are the kinds math, choice, text and code."""
    gold: str
    """The true answer, computed; of code items a right program."""
    wrong: tuple[str, ...]
    """Plausible wrong answers, the most tempting first: at least three, each different and judged wrong."""
    template: str
    """Which wording it has. Wordings are split into those for training and those that are held out."""
    difficulty: float
    """What the numbers in it add to its difficulty, about standard normal within a family."""
    choices: tuple[str, ...] = ()
    """The options of a choice question."""
    tests: CodeTests | None = None
    """The tests of a code question."""
    parts: tuple[tuple[str, ...], ...] = ()
    """Of a question in several parts, for each: its result, and three wrong ones."""


T = TypeVar("T")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


_SPENT = 1 << 128
"""Below this the rest of a digest is thrown away: the bias of a draw stays under 2**-64."""


class RandomStream:
    """A stream of draws from a text."""

    __slots__ = ("_block", "_pool", "_text")

    def __init__(self, text: str) -> None:
        self._text = _bytes(text)
        self._block = 0
        self._pool = 0

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        if self._pool < _SPENT:
            digest = blake2b(self._text, salt=self._block.to_bytes(16, "big")).digest()
            self._block += 1
            self._pool = int.from_bytes(digest, "big")
        self._pool, drawn = divmod(self._pool, bound)
        return drawn

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def pick(self, things: Sequence[T]) -> T:
        """One of the things."""
        return things[self.below(len(things))]

    def sample(self, things: Sequence[T], size: int) -> list[T]:
        """`size` of the things, each at most once, in random order."""
        left = list(things)
        return [left.pop(self.below(len(left))) for _ in range(size)]

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """All the things, in random order."""
        return self.sample(things, len(things))


_TERMS = 8
_SPREAD = math.sqrt(_TERMS * (65536**2 - 1) / 12)


def jitter(text: str) -> float:
    """A number that the text fixes, about standard normal over texts. A sum of whole numbers, so exact everywhere."""
    digest = blake2b(_bytes(text), digest_size=2 * _TERMS, person=b"jitter").digest()
    total = sum(int.from_bytes(digest[at : at + 2], "big") for at in range(0, 2 * _TERMS, 2))
    return (total - _TERMS * 65535 / 2) / _SPREAD


Split: TypeAlias = Literal["train", "test"]
Fields: TypeAlias = Mapping[str, str]
"""The texts that fill the gaps of a wording."""


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
    parts: tuple[tuple[str, ...], ...] = ()


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
    draw: Callable[[RandomStream], dict[str, str]]
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
