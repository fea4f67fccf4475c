"""Workers that are functions: `async def f(messages: list[dict]) -> str`."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from wfdsl.errors import UsageError, WfdslError
from wfdsl.protocols import Call, Reply, Worker, WorkerFailure
from wfdsl.settings import build_model
from wfdsl.workers.call_settings import in_time, require_no_tools
from wfdsl.workers.endings import ended
from wfdsl.workers.entry import Prices, WorkerEntry

ChatFunction: TypeAlias = Callable[[list[dict[str, Any]]], Awaitable[str]]


class FunctionWorker:
    """Asks a function.

    What the function raises ends the call, as what a server does would: a run never loses to it what it has paid for.
    To have a call tried again, the function raises a retryable `WorkerFailure`.
    """

    def __init__(self, function: ChatFunction) -> None:
        self._function = function

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: the function raised it or something else, or does not return a text.
            UsageError: the call brings a grammar, which a function of messages cannot keep to.
        """
        if call.settings.get("grammar") is not None:
            raise UsageError(f"{self!r} takes no grammar: leave it out, or give a worker that takes whole calls")
        require_no_tools(call, repr(self))
        try:
            async with in_time(call):
                text = await self._function([dict(message) for message in call.messages])
        except WfdslError:
            raise
        except Exception as error:
            what = traceback.format_exception_only(error)[-1].strip()  # also of an error that cannot be written
            raise WorkerFailure(f"{self!r} raised {what}", retryable=False) from error
        if not isinstance(text, str):
            raise WorkerFailure(f"{self!r} returned {type(text).__name__}, not a text", retryable=False)
        if call.on_delta is not None and text:
            call.on_delta(text)
        return Reply(text, ended(text, "stop"))

    def __repr__(self) -> str:
        return f"FunctionWorker({_name(self._function)})"


def function_members(
    functions: Sequence[ChatFunction], names: Sequence[str] | None, descriptions: Sequence[str] | None
) -> list[tuple[WorkerEntry, Worker]]:
    """An entry and a worker for each function.

    Raises:
        UsageError: a function is not async, or there are not as many names or descriptions as functions.
    """
    for each in functions:
        what, call = _name(each), type(each).__call__
        if inspect.isasyncgenfunction(each) or inspect.isasyncgenfunction(call):
            raise UsageError(f"{what} is a generator; a worker function returns its whole text, without `yield`")
        if not inspect.iscoroutinefunction(each) and not inspect.iscoroutinefunction(call):
            raise UsageError(f"a worker function must be async: write `async def {what}(messages)`")
    named = names if names is not None else _distinct([_name(function) for function in functions])
    described = descriptions if descriptions is not None else [""] * len(functions)
    for what, given in (("names", named), ("descriptions", described)):
        if len(given) != len(functions):
            raise UsageError(f"{what} must be as many as the functions: {len(functions)} (got {len(given)})")
    same = {"provider": "function", "prices": Prices(input=0.0, output=0.0), "retries": 0}
    about = ({**same, "name": name, "description": said} for name, said in zip(named, described, strict=True))
    entries = [build_model(WorkerEntry, fields, f"worker {fields['name']!r}") for fields in about]
    return list(zip(entries, map(FunctionWorker, functions), strict=True))


def _name(function: ChatFunction) -> str:
    return str(getattr(function, "__name__", type(function).__name__)).strip("<>")


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number after each that occurred before."""
    return [
        name if name not in names[:index] else f"{name}_{names[:index].count(name) + 1}"
        for index, name in enumerate(names)
    ]
