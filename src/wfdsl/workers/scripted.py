"""A worker that answers from a script: for tests, and for trying a workflow without a model."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Reply, Usage, WorkerFailure
from wfdsl.workers.call_settings import in_time
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.registry import OpenWorkers

Line: TypeAlias = str | Reply | WorkerFailure
"""What one call gets: a text, a whole reply, or a failure that is raised."""
Script: TypeAlias = Sequence[Line] | Callable[[Call], Line | Awaitable[Line]]
"""The lines in the order of the calls, or a function of the call."""

_PIECE = re.compile(r"\s*\S+\s*")


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> ScriptedWorker:  # noqa: ARG001  (every builder takes them)
    """The worker of an entry whose provider is `scripted`; `options` holds `replies` and `repeat`."""
    replies = entry.options.get("replies")
    if not isinstance(replies, list) or not all(isinstance(reply, str) for reply in replies) or not replies:
        raise UsageError(f'worker "{entry.name}" needs a script: set options = {{ replies = ["...", "..."] }}')
    repeat = bool(entry.options.get("repeat", False))
    return ScriptedWorker(replies, repeat=repeat)


class ScriptedWorker:
    """Answers from a script, and keeps the calls that it got in `calls`.

    It counts a token per word, waits `delay_s` seconds before it answers, and fails when the script is at its end.
    """

    def __init__(self, script: Script, *, repeat: bool = False, delay_s: float = 0.0) -> None:
        self._script = script
        self._repeat = repeat
        self._delay_s = delay_s
        self.calls: list[Call] = []

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: the script says so, or has no more lines.
        """
        async with in_time(call):
            self.calls.append(call)
            line = await self._line(call, len(self.calls) - 1)
            await asyncio.sleep(self._delay_s)
        if isinstance(line, WorkerFailure):
            raise line
        reply = line if isinstance(line, Reply) else _reply(call, line)
        for piece in _PIECE.findall(reply.text) if call.on_delta is not None else ():
            call.on_delta(piece)  # type: ignore[misc]  # there are pieces only if there is a sink
        return reply

    async def _line(self, call: Call, index: int) -> Line:
        if callable(self._script):
            line = self._script(call)
            return await line if inspect.isawaitable(line) else line
        lines = len(self._script)
        if index >= lines and not self._repeat:
            return WorkerFailure(f"the script has {lines} lines, and this is call {index + 1}", retryable=False)
        return self._script[index % lines]


def _reply(call: Call, text: str) -> Reply:
    asked = sum(len(message["content"].split()) for message in call.messages)
    return Reply(text, "stop" if text.strip() else "empty", Usage(asked, len(text.split())), "scripted")
