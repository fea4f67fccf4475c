"""A training mix: so many tasks of each domain, difficult ones, far apart, no two alike, none like a test task.

Source: arXiv 2512.04388, training data: 960 problems of four domains, chosen for difficulty and diversity. It does not
say how; this way is ours. Every step is deterministic, and the order of the input does not matter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Literal, TypeAlias

from wfdsl.errors import UsageError
from wfdsl_rl.tasks.difficulty import UNKNOWN, difficulty
from wfdsl_rl.tasks.diversity import farthest_first
from wfdsl_rl.tasks.similarity import near_duplicates, overlaps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wfdsl_rl.tasks.task import Task

PAPER_COUNT = 960
"""The size of the paper's training mix."""
HARDER = 3.0
"""How many of the most difficult tasks are considered, for each one that is chosen: our choice."""

Reason: TypeAlias = Literal["near-duplicate", "contaminated", "pass-rate"]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A task that was left out, and why."""

    id: str
    reason: Reason
    because_of: str = ""
    """The id of the task that it is like."""


@dataclass(frozen=True, slots=True)
class Mix:
    """The chosen tasks, and what there is to say about the choice."""

    tasks: tuple[Task, ...]
    counts: Mapping[str, int]
    """How many were asked for, by domain."""
    available: Mapping[str, int]
    """How many there were to choose from after all were dropped that had to be, by domain."""
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True)
class Criteria:
    """What decides the choice."""

    seed: int = 0
    """Orders tasks of equal difficulty, and the mix."""
    harder: float = HARDER
    """So many of the most difficult tasks are considered for each that is chosen; 1 takes the most difficult."""
    pass_rates: Mapping[str, float] = field(default_factory=dict)
    """Measured pass rates by task id; they go before what data sets say."""
    pass_between: tuple[float, float] = (0.0, 1.0)
    """Tasks whose pass rate lies outside are left out."""
    fewer_allowed: bool = False
    """Whether a domain may have fewer tasks than asked for."""


def domain(task: Task) -> str:
    """What a mix is balanced over: the domain that the data set names, else the kind."""
    return str(task.metadata.get("domain") or task.kind)


def parse_counts(text: str) -> dict[str, int] | int:
    """`960`, or `math=480,code=160`.

    Raises:
        UsageError: it is neither.
    """
    if text.isdecimal():
        return int(text)
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and count.strip().isdecimal() for name, _, count in pairs):
        raise UsageError(f"-n {text}: it is a number, or DOMAIN=N,... such as math=480,code=160")
    counts = {name.strip(): int(count) for name, _, count in pairs}
    if len(counts) < len(pairs):
        raise UsageError(f"-n {text}: a domain is named twice")
    return counts


def select(
    tasks: Sequence[Task],
    counts: Mapping[str, int] | int = PAPER_COUNT,
    *,
    against: Sequence[Task] = (),
    criteria: Criteria | None = None,
) -> Mix:
    """Choose a training mix: `counts` by domain, or a number that is shared equally among the domains there are.

    Raises:
        UsageError: a domain has too few tasks, two tasks have one id, or a setting makes no sense.
    """
    criteria = criteria or Criteria()
    _check(criteria)
    ordered = _in_one_order(tasks)
    kept, dropped = _without_dropped(ordered, against, criteria)
    by_domain = _by_domain(kept)
    asked = _shares(counts, sorted({domain(task) for task in ordered}))
    available = {name: len(by_domain[name]) for name in asked}
    if not criteria.fewer_allowed:
        _refuse_shortage(asked, available)
    chosen = [task for name, count in asked.items() for task in _chosen(by_domain[name], count, criteria)]
    Random(criteria.seed).shuffle(chosen)
    return Mix(tuple(chosen), asked, available, tuple(dropped))


def _check(criteria: Criteria) -> None:
    low, high = criteria.pass_between
    if criteria.harder < 1:
        raise UsageError(f"harder is {criteria.harder}: it is a number from 1")
    if not 0 <= low <= high <= 1:
        raise UsageError(f"pass rates lie between 0 and 1, the lower bound first: not {low} and {high}")


def _in_one_order(tasks: Sequence[Task]) -> list[Task]:
    repeated = [name for name, count in Counter(task.id for task in tasks).items() if count > 1]
    if repeated:
        raise UsageError(f"{len(repeated)} ids occur twice, the first is {repeated[0]}: is a file named twice?")
    return sorted(tasks, key=lambda task: task.id)


def _without_dropped(
    tasks: list[Task], against: Sequence[Task], criteria: Criteria
) -> tuple[list[Task], list[Dropped]]:
    dropped = [Dropped(task.id, "pass-rate") for task in tasks if _outside(task, criteria)]
    tested = overlaps([task.question for task in tasks], [task.question for task in against])
    dropped += [Dropped(tasks[here].id, "contaminated", against[there].id) for here, there in tested.items()]
    gone = {one.id for one in dropped}
    left = [task for task in tasks if task.id not in gone]
    same = near_duplicates([task.question for task in left])
    dropped += [Dropped(left[later].id, "near-duplicate", left[first].id) for later, first in same.items()]
    return [task for number, task in enumerate(left) if number not in same], dropped


def _outside(task: Task, criteria: Criteria) -> bool:
    low, high = criteria.pass_between
    rate = criteria.pass_rates.get(task.id, task.metadata.get("pass_rate"))
    return isinstance(rate, (int, float)) and not low <= rate <= high


def _by_domain(tasks: list[Task]) -> defaultdict[str, list[Task]]:
    found: defaultdict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        found[domain(task)].append(task)
    return found


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
            raise UsageError(f"{name}={count}: a count is a number from 0")
    return dict(sorted(counts.items()))


def _refuse_shortage(asked: Mapping[str, int], available: Mapping[str, int]) -> None:
    short = [f"{name} has {available[name]} of {count}" for name, count in asked.items() if available[name] < count]
    if short:
        most = ",".join(f"{name}={min(count, available[name])}" for name, count in asked.items())
        raise UsageError(
            f"too few tasks are left ({'; '.join(short)}): add files, ask for {most}, or allow fewer (--allow-fewer)"
        )


def _chosen(tasks: list[Task], count: int, criteria: Criteria) -> list[Task]:
    """The diverse ones among the most difficult ones."""
    if not count:
        return []
    shuffled = list(tasks)
    Random(criteria.seed).shuffle(shuffled)
    hardest = sorted(shuffled, key=lambda task: -_ranked(task, criteria))[: round(count * criteria.harder)]
    return [hardest[number] for number in farthest_first([task.question for task in hardest], count)]


def _ranked(task: Task, criteria: Criteria) -> float:
    known = difficulty(task, criteria.pass_rates)
    return UNKNOWN if known is None else known
