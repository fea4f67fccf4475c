"""How difficult a task is: from a measured pass rate if there is one, else from what its data set says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from wfdsl.errors import UsageError
from wfdsl_rl.tasks.rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl_rl.tasks.task import Task

UNKNOWN = 0.5
"""The difficulty of tasks of which nothing is known, on the scale from 0 to 1."""

_MATH_LEVELS = 5
_MOST_CALCULATIONS = 16  # twice those of the longest usual solution of GSM8K, whose hardest are like MATH's level 3
_WORDS = {
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


def difficulty(task: Task, pass_rates: Mapping[str, float] | None = None) -> float | None:
    """From 0, which everybody solves, to 1; None if nothing is known."""
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


def _of_level(level: object) -> float | None:
    if isinstance(level, bool):
        return None
    if isinstance(level, int) and 1 <= level <= _MATH_LEVELS:
        return (level - 1) / (_MATH_LEVELS - 1)
    if isinstance(level, (int, float)):
        # A score about 0, as the gym's: an increasing map is enough, since tasks are ranked by it.
        return (1 + math.tanh(level / 2)) / 2
    if isinstance(level, str):
        return next((value for word, value in _WORDS.items() if level.lower().startswith(word)), None)
    return None


def read_pass_rates(path: str | Path) -> dict[str, float]:
    """Pass rates by task id: a JSON object, or rows with the columns `id` and `pass_rate`.

    Raises:
        UsageError: it is neither, or a rate is no number from 0 to 1.
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


def _rate(file: Path, task: str, rate: object) -> float:
    try:
        value = float(json.loads(rate) if isinstance(rate, str) else rate)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise UsageError(_no_rate(file, task, rate)) from error
    if not 0 <= value <= 1:
        raise UsageError(_no_rate(file, task, rate))
    return value


def _no_rate(file: Path, task: str, rate: object) -> str:
    return (
        f"{file}: the pass rate of {task} is {rate!r}: it is a number from 0 to 1. The file holds a JSON object of ids "
        "and rates, or rows with the columns id and pass_rate"
    )
