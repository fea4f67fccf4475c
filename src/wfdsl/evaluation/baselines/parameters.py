"""Parameters of baselines: reading names such as `moa:aggregator=2`, and checking the values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.single_worker import workers_of
from wfdsl.language.diagnostics import Suggestions
from wfdsl.workers.pool import Pool

ParameterKind: TypeAlias = Literal["worker", "count", "seed", "share", "choice", "tasks", "file"]
"""`worker`: a name or an index. `count`: from 1. `seed`: from 0. `share`: from 0 to 1. `tasks`: what `load_tasks`
reads. `file`: a name or a file."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What may be set of a baseline."""

    name: str
    kind: ParameterKind
    default: Any
    """Of a worker its place among the pool's workers, counted from 0 and around: every pool has one there."""
    about: str
    options: tuple[str, ...] = ()
    """What a choice may be."""

    def usual(self, pool: Pool) -> Any:
        """The value where none is given."""
        if self.kind != "worker":
            return self.default
        workers = workers_of(pool)
        return workers[self.default % len(workers)]

    def read(self, text: str, pool: Pool, where: str) -> Any:
        """The value that a text stands for.

        Raises:
            UsageError: there is none.
        """
        if self.kind in ("tasks", "file"):
            return text
        if self.kind == "worker":
            return worker_called(text, pool, where)
        if self.kind == "choice" and text in self.options:
            return text
        number = _number(text, self.kind)
        if number is None:
            raise UsageError(f"--policy {where}: {self.name}={text}: it is {self._wanted()}")
        return number

    def shown(self) -> str:
        """The default, in words."""
        if self.kind == "worker":
            return ("the pool's first worker", "its second", "its third")[self.default]
        return "none" if self.default is None else str(self.default)

    def _wanted(self) -> str:
        wanted = {"count": "a number from 1", "seed": "a number from 0", "share": "a number from 0 to 1"}
        return wanted.get(self.kind) or f"one of {', '.join(self.options)}"


def worker_called(text: str, pool: Pool, where: str) -> int:
    """The index of the worker with this name or index.

    Raises:
        UsageError: the pool has no such worker.
    """
    found = pool.called(text)
    if found is None:
        hint = Suggestions().hint(text, pool.names)
        have = ", ".join(f"{index}={pool.entry(index).name}" for index in pool.indices)
        raise UsageError(f"--policy {where}: pool {pool.name!r} has no worker {text!r}: {hint or f'it has {have}'}")
    return found


def name_and_settings(name: str) -> tuple[str, dict[str, str]]:
    """`NAME:KEY=VALUE,KEY=VALUE` in its parts.

    Raises:
        UsageError: a part has no value, or a key comes twice.
    """
    head, colon, rest = name.partition(":")
    settings: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = (word.strip() for word in part.partition("="))
        if not key or not equals or not value:
            raise UsageError(f"--policy {name}: {part!r} sets nothing; write {head}:KEY=VALUE,KEY=VALUE")
        if key in settings:
            raise UsageError(f"--policy {name}: {key} is set twice")
        settings[key] = value
    return head, settings


def values_of(parameters: Iterable[Parameter], settings: Mapping[str, str], pool: Pool, where: str) -> dict[str, Any]:
    """The value of each parameter.

    Raises:
        UsageError: a setting is for no parameter, or cannot be read.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for key in settings:
        if key not in known:
            hint = Suggestions().hint(key, known)
            have = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"--policy {where}: there is no parameter {key!r}: {hint or have}")
    return {
        name: parameter.read(settings[name], pool, where) if name in settings else parameter.usual(pool)
        for name, parameter in known.items()
    }


def _number(text: str, kind: ParameterKind) -> float | None:
    if kind == "share":
        try:
            share = float(text)
        except ValueError:
            return None
        return share if math.isfinite(share) and 0 <= share <= 1 else None
    if kind not in ("count", "seed") or not text.isdecimal() or len(text) > 9:
        return None
    return int(text) if int(text) >= (kind == "count") else None
