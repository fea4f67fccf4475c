"""A chat server on loopback: one model whose completions are scripted, and workers that say what they were sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from werkzeug import Request, Response

from wfdsl import Pool, WorkerEntry
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.policy import Solution
from wfdsl.workers.entry import PoolSettings, Prices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_httpserver import HTTPServer

FREE = Prices(input=0.0, output=0.0)


def lists(model_id: Sequence[int], access_list: Sequence[Any], *, word: str = "task") -> str:
    """A completion with a subtask for each step."""
    subtasks = [f"{word} {step}" for step in range(len(model_id))]
    return (
        f"model_id = {list(model_id)}\nsubtasks = {json.dumps(subtasks)}\naccess_list = {json.dumps(list(access_list))}"
    )


EMPTY = "It is good.\nmodel_id = []\nsubtasks = []\naccess_list = []"


class Chat:
    """The server, with what it was asked."""

    def __init__(self, server: HTTPServer) -> None:
        self.script: list[str | int] = []
        """Completions to come; a number is the status of an error."""
        self.asked: list[list[dict[str, str]]] = []
        """The messages that the Conductor's model was sent."""
        self.called: list[tuple[str, list[dict[str, str]]]] = []
        """Worker and messages of each call of a worker."""
        self.bodies: list[dict[str, Any]] = []
        """Whole requests to the Conductor's model."""
        self.keys: set[str] = set()
        """What was sent as the key."""
        self.finish = "stop"
        self.answer: Callable[[str, list[dict[str, str]]], str | int] = lambda name, messages: (
            f"{name}: {messages[-1]['content'].splitlines()[-1]}"
        )
        self.url = server.url_for("/v1")
        server.expect_request("/v1/chat/completions").respond_with_handler(self._respond)

    def _respond(self, request: Request) -> Response:
        body = json.loads(request.get_data())
        name, messages = body["model"], body["messages"]
        self.keys.add(request.headers.get("Authorization", ""))
        if name == "conductor":
            self.asked.append(messages)
            self.bodies.append(body)
            return _response(self.script.pop(0), self.finish, streamed=bool(body.get("stream")))
        self.called.append((name, messages))
        return _response(self.answer(name, messages), "stop", streamed=bool(body.get("stream")))

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


def _response(text: str | int, finish: str, *, streamed: bool = False) -> Response:
    if isinstance(text, int):
        return Response(json.dumps({"error": {"message": "no"}}), status=text, content_type="application/json")
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "delta" if streamed else "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    kind = "chat.completion.chunk" if streamed else "chat.completion"
    reply = json.dumps({"id": "1", "object": kind, "model": "m", "choices": [choice], "usage": usage})
    if streamed:
        return Response(f"data: {reply}\n\ndata: [DONE]\n\n", content_type="text/event-stream")
    return Response(reply, content_type="application/json")
