"""A worker that answers from a script: for tests, and for trying a workflow without a model."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from wfdsl.protocols import Call, Reply, ToolCall, Usage, WorkerFailure
from wfdsl.workers.call_settings import in_time
from wfdsl.workers.endings import ended
from wfdsl.workers.entry import Options, WorkerEntry
from wfdsl.workers.registry import OpenWorkers

Line: TypeAlias = str | Reply | WorkerFailure
"""What one call gets: a text, a whole reply, or a failure that is raised."""
Script: TypeAlias = Sequence[Line] | Callable[[Call], Line | Awaitable[Line]]
"""The lines in the order of the calls, or a function of the call."""

_PIECE = re.compile(r"\s*\S+\s*")


class _Called(BaseModel):
    """A reply that calls a tool."""

    model_config = ConfigDict(extra="forbid", strict=True)
    tool: str
    arguments: dict[str, Any] = {}

    def as_reply(self) -> Reply:
        call = ToolCall("call", self.tool, json.dumps(self.arguments))
        return Reply("", "tool_calls", Usage(), "scripted", tool_calls=(call,))


class _Script(Options):
    replies: list[str | _Called] = Field(min_length=1)
    repeat: bool = False
    delay_s: float = Field(default=0.0, ge=0, allow_inf_nan=False)


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> ScriptedWorker:  # noqa: ARG001  (every builder takes them)
    """The worker of an entry whose provider is `scripted`; `options` holds `replies`, `repeat` and `delay_s`.

    Raises:
        UsageError: there are no replies, or one is neither a text nor the call of a tool.
    """
    script = entry.options_as(_Script)
    lines = [each if isinstance(each, str) else each.as_reply() for each in script.replies]
    return ScriptedWorker(lines, repeat=script.repeat, delay_s=script.delay_s, keep_calls=False)  # no one reads them


class ScriptedWorker:
    """Answers from a script, and keeps the calls that it got in `calls`, if `keep_calls` is set.

    It counts a token per word, waits `delay_s` seconds before it answers, and fails when the script is at its end.
    """

    def __init__(self, script: Script, *, repeat: bool = False, delay_s: float = 0.0, keep_calls: bool = True) -> None:
        self._script = script
        self._repeat = repeat
        self._delay_s = delay_s
        self.calls: list[Call] = []
        self._keep_calls = keep_calls
        self._count = 0

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: the script says so, or has no more lines.
        """
        async with in_time(call):
            if self._keep_calls:
                self.calls.append(call)
            self._count += 1
            line = await self._line(call, self._count - 1)
            await asyncio.sleep(self._delay_s)
        if isinstance(line, WorkerFailure):
            raise line
        if isinstance(line, str):
            asked = sum(len(message["content"].split()) for message in call.messages)
            line = Reply(line, ended(line, "stop"), Usage(asked, len(line.split())), "scripted")
        for piece in _PIECE.findall(line.text) if call.on_delta is not None else ():
            call.on_delta(piece)  # type: ignore[misc]  # there are pieces only if there is a sink
        return line

    async def _line(self, call: Call, index: int) -> Line:
        if callable(self._script):
            line = self._script(call)
            return await line if inspect.isawaitable(line) else line
        lines = len(self._script)
        if index >= lines and not self._repeat:
            return WorkerFailure(f"the script has {lines} lines, and this is call {index + 1}", retryable=False)
        return self._script[index % lines]
