"""Tasks of the gym: generated questions, in equal parts of each kind and family."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count, cycle
from typing import Any

from wfdsl.errors import UsageError
from wfdsl.tasks.task import Task
from wfdsl_rl.gym.world.families import SPLITS, draw
from wfdsl_rl.gym.world.families.form import Item, Split
from wfdsl_rl.gym.world.presets import preset_of
from wfdsl_rl.gym.world.profiles import DOMAINS, Domain

_PATIENCE = 100
"""After this many repeated questions in a row a family counts as exhausted."""


def make(preset: str, n: int, seed: int, *, split: Split = "test", kinds: Sequence[Domain] | None = None) -> list[Task]:
    """Tasks for the workers of a preset: kinds in turns, their families in turns; a smaller `n` gives the first ones.

    Args:
        preset: The pool's name. It says which families of questions are asked.
        n: How many.
        seed: Which series.
        split: "train", or "test" with wordings that the other never has.
        kinds: Some of math, choice, text and code, in turns; all four unless given.

    Raises:
        UsageError: no such preset, split or kind, or a number below 0.
    """
    ease = preset_of(preset).ease
    wanted = _kinds(kinds)
    if n < 0:
        raise UsageError(f"the gym cannot make {n} tasks; give a number from 0")
    series = {kind: _series(kind, seed, split, tuple(ease[kind])) for kind in wanted}
    turns = (wanted[at % len(wanted)] for at in range(n))
    return [
        task_of(item, f"{split}-{seed}-{kind}-{at}", preset, split)
        for kind in turns
        for at, item in [next(series[kind])]
    ]


def load(name: str, count: int, seed: int, *, split: str = "", kinds: Sequence[str] | None = None) -> list[Task]:
    """What the entry point `gym` of `wfdsl.tasks` names: `make`, with the split `test` by default.

    Raises:
        UsageError: no such preset, split or kind.
    """
    named: Any = (split or "test", kinds)  # `make` refuses names that it does not know
    return make(name, count, seed, split=named[0], kinds=named[1])


def items(preset: str, kind: Domain, n: int, seed: int, *, split: Split = "test") -> list[Item]:
    """The items that the tasks of one kind are made from.

    Raises:
        UsageError: no such preset or split.
    """
    series = _series(kind, seed, split, tuple(preset_of(preset).ease[kind]))
    return [next(series)[1] for _ in range(n)]


def task_of(item: Item, name: str, preset: str, split: str) -> Task:
    """The task that asks an item's question."""
    return Task(
        id=name,
        question=item.question,
        gold=item.gold,
        kind=item.kind,
        source=preset,
        split=split,
        choices=item.choices,
        tests=item.tests,
        metadata={
            "family": item.family,
            "domain": item.kind,
            "template": item.template,
            "difficulty": item.difficulty,
            "simulated": True,
        },
    )


def _kinds(kinds: Sequence[Domain] | None) -> tuple[Domain, ...]:
    wanted = DOMAINS if kinds is None else tuple(dict.fromkeys(kinds))
    for kind in wanted:
        if kind not in DOMAINS:
            raise UsageError(f"the gym has no questions of the kind {kind!r}; the kinds are {', '.join(DOMAINS)}")
    if not wanted:
        raise UsageError(f"no kinds of questions are named; the gym has {', '.join(DOMAINS)}")
    return wanted


def _series(kind: Domain, seed: int, split: Split, families: tuple[str, ...]) -> Iterator[tuple[int, Item]]:
    """The series of a kind, each item with its place: families in turns, and repeated questions left out.

    A family that keeps repeating itself is exhausted; from then on its questions are repeated.
    """
    if split not in SPLITS:
        raise UsageError(f"the gym has no split {split!r}; the splits are {', '.join(map(repr, SPLITS))}")
    waiting: dict[str, deque[tuple[int, Item]]] = {name: deque() for name in families}
    asked: set[str] = set()
    repeats = dict.fromkeys(waiting, 0)
    places = count()
    for family in cycle(waiting):
        while not waiting[family]:
            at = next(places)
            item = draw(kind, seed, at, families=families, split=split)
            again = item.question in asked
            repeats[item.family] = repeats[item.family] + 1 if again else 0
            if not again or repeats[item.family] > _PATIENCE:
                asked.add(item.question)
                waiting[item.family].append((at, item))
        yield waiting[family].popleft()
