"""Selection of a training mix: difficult and diverse tasks of each domain, without near duplicates or test tasks.

Near duplicates are exact over all pairs without comparing all pairs. A text is a set of shingles (three tokens in a
row). Two texts are alike if they share most of their shingles. So a text must share at least one of its rarest shingles
with each text that is like it, and only such pairs are compared.

Source: arXiv 2512.04388, training data: 960 problems of four domains, chosen for difficulty and diversity. It does not
say how; this way is ours. Every step is deterministic, and the order of the input does not matter.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import pairwise
from random import Random
from typing import Any, Literal

from wfdsl._version import __version__
from wfdsl.errors import UsageError
from wfdsl.tasks.conversion import parse_mapping
from wfdsl.tasks.task import Task, task_line

PAPER_COUNT = 960
"""The size of the paper's training mix."""
HARDER = 3
"""How many of the most difficult tasks are considered for each one that is chosen: our choice."""
ALIKE = 0.7
"""The least share of shared shingles, of all shingles of both texts. Our choice."""
CONTAINED = 0.8
"""The same of the shorter text alone, for a text that is quoted in a longer one. Our choice."""
QUOTED = 20
"""The fewest shingles of a text that counts as quoted: shorter ones occur in other texts by chance. Our choice."""

_SHINGLE = 3  # tokens
_TOKEN = re.compile(r"\w+|[^\w\s]")
_UNKNOWN = 0.5
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


@dataclass(frozen=True, slots=True)
class Dropped:
    """A task that was left out."""

    id: str
    reason: Literal["near-duplicate", "contaminated"]
    because_of: str
    """The id of the task that it is like."""


@dataclass(frozen=True, slots=True)
class Mix:
    """The chosen tasks, and what was left out."""

    tasks: tuple[Task, ...]
    dropped: tuple[Dropped, ...]


def difficulty(task: Task) -> float:
    """From 0 (every worker solves it) to 1; 0.5 if nothing is known.

    A measured `pass_rate` in the metadata counts first, then what the data set says.
    """
    known = task.metadata
    if isinstance(known.get("pass_rate"), int | float):
        return 1 - float(known["pass_rate"])
    stated = (_of_level(known.get(name)) for name in ("level", "difficulty"))
    return next((level for level in stated if level is not None), _UNKNOWN)


def parse_counts(text: str) -> dict[str, int] | int:
    """`960`, or `math=480,code=160`.

    Raises:
        UsageError: it has another form.
    """
    if text.isdecimal():
        return int(text)
    counts = parse_mapping(text, "-n", "math=480")
    if not all(map(str.isdecimal, counts.values())):
        raise UsageError(f"-n {text}: give a number, or DOMAIN=N,... such as math=480,code=160")
    return {name: int(count) for name, count in counts.items()}


def select(
    tasks: Sequence[Task], counts: Mapping[str, int] | int | None = None, *, against: Sequence[Task] = (), seed: int = 0
) -> Mix:
    """Choose a training mix: `counts` by domain, or a number that is shared equally among the domains.

    Without counts there are as many as in the paper, or as many as there are. The seed orders tasks of equal
    difficulty, and the mix.

    Raises:
        UsageError: a domain has too few tasks, or two tasks have one id.
    """
    ordered = sorted(tasks, key=lambda task: task.id)
    repeated = [one.id for one, next_one in pairwise(ordered) if one.id == next_one.id]
    if repeated:
        raise UsageError(f"ids occur twice ({len(repeated)}), the first is {repeated[0]}: is a file named twice?")
    both = [*against, *ordered]
    alike = likes([task.question for task in ordered], [task.question for task in against])
    dropped = tuple(
        Dropped(ordered[number].id, "contaminated" if like < len(against) else "near-duplicate", both[like].id)
        for number, like in alike.items()
    )
    kept = [task for number, task in enumerate(ordered) if number not in alike]
    domains = sorted({task.domain for task in ordered})
    chosen = []
    for name, count in sorted(_shared(PAPER_COUNT if counts is None else counts, domains).items()):
        there = [task for task in kept if task.domain == name]
        if counts is not None and not 0 <= count <= len(there):
            raise UsageError(f"{name}={count}: there are only {len(there)} of them: add files, or ask for fewer")
        chosen += _chosen(there, count, seed)
    Random(seed).shuffle(chosen)
    return Mix(tuple(chosen), dropped)


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
        **{
            role: [{"name": name, "tasks": len(tasks), "sha256": tasks_hash(tasks)} for name, tasks in files.items()]
            for role, files in (("inputs", inputs), ("against", against))
        },
        "left_out": _counted(one.reason for one in mix.dropped),
        "dropped": [asdict(one) for one in mix.dropped],
        "ids": [task.id for task in mix.tasks],
    }


def tasks_hash(tasks: Iterable[Task]) -> str:
    """The SHA-256 of tasks as lines of a file."""
    return sha256("".join(f"{task_line(task)}\n" for task in tasks).encode()).hexdigest()


def likes(texts: Sequence[str], others: Sequence[str] = ()) -> dict[int, int]:
    """The texts that are like one of the others, or like an earlier text that is like none: text -> the first of them.

    Others are numbered from 0, and texts go on after them.
    """
    every = [_shingles(text) for text in (*others, *texts)]
    frequencies = Counter(shingle for shingles in every for shingle in shingles)
    by_any: defaultdict[int, list[int]] = defaultdict(list)
    by_rarest: defaultdict[int, list[int]] = defaultdict(list)
    found: dict[int, int] = {}
    for number, shingles in enumerate(every):
        # The smaller of two sets that are alike shares at least ALIKE of its n shingles, so one of these is in both.
        most = len(shingles) - math.ceil(ALIKE * len(shingles)) + 1
        rarest = sorted(shingles, key=lambda shingle: (frequencies[shingle], shingle))[:most]
        if number >= len(others):
            near = {one for shingle in rarest for one in by_any.get(shingle, ())}
            near |= {one for shingle in shingles for one in by_rarest.get(shingle, ())}
            like = next((one for one in sorted(near) if _are_alike(every[one], shingles)), None)
            if like is not None:
                found[number - len(others)] = like
                continue
        for index, keys in ((by_any, shingles), (by_rarest, rarest)):
            for shingle in keys:
                index[shingle].append(number)
    return found


def farthest_first(texts: Sequence[str], count: int) -> list[int]:
    """The first text, then repeatedly the text that is farthest from the chosen ones; of equal ones the earlier one.

    Two texts are as near as the share of their words that both have. Source: greedy k-centre (Gonzalez 1985), within a
    factor of two of the best spread.
    """
    if count >= len(texts):
        return list(range(len(texts)))
    words = [frozenset(_TOKEN.findall(text.lower())) for text in texts]
    chosen, nearest = [0], dict.fromkeys(range(1, len(texts)), 0.0)
    while len(chosen) < count:
        newest = words[chosen[-1]]
        for number, nearness in nearest.items():
            shared = len(newest & words[number])
            nearest[number] = max(nearness, shared / (len(newest) + len(words[number]) - shared))
        chosen.append(min(nearest, key=nearest.__getitem__))
        del nearest[chosen[-1]]
    return chosen


def _of_level(level: object) -> float | None:
    if isinstance(level, str):
        return next((value for word, value in _LEVELS.items() if level.lower().startswith(word)), None)
    if isinstance(level, bool) or not isinstance(level, (int, float)):
        return None
    if isinstance(level, int) and 1 <= level <= 5:  # MATH's
        return (level - 1) / 4
    # A score on another scale: an increasing map is enough, since tasks are ranked by it.
    return (1 + math.tanh(level / 2)) / 2


def _shared(counts: Mapping[str, int] | int, domains: list[str]) -> Mapping[str, int]:
    if not isinstance(counts, int):
        return counts
    if counts < 1 or not domains:
        raise UsageError(f"{counts} tasks of {len(domains)} domains: ask for at least one task, and give some")
    each, rest = divmod(counts, len(domains))
    return {name: each + (number < rest) for number, name in enumerate(domains)}


def _chosen(tasks: list[Task], count: int, seed: int) -> list[Task]:
    """The diverse ones among the most difficult ones."""
    shuffled = list(tasks)
    Random(seed).shuffle(shuffled)
    ranked = sorted(shuffled, key=difficulty, reverse=True)[: count * HARDER]
    return [ranked[number] for number in farthest_first([task.question for task in ranked], count)]


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _are_alike(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether two sets of shingles are nearly the same, or one contains the other."""
    shared, shorter = len(one & other), min(len(one), len(other))
    is_quoted = shorter >= QUOTED and shared >= CONTAINED * shorter
    return is_quoted or shared >= ALIKE * (len(one) + len(other) - shared)


def _shingles(text: str) -> frozenset[int]:
    """The runs of three words, numbers and signs of a text in lower case, by their hashes."""
    words = _TOKEN.findall(text.lower())
    runs = zip(*(words[start:] for start in range(_SHINGLE)), strict=False) if len(words) > _SHINGLE else [tuple(words)]
    return frozenset(map(hash, runs))
