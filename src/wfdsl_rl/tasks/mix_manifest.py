"""What a training mix was made of, and how: enough to make the same one again, and to see what was left out."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from wfdsl import __version__
from wfdsl.errors import UsageError
from wfdsl_rl.tasks import diversity, similarity
from wfdsl_rl.tasks.difficulty import difficulty
from wfdsl_rl.tasks.selection import Criteria, Mix, domain
from wfdsl_rl.tasks.task_file import task_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wfdsl_rl.tasks.task import Task

_Counts: TypeAlias = dict[str, int]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Input(_Strict):
    """A file or data set that tasks came from."""

    name: str
    """As it was given."""
    tasks: int
    sha256: str
    """Of the tasks as our own lines, whatever form the file has."""


class DroppedTask(_Strict):
    """A task that was left out."""

    id: str
    reason: str
    because_of: str = ""
    """The id of the task that it is like."""


class MixManifest(_Strict):
    """A training mix, in numbers."""

    version: int = 1
    """Of this form."""
    wfdsl: str
    """The version that made the mix."""
    tasks: int
    sha256: str
    """Of the lines of the mix's file."""
    asked: _Counts
    """Tasks asked for, by domain."""
    available: _Counts
    """Tasks that could have been chosen, by domain."""
    chosen: _Counts
    """Tasks chosen, by domain."""
    sources: _Counts
    """Tasks chosen, by data set."""
    mean_difficulty: dict[str, float | None]
    """From 0 to 1, by domain, over tasks of which something is known."""
    seed: int
    harder: float
    pass_rates: int
    """How many measured pass rates were given."""
    pass_between: Annotated[tuple[float, float], Field(strict=False)]
    alike: float = similarity.ALIKE
    """The share of shingles from which two texts count as nearly the same."""
    contained: float = similarity.CONTAINED
    """The share of a quoted text's shingles from which it counts as contained in another."""
    dimensions: int = diversity.DIMENSIONS
    """Of the vectors by which tasks are set apart."""
    inputs: Annotated[tuple[Input, ...], Field(strict=False)]
    """Where the tasks come from."""
    against: Annotated[tuple[Input, ...], Field(strict=False)]
    """The test tasks that no chosen one is like."""
    left_out: _Counts
    """Tasks left out, by reason."""
    dropped: Annotated[tuple[DroppedTask, ...], Field(strict=False)]
    """Every one of them."""
    ids: Annotated[tuple[str, ...], Field(strict=False)]
    """The chosen tasks, in the order of the file."""


def manifest(
    mix: Mix,
    criteria: Criteria,
    *,
    inputs: Mapping[str, Sequence[Task]],
    against: Mapping[str, Sequence[Task]],
) -> MixManifest:
    """The manifest of a mix whose tasks came from `inputs`."""
    return MixManifest(
        wfdsl=__version__,
        tasks=len(mix.tasks),
        sha256=tasks_hash(mix.tasks),
        asked=dict(mix.counts),
        available=dict(mix.available),
        chosen=_counted(domain(task) for task in mix.tasks),
        sources=_counted(task.source for task in mix.tasks),
        mean_difficulty=_mean_difficulties(mix.tasks, criteria),
        seed=criteria.seed,
        harder=criteria.harder,
        pass_rates=len(criteria.pass_rates),
        pass_between=criteria.pass_between,
        inputs=tuple(_input(name, tasks) for name, tasks in inputs.items()),
        against=tuple(_input(name, tasks) for name, tasks in against.items()),
        left_out=_counted(one.reason for one in mix.dropped),
        dropped=tuple(DroppedTask(id=one.id, reason=one.reason, because_of=one.because_of) for one in mix.dropped),
        ids=tuple(task.id for task in mix.tasks),
    )


def manifest_path(mix_file: str) -> Path:
    """Where the manifest of a mix stands: beside it."""
    return Path(f"{mix_file}.manifest.json")


def save_manifest(path: Path, made: MixManifest) -> None:
    """Write a manifest.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.write_text(made.model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def tasks_hash(tasks: Iterable[Task]) -> str:
    """The SHA-256 of tasks as lines of a file."""
    digest = sha256()
    for task in tasks:
        digest.update(f"{task_line(task)}\n".encode())
    return digest.hexdigest()


def _input(name: str, tasks: Sequence[Task]) -> Input:
    return Input(name=name, tasks=len(tasks), sha256=tasks_hash(tasks))


def _counted(names: Iterable[str]) -> _Counts:
    return dict(sorted(Counter(names).items()))


def _mean_difficulties(tasks: Sequence[Task], criteria: Criteria) -> dict[str, float | None]:
    found: dict[str, list[float]] = {}
    for task in tasks:
        known = difficulty(task, criteria.pass_rates)
        found.setdefault(domain(task), []).extend([] if known is None else [known])
    return {name: round(sum(known) / len(known), 4) if known else None for name, known in sorted(found.items())}
