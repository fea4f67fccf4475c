"""A chat server on loopback: one model whose completions are scripted, and workers that say what they were sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.interpreter.chat_server import ChatServer, Refused
from wfdsl import Pool, WorkerEntry
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.policy import Solution
from wfdsl.workers.entry import PoolSettings, Prices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FREE = Prices(input=0.0, output=0.0)


def lists(model_id: Sequence[int], access_list: Sequence[Any], *, word: str = "task") -> str:
    """A completion with a subtask for each step."""
    subtasks = [f"{word} {step}" for step in range(len(model_id))]
    return (
        f"model_id = {list(model_id)}\nsubtasks = {json.dumps(subtasks)}\naccess_list = {json.dumps(list(access_list))}"
    )


EMPTY = "It is good.\nmodel_id = []\nsubtasks = []\naccess_list = []"


class Chat(ChatServer):
    """The server, with what it was asked: in `asked` are the messages that the Conductor's model was sent."""

    def __init__(self) -> None:
        self.script: list[str | int] = []
        """Completions to come; a number is the status of an error."""
        self.called: list[tuple[str, list[dict[str, str]]]] = []
        """Worker and messages of each call of a worker."""
        self.bodies: list[dict[str, Any]] = []
        """Whole requests to the Conductor's model."""
        self.says: Callable[[str, list[dict[str, str]]], str | int] = lambda name, messages: (
            f"{name}: {messages[-1]['content'].splitlines()[-1]}"
        )
        """What a worker answers."""
        super().__init__()

    def answer(self, body: dict[str, Any]) -> str:
        name, messages = body["model"], body["messages"]
        if name == "conductor":
            self.asked.append(messages)
            self.bodies.append(body)
            said = self.script.pop(0)
        else:
            self.called.append((name, messages))
            said = self.says(name, messages)
        if isinstance(said, int):
            raise Refused(said)
        return said

    @property
    def workers(self) -> list[str]:
        """The workers that were called, in order."""
        return [name for name, _ in self.called]

    def entry(self, name: str, **more: Any) -> WorkerEntry:
        """A worker of the server."""
        settings = {"provider": "openai", "model": name, "base_url": self.url, "prices": FREE, "retries": 0}
        return WorkerEntry(**{"name": name, **settings, **more})

    def pool(self, count: int = 3, *, node: dict[str, Any] | None = None, settings: PoolSettings | None = None) -> Pool:
        """Workers w0, w1 and so on; with `node`, a Conductor with these options after them."""
        entries = [self.entry(f"w{index}", tags=["odd"] if index % 2 else ["even"]) for index in range(count)]
        if node is not None:
            options = {"provider": "openai", **node}
            entries.append(self.entry("boss", provider="conductor", model="conductor", options=options))
        return Pool(entries, settings=settings)

    def conductor(self, *script: str | int, **settings: Any) -> Conductor:
        """A Conductor whose model gives these completions."""
        self.script += script
        return Conductor(self.entry("conductor"), **settings)

    async def solve(
        self, *script: str | int, pool: Pool | None = None, run: dict[str, Any] | None = None, **settings: Any
    ) -> Solution:
        """What such a Conductor answers to "Why?", with these options of the run."""
        return await self.conductor(*script, **settings).solve("Why?", pool or self.pool(), **(run or {}))
