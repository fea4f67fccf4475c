"""The gym as a pool, as tasks and as a Conductor: `--pool gym/seven`, `--tasks gym/seven@train`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Generic, TypeVar

from wfdsl.errors import UsageError
from wfdsl.tasks.task import Kind as GradedKind
from wfdsl.tasks.task import Task
from wfdsl.workers.entry import SIMULATED, PoolSettings, Prices, WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym.questions import KINDS, SPLITS, Item, Kind, Split, draw
from wfdsl_rl.gym.workers import PROVIDER
from wfdsl_rl.gym.world import WORKERS, Worker

T = TypeVar("T")
NAME: Final = "gym/seven"
_GRADED: Final[dict[Kind, GradedKind]] = {"sums": "math", "dates": "text", "words": "text", "animals": "choice"}


class Named(Generic[T]):
    """What an entry point `gym` names: called with a name of the gym, it gives what is known under it."""

    def __init__(self, known: Mapping[str, Callable[[], T]]) -> None:
        self._known = known

    def __call__(self, name: str) -> T:
        """What the name stands for.

        Raises:
            UsageError: there is no such name.
        """
        _require(name, self._known)
        return self._known[name]()

    def names(self) -> tuple[str, ...]:
        """The names that can be asked for."""
        return tuple(self._known)


def _pool() -> Pool:
    description = "Seven simulated workers: a generalist, four specialists, one that checks and one that plans."
    settings = PoolSettings(name=NAME, description=description, conductor=NAME)
    return Pool([_entry(worker) for worker in WORKERS], settings=settings)


pools: Final = Named({NAME: _pool})
conductors: Final = Named({NAME: lambda: Path(__file__).parent / "seven"})
"""The folder of the Conductor that comes with the package: a GGUF file, which llama.cpp runs without torch.
`python -m wfdsl_rl.gym.headline DIR --stages` trains it."""


def tasks(name: str, count: int, seed: int, *, split: str = "", kinds: Sequence[str] | None = None) -> list[Task]:
    """What the entry point `gym` of `wfdsl.tasks` names: the first `count` tasks of a series, kinds in turns.

    Raises:
        UsageError: there is no such name, split or kind.
    """
    _require(name, (NAME,))
    chosen = split or "test"
    if chosen not in SPLITS:
        raise UsageError(f"the gym has no split {split!r}; it has {', '.join(SPLITS)}")
    unknown = [kind for kind in kinds or () if kind not in KINDS]
    if unknown:
        raise UsageError(f"the gym has no kind {unknown[0]!r}; it has {', '.join(KINDS)}")
    wanted = [kind for kind in KINDS if not kinds or kind in kinds]
    found = [_tasks(kind, chosen, seed, -(-count // len(wanted))) for kind in wanted]
    return [task for turn in zip(*found, strict=True) for task in turn][:count]


def _tasks(kind: Kind, split: Split, seed: int, count: int) -> list[Task]:
    items = islice(draw(kind, split, seed), count)
    return [_task(item, f"{split}-{seed}-{kind}-{number}", split) for number, item in enumerate(items)]


def _task(item: Item, name: str, split: str) -> Task:
    return Task(
        id=name,
        question=item.text,
        gold=item.gold,
        kind=_GRADED[item.kind],
        source=NAME,
        split=split,
        choices=item.choices,
        metadata={"domain": item.kind, "simulated": True},
    )


def _entry(worker: Worker) -> WorkerEntry:
    return WorkerEntry(
        name=worker.name,
        provider=PROVIDER,
        model=worker.name,
        description=worker.name,
        tags=(SIMULATED,),
        prices=Prices(input=worker.usd / 4, output=worker.usd, source="made up, for simulated workers"),
        retries=0,
    )


def _require(name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise UsageError(f"the gym has no {name!r}; it has {', '.join(known)}")
