"""inspect-ai as a client, with its provider for servers of OpenAI's shape."""

from __future__ import annotations

import asyncio
from typing import Any

from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model
from inspect_ai.tool import tool
from tests.clients.programs.cells import QUESTION, URL, errors_told, try_cells


@tool
def add() -> Any:
    async def execute(a: int, b: int) -> str:
        """Add two numbers.

        Args:
            a: The first.
            b: The second.
        """
        return str(a + b)

    return execute


def model(name: str, **more: Any) -> Any:
    return get_model(f"openai-api/wfdsl/{name}", base_url=URL, api_key="none", memoize=False, **more)


def ask(name: str, **more: Any) -> Any:
    return asyncio.run(model(name, **more).generate(QUESTION, config=GenerateConfig(max_retries=0)))


def plain() -> dict[str, Any]:
    return {"text": ask("two").completion}


async def streamed(name: str, hear: Any) -> Any:
    return await model(name).generate(QUESTION, config=GenerateConfig(max_retries=0), on_stream=hear)


def stream() -> dict[str, Any]:
    events: list[Any] = []

    async def hear(event: Any) -> None:
        events.append(event)

    output = asyncio.run(streamed("two", hear))
    pieces = [event.text for event in events if event.type == "text"]
    progress = "".join(event.reasoning for event in events if event.type == "reasoning")
    return {"text": output.completion, "pieces": len(pieces), "progress": progress}


def usage() -> dict[str, Any]:
    used = [ask("two").usage, ask("two", stream=True).usage]
    return {"tokens": [[each.input_tokens, each.output_tokens] for each in used]}


def tools() -> dict[str, Any]:
    messages, output = asyncio.run(model("tools").generate_loop([ChatMessageUser(content=QUESTION)], tools=[add()]))
    return {"text": output.completion, "messages": len(messages)}


def error() -> dict[str, Any]:
    return errors_told(ask, lambda name: ask(name, stream=True))


async def left() -> str:
    begun: asyncio.Queue[str] = asyncio.Queue()

    async def hear(event: Any) -> None:
        if event.type == "text":
            await begun.put(event.text)

    task = asyncio.create_task(streamed("slow", hear))
    first = await begun.get()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return first


def cancel() -> dict[str, Any]:
    return {"first": asyncio.run(left())}


try_cells(plain, stream, usage, tools, error, cancel)
