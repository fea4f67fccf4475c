"""Selection of a training mix: difficult and diverse tasks of each domain, without near duplicates or test tasks.

Source: arXiv 2512.04388, training data: 960 problems of four domains, chosen for difficulty and diversity. It does not
say how; this way is ours. Every step is deterministic, and the order of the input does not matter.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeAlias

from wfdsl._version import __version__
from wfdsl.errors import UsageError
from wfdsl.tasks import similarity
from wfdsl.tasks.rows import read_rows
from wfdsl.tasks.task import Task, task_line

PAPER_COUNT = 960
"""The size of the paper's training mix."""
HARDER = 3.0
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

Reason: TypeAlias = Literal["near-duplicate", "contaminated", "pass-rate"]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A task that was left out."""

    id: str
    reason: Reason
    because_of: str = ""
    """The id of the task that it is like."""


@dataclass(frozen=True, slots=True)
class Mix:
    """The chosen tasks, and how they were chosen."""

    tasks: tuple[Task, ...]
    counts: Mapping[str, int]
    """Tasks asked for, by domain."""
    available: Mapping[str, int]
    """Tasks that could have been chosen, by domain."""
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """What decides the choice."""

    seed: int = 0
    """Orders tasks of equal difficulty, and the mix."""
    harder: float = HARDER
    """How many of the most difficult tasks are considered for each one chosen; 1 takes the most difficult."""
    pass_rates: Mapping[str, float] = field(default_factory=dict)
    """Measured pass rates by task id; they take precedence over what data sets say."""
    pass_between: tuple[float, float] = (0.0, 1.0)
    """Tasks whose pass rate is outside are left out."""
    fewer_allowed: bool = False
    """Whether a domain may have fewer tasks than asked for."""

    def check(self) -> None:
        """Refuse values out of range. Raises: UsageError."""
        low, high = self.pass_between
        if self.harder < 1:
            raise UsageError(f"harder must be at least 1 (got {self.harder})")
        if not 0 <= low <= high <= 1:
            raise UsageError(f"pass rates must be between 0 and 1, the lower bound first (got {low} and {high})")


def domain(task: Task) -> str:
    """What a mix is balanced over: the domain that the data set names, else the kind."""
    return str(task.metadata.get("domain") or task.kind)


def difficulty(task: Task, pass_rates: Mapping[str, float] | None = None) -> float | None:
    """From 0 (every worker solves it) to 1; None if nothing is known.

    A measured pass rate counts first, then what the data set says.
    """
    if pass_rates and task.id in pass_rates:
        return 1 - pass_rates[task.id]
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


def read_pass_rates(path: str | Path) -> dict[str, float]:
    """Pass rates by task id: a JSON object, or rows with the columns `id` and `pass_rate`.

    Raises:
        UsageError: it has another form, or a rate is not a number from 0 to 1.
    """
    file = Path(path)
    if not file.exists():
        raise UsageError(f"{file}: there is no such file of pass rates")
    rates: dict[str, object] = {}
    for row in read_rows(file):
        if "id" in row.values and "pass_rate" in row.values:
            rates[str(row.values["id"])] = row.values["pass_rate"]
        else:
            rates |= row.values
    return {task: _rate(file, task, rate) for task, rate in rates.items()}


def select(
    tasks: Sequence[Task],
    counts: Mapping[str, int] | int = PAPER_COUNT,
    *,
    against: Sequence[Task] = (),
    criteria: Criteria | None = None,
) -> Mix:
    """Choose a training mix: `counts` by domain, or a number that is shared equally among the domains.

    Raises:
        UsageError: a domain has too few tasks, two tasks have one id, or a criterion is out of range.
    """
    criteria = criteria or Criteria()
    criteria.check()
    ordered = _in_one_order(tasks)
    kept, dropped = _without_dropped(ordered, against, criteria)
    by_domain: defaultdict[str, list[Task]] = defaultdict(list)
    for task in kept:
        by_domain[domain(task)].append(task)
    asked = _shares(counts, sorted({domain(task) for task in ordered}))
    available = {name: len(by_domain[name]) for name in asked}
    if not criteria.fewer_allowed:
        _refuse_shortage(asked, available)
    chosen = [task for name, count in asked.items() for task in _chosen(by_domain[name], count, criteria)]
    Random(criteria.seed).shuffle(chosen)
    return Mix(tuple(chosen), asked, available, tuple(dropped))


def manifest(
    mix: Mix, criteria: Criteria, *, inputs: Mapping[str, Sequence[Task]], against: Mapping[str, Sequence[Task]]
) -> dict[str, Any]:
    """The JSON manifest of a mix: what makes the same one again, and what was left out.

    Hashes are of tasks as lines of our own files, whatever format the input has. `mean_difficulty` is over tasks of
    known difficulty; `alike`, `contained` and `dimensions` are the constants of `wfdsl.tasks.similarity`.
    """
    return {
        "version": 1,
        "wfdsl": __version__,
        "tasks": len(mix.tasks),
        "sha256": tasks_hash(mix.tasks),
        "asked": dict(mix.counts),
        "available": dict(mix.available),
        "chosen": _counted(domain(task) for task in mix.tasks),
        "sources": _counted(task.source for task in mix.tasks),
        "mean_difficulty": _mean_difficulties(mix.tasks, criteria),
        "seed": criteria.seed,
        "harder": criteria.harder,
        "pass_rates": len(criteria.pass_rates),
        "pass_between": list(criteria.pass_between),
        "alike": similarity.ALIKE,
        "contained": similarity.CONTAINED,
        "dimensions": similarity.DIMENSIONS,
        "inputs": [_input(name, tasks) for name, tasks in inputs.items()],
        "against": [_input(name, tasks) for name, tasks in against.items()],
        "left_out": _counted(one.reason for one in mix.dropped),
        "dropped": [asdict(one) for one in mix.dropped],
        "ids": [task.id for task in mix.tasks],
    }


def save_manifest(mix_file: str, made: Mapping[str, Any]) -> Path:
    """Write a manifest next to the file of its mix; its path.

    Raises:
        UsageError: it cannot be written.
    """
    path = Path(f"{mix_file}.manifest.json")
    try:
        path.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def tasks_hash(tasks: Iterable[Task]) -> str:
    """The SHA-256 of tasks as lines of a file."""
    digest = sha256()
    for task in tasks:
        digest.update(f"{task_line(task)}\n".encode())
    return digest.hexdigest()


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


def _rate(file: Path, task: str, rate: object) -> float:
    try:
        value = float(json.loads(rate) if isinstance(rate, str) else rate)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = math.nan
    if not 0 <= value <= 1:
        raise UsageError(
            f"{file}: the pass rate of {task} must be a number from 0 to 1 (got {rate!r}). The file holds a JSON "
            "object of ids and rates, or rows with the columns id and pass_rate"
        )
    return value


def _in_one_order(tasks: Sequence[Task]) -> list[Task]:
    repeated = [name for name, count in Counter(task.id for task in tasks).items() if count > 1]
    if repeated:
        raise UsageError(f"{len(repeated)} ids occur twice, the first is {repeated[0]}: is a file named twice?")
    return sorted(tasks, key=lambda task: task.id)


def _without_dropped(
    tasks: list[Task], against: Sequence[Task], criteria: Criteria
) -> tuple[list[Task], list[Dropped]]:
    dropped = [Dropped(task.id, "pass-rate") for task in tasks if _outside(task, criteria)]
    tested = similarity.overlaps([task.question for task in tasks], [task.question for task in against])
    dropped += [Dropped(tasks[here].id, "contaminated", against[there].id) for here, there in tested.items()]
    gone = {one.id for one in dropped}
    left = [task for task in tasks if task.id not in gone]
    same = similarity.near_duplicates([task.question for task in left])
    dropped += [Dropped(left[later].id, "near-duplicate", left[first].id) for later, first in same.items()]
    return [task for number, task in enumerate(left) if number not in same], dropped


def _outside(task: Task, criteria: Criteria) -> bool:
    low, high = criteria.pass_between
    rate = criteria.pass_rates.get(task.id, task.metadata.get("pass_rate"))
    return isinstance(rate, (int, float)) and not low <= rate <= high


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


def _chosen(tasks: list[Task], count: int, criteria: Criteria) -> list[Task]:
    """The diverse ones among the most difficult ones."""
    if not count:
        return []
    shuffled = list(tasks)
    Random(criteria.seed).shuffle(shuffled)
    ranked = sorted(shuffled, key=lambda task: -_ranked(task, criteria))[: round(count * criteria.harder)]
    return [ranked[number] for number in similarity.farthest_first([task.question for task in ranked], count)]


def _ranked(task: Task, criteria: Criteria) -> float:
    known = difficulty(task, criteria.pass_rates)
    return UNKNOWN if known is None else known


def _input(name: str, tasks: Sequence[Task]) -> dict[str, Any]:
    return {"name": name, "tasks": len(tasks), "sha256": tasks_hash(tasks)}


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _mean_difficulties(tasks: Sequence[Task], criteria: Criteria) -> dict[str, float | None]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for task in tasks:
        known = difficulty(task, criteria.pass_rates)
        found[domain(task)] += [] if known is None else [known]
    return {name: round(sum(known) / len(known), 4) if known else None for name, known in sorted(found.items())}
