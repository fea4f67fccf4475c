"""The catalogue of question families: draw an item from a seed, and recognise one from its text.

Both go through `_item`, which sees nothing but the wording and its fields: what is drawn is what is recognised.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from types import MappingProxyType

from wfdsl.errors import UsageError
from wfdsl.tasks.task import Kind
from wfdsl_rl.gym.world.families import (
    algebra,
    arithmetic,
    counting,
    dates,
    knowledge,
    numbers,
    one_part,
    programs,
    several_parts,
    strings,
    units,
)
from wfdsl_rl.gym.world.families.form import Family, Fields, Form, Item, RandomStream, Split, jitter, reader

CATALOGUE = (
    arithmetic.FAMILY,
    algebra.FAMILY,
    counting.FAMILY,
    knowledge.FAMILY,
    units.MEASURES,
    numbers.FAMILY,
    strings.FAMILY,
    dates.FAMILY,
    units.UNIT_TEXTS,
    programs.LIST_CODE,
    programs.STRING_CODE,
    programs.NUMBER_CODE,
    programs.LINE_CODE,
    one_part.SUMS,
    several_parts.CHAIN,
    several_parts.BASKET,
    one_part.LARGEST,
    one_part.DECOY,
    several_parts.PAIR,
    one_part.TALLY,
    one_part.LONG_RUN,
    several_parts.RELAY,
)
"""All families; a preset asks some of them."""
_BY_NAME = {family.name: family for family in CATALOGUE}

FAMILIES: tuple[str, ...] = tuple(_BY_NAME)
"""Their names, in the same order."""

_LOAD_SHARE, _JITTER_SHARE = 0.8, 0.6
"""How a difficulty is made of the work that the numbers ask for and of what else sets questions apart (our choice).
The squares add up to 1."""
_MOST = 3.0
"""Difficulties are cut off here, so that a user's own large numbers stay within what the workers are made for."""
_LONGEST = 400
"""No question has more characters; longer texts are not even looked at."""


@dataclass(frozen=True, slots=True)
class _Wording:
    family: Family
    form: Form
    name: str
    text: str
    pattern: re.Pattern[str]


def draw(kind: Kind, seed: int, index: int, *, families: Collection[str] = (), split: Split = "train") -> Item:
    """Item `index` of the endless series that the seed fixes, of one of the families of this kind, or of these only.

    Raises: UsageError if none of the families is of this kind, or there is no such split.
    """
    found = _of_kind(kind, tuple(families))
    if split not in SPLITS:
        raise UsageError(f"the gym has no split {split!r}; the splits are {', '.join(map(repr, SPLITS))}")
    tries = (_tried(found, split, RandomStream(f"{kind}/{seed}/{index}/{split}/{attempt}")) for attempt in count())
    return next(item for item in tries if item is not None)


def recognise(question: str) -> Item | None:
    """The item whose question this is, also with a user's own numbers; None if no wording fits the text."""
    text = question.strip()
    return _recognised(text) if 0 < len(text) <= _LONGEST else None


@lru_cache(maxsize=8192)
def _recognised(text: str) -> Item | None:
    first = text.split(maxsplit=1)[0]
    for wording in (*_BY_FIRST_WORD.get(first, ()), *_OTHERS):
        found = wording.pattern.fullmatch(text)
        item = found and _item(wording, found.groupdict(), text)
        if item:
            return item
    return None


def domain_of(family: str) -> Kind:
    """The kind of a family's questions, which is its domain.

    Raises: UsageError if there is no such family.
    """
    if family not in _BY_NAME:
        raise UsageError(f"the gym has no family {family!r}; the families are {', '.join(FAMILIES)}")
    return _BY_NAME[family].kind


def summary_of(family: str) -> str:
    """One line on what a family asks and how its answers are computed.

    Raises: UsageError if there is no such family.
    """
    domain_of(family)
    return _BY_NAME[family].summary


def _tried(families: tuple[Family, ...], split: Split, rng: RandomStream) -> Item | None:
    form = rng.pick(rng.pick(families).forms)
    wording = rng.pick(_WORDINGS[id(form), split])
    fields = form.draw(rng)
    return _item(wording, fields, wording.text.format(**fields))


def _item(wording: _Wording, fields: Fields, question: str) -> Item | None:
    answer = wording.form.answer(fields)
    if answer is None:
        return None
    mean, spread = wording.form.scale
    difficulty = _LOAD_SHARE * (answer.load - mean) / spread + _JITTER_SHARE * jitter(question)
    return Item(
        question=question,
        family=wording.family.name,
        kind=wording.family.kind,
        gold=answer.gold,
        wrong=answer.wrong,
        template=wording.name,
        difficulty=round(max(-_MOST, min(_MOST, difficulty)), 4),
        choices=answer.choices,
        tests=answer.tests,
        parts=answer.parts,
    )


@cache
def _of_kind(kind: str, names: tuple[str, ...]) -> tuple[Family, ...]:
    found = tuple(family for family in CATALOGUE if family.kind == kind and (not names or family.name in names))
    if not found:
        kinds = ", ".join(dict.fromkeys(family.kind for family in CATALOGUE))
        raise UsageError(f"the gym has no questions of the kind {kind!r}; the kinds are {kinds}")
    return found


def _wordings(family: Family, form: Form, split: Split) -> tuple[_Wording, ...]:
    return tuple(
        _Wording(family, form, f"{family.name}.{form.name}.{split}.{number}", text, reader(text, form.patterns))
        for number, text in enumerate(form.wordings(split))
    )


_SPLIT_NAMES: tuple[Split, ...] = ("train", "test")
_WORDINGS = {
    (id(form), split): _wordings(family, form, split)
    for family in CATALOGUE
    for form in family.forms
    for split in _SPLIT_NAMES
}

SPLITS: Mapping[Split, tuple[str, ...]] = MappingProxyType(
    {
        split: tuple(wording.name for (_, its), found in _WORDINGS.items() if its == split for wording in found)
        for split in _SPLIT_NAMES
    }
)
"""The names of the wordings of each split; no wording is in both."""


def _by_first_word() -> dict[str, tuple[_Wording, ...]]:
    """The wordings whose first word is fixed, under that word; the others under the empty text."""
    found = defaultdict(list)
    for wordings in _WORDINGS.values():
        for wording in wordings:
            first = wording.text.split(maxsplit=1)[0]
            found["" if "{" in first else first].append(wording)
    return {first: tuple(wordings) for first, wordings in found.items()}


_BY_FIRST_WORD = _by_first_word()
_OTHERS = _BY_FIRST_WORD.pop("", ())
