"""A small pool of functions that note what they are asked, for tests of baselines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wfdsl.protocols import Call, Reply, Usage
from wfdsl.tasks.task import Task
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool

NAMES = ("ann", "bob", "cy")


@dataclass
class Asked:
    """One call as a worker saw it."""

    worker: str
    subtask: str
    """The last message."""
    seen: list[str]
    """The responses in view."""
    settings: dict[str, Any]
    path: tuple[int, ...]


@dataclass
class Staff:
    """Workers `ann`, `bob` and `cy`; each call costs ten tokens in and five out."""

    answer: Callable[[Asked, Call], str]
    calls: list[Asked] = field(default_factory=list)

    def pool(self, *, names: tuple[str, ...] = NAMES, indices: tuple[int, ...] | None = None) -> Pool:
        prices = Prices(input=1.0, output=1.0)
        entries = [WorkerEntry(name=name, provider="function", prices=prices, max_tokens=100) for name in names]
        pool = Pool.from_workers([(entry, self._worker(entry.name)) for entry in entries], name="toys")
        return pool if indices is None else pool.subset(indices)

    def _worker(self, name: str) -> Any:
        async def ask(call: Call) -> Reply:
            said = [message["content"] for message in call.messages if message["role"] == "assistant"]
            asked = Asked(name, call.messages[-1]["content"], said, dict(call.settings), call.path)
            self.calls.append(asked)
            return Reply(self.answer(asked, call), usage=Usage(10, 5))

        return ask

    @property
    def who(self) -> list[str]:
        return [call.worker for call in sorted(self.calls, key=lambda call: call.path)]


def named(asked: Asked, call: Call) -> str:
    """The worker's name and its step, as an answer."""
    return f"The answer is {asked.worker}{call.path[-1]}"


def staff(answer: Callable[[Asked, Call], str] = named) -> Staff:
    return Staff(answer)


def tasks(count: int, *, kinds: tuple[str, ...] = ("red", "blue")) -> list[Task]:
    """Questions about things of some kinds, in turns; the answer is the kind."""
    return [
        Task(id=f"t{at}", question=f"Name the {kinds[at % len(kinds)]} thing {at}.", gold=kinds[at % len(kinds)],
             kind="text", source="toy")
        for at in range(count)
    ]  # fmt: skip


def specialists(knows: dict[str, str]) -> Callable[[Asked, Call], str]:
    """Workers that answer rightly on questions that hold their word, and wrongly on all others."""

    def answer(asked: Asked, call: Call) -> str:
        word = knows.get(asked.worker, "nothing")
        question = call.messages[0]["content"]
        return f"The answer is {word if word in question else 'unknown'}"

    return answer
