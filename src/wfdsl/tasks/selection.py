"""Selection of a training mix: difficult and diverse tasks of each domain, without near duplicates or test tasks.

Source: arXiv 2512.04388, training data: 960 problems of four domains, chosen for difficulty and diversity. It does not
say how; this way is ours. Every step is deterministic, and the order of the input does not matter.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from random import Random
from typing import Any, Literal, TypeAlias

from wfdsl._version import __version__
from wfdsl.errors import UsageError
from wfdsl.tasks import similarity
from wfdsl.tasks.task import Task, task_line

PAPER_COUNT = 960
"""The size of the paper's training mix."""
HARDER = 3
"""How many of the most difficult tasks are considered for each one that is chosen: our choice."""
UNKNOWN = 0.5
"""The difficulty of tasks of which nothing is known, on the scale from 0 to 1."""

_MATH_LEVELS = 5
_MOST_CALCULATIONS = 16  # twice as many as the longest usual solution of GSM8K, whose hardest are like MATH's level 3
_LEVELS = {
    "post-graduate": 0.95,
    "hard graduate": 0.85,
    "hard undergraduate": 0.7,
    "easy undergraduate": 0.5,
    "phd": 0.9,
    "university": 0.7,
    "senior high": 0.5,
    "junior high": 0.3,
    "primary": 0.1,
    "hard": 0.85,
    "medium": 0.5,
    "easy": 0.15,
}
"""What levels of data sets begin with, the longer wordings first. The order is the data sets', the numbers ours."""

Reason: TypeAlias = Literal["near-duplicate", "contaminated"]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A task that was left out."""

    id: str
    reason: Reason
    because_of: str
    """The id of the task that it is like."""


@dataclass(frozen=True, slots=True)
class Mix:
    """The chosen tasks, and what was left out."""

    tasks: tuple[Task, ...]
    dropped: tuple[Dropped, ...]


def difficulty(task: Task) -> float | None:
    """From 0 (every worker solves it) to 1; None if nothing is known.

    A measured `pass_rate` in the metadata counts first, then what the data set says.
    """
    known = task.metadata
    if isinstance(known.get("pass_rate"), (int, float)):
        return 1 - float(known["pass_rate"])
    for name in ("level", "difficulty"):
        found = _of_level(known.get(name))
        if found is not None:
            return found
    calculations = known.get("calculations")
    return min(1.0, calculations / _MOST_CALCULATIONS) if isinstance(calculations, int) else None


def parse_counts(text: str) -> dict[str, int] | int:
    """`960`, or `math=480,code=160`.

    Raises:
        UsageError: it has another form.
    """
    if text.isdecimal():
        return int(text)
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and count.strip().isdecimal() for name, _, count in pairs):
        raise UsageError(f"-n {text}: give a number, or DOMAIN=N,... such as math=480,code=160")
    counts = {name.strip(): int(count) for name, _, count in pairs}
    if len(counts) < len(pairs):
        raise UsageError(f"-n {text}: a domain is named twice")
    return counts


def select(
    tasks: Sequence[Task], counts: Mapping[str, int] | int | None = None, *, against: Sequence[Task] = (), seed: int = 0
) -> Mix:
    """Choose a training mix: `counts` by domain, or a number that is shared equally among the domains.

    Without counts there are as many as in the paper, or as many as there are. The seed orders tasks of equal
    difficulty, and the mix.

    Raises:
        UsageError: a domain has too few tasks, or two tasks have one id.
    """
    ordered = _in_one_order(tasks)
    kept, dropped = _without_alike(ordered, against)
    by_domain: defaultdict[str, list[Task]] = defaultdict(list)
    for task in kept:
        by_domain[task.domain].append(task)
    asked = _shares(PAPER_COUNT if counts is None else counts, sorted({task.domain for task in ordered}))
    if counts is not None:
        _refuse_shortage(asked, {name: len(by_domain[name]) for name in asked})
    chosen = [task for name, count in asked.items() for task in _chosen(by_domain[name], count, seed)]
    Random(seed).shuffle(chosen)
    return Mix(tuple(chosen), tuple(dropped))


def manifest(
    mix: Mix, *, seed: int, inputs: Mapping[str, Sequence[Task]], against: Mapping[str, Sequence[Task]]
) -> dict[str, Any]:
    """The JSON manifest of a mix: what makes the same one again, and what was left out.

    Hashes are of tasks as lines of our own files, whatever format the input has.
    """
    return {
        "version": 1,
        "wfdsl": __version__,
        "tasks": len(mix.tasks),
        "sha256": tasks_hash(mix.tasks),
        "chosen": _counted(task.domain for task in mix.tasks),
        "sources": _counted(task.source for task in mix.tasks),
        "seed": seed,
        "inputs": [_input(name, tasks) for name, tasks in inputs.items()],
        "against": [_input(name, tasks) for name, tasks in against.items()],
        "left_out": _counted(one.reason for one in mix.dropped),
        "dropped": [asdict(one) for one in mix.dropped],
        "ids": [task.id for task in mix.tasks],
    }


def tasks_hash(tasks: Iterable[Task]) -> str:
    """The SHA-256 of tasks as lines of a file."""
    return sha256("".join(f"{task_line(task)}\n" for task in tasks).encode()).hexdigest()


def _of_level(level: object) -> float | None:
    if isinstance(level, bool):
        return None
    if isinstance(level, int) and 1 <= level <= _MATH_LEVELS:
        return (level - 1) / (_MATH_LEVELS - 1)
    if isinstance(level, (int, float)):
        # A score around 0, as the gym's: an increasing map is enough, since tasks are ranked by it.
        return (1 + math.tanh(level / 2)) / 2
    if isinstance(level, str):
        return next((value for word, value in _LEVELS.items() if level.lower().startswith(word)), None)
    return None


def _in_one_order(tasks: Sequence[Task]) -> list[Task]:
    repeated = [name for name, count in Counter(task.id for task in tasks).items() if count > 1]
    if repeated:
        raise UsageError(f"{len(repeated)} ids occur twice, the first is {repeated[0]}: is a file named twice?")
    return sorted(tasks, key=lambda task: task.id)


def _without_alike(tasks: list[Task], against: Sequence[Task]) -> tuple[list[Task], list[Dropped]]:
    both = [*against, *tasks]
    found = similarity.likes([task.question for task in tasks], [task.question for task in against])
    dropped = [
        Dropped(tasks[number].id, "contaminated" if like < len(against) else "near-duplicate", both[like].id)
        for number, like in found.items()
    ]
    return [task for number, task in enumerate(tasks) if number not in found], dropped


def _shares(counts: Mapping[str, int] | int, domains: list[str]) -> dict[str, int]:
    if isinstance(counts, int):
        if counts < 1 or not domains:
            raise UsageError(f"{counts} tasks of {len(domains)} domains: ask for at least one task, and give some")
        each, rest = divmod(counts, len(domains))
        return {name: each + (number < rest) for number, name in enumerate(domains)}
    for name, count in counts.items():
        if name not in domains:
            raise UsageError(f"there are no tasks of the domain {name!r}: there are {', '.join(domains) or 'none'}")
        if count < 0:
            raise UsageError(f"{name}={count}: a count must be at least 0")
    return dict(sorted(counts.items()))


def _refuse_shortage(asked: Mapping[str, int], available: Mapping[str, int]) -> None:
    short = [f"{name} has {available[name]} of {count}" for name, count in asked.items() if available[name] < count]
    if short:
        most = ",".join(f"{name}={min(count, available[name])}" for name, count in asked.items())
        raise UsageError(f"too few tasks are left ({'; '.join(short)}): add files, or ask for -n {most}")


def _chosen(tasks: list[Task], count: int, seed: int) -> list[Task]:
    """The diverse ones among the most difficult ones."""
    if not count:
        return []
    shuffled = list(tasks)
    Random(seed).shuffle(shuffled)
    ranked = sorted(shuffled, key=_ease)[: count * HARDER]
    return [ranked[number] for number in similarity.farthest_first([task.question for task in ranked], count)]


def _ease(task: Task) -> float:
    known = difficulty(task)
    return -(UNKNOWN if known is None else known)


def _input(name: str, tasks: Sequence[Task]) -> dict[str, Any]:
    return {"name": name, "tasks": len(tasks), "sha256": tasks_hash(tasks)}


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
