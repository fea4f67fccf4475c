"""What both programs of openai-agents do."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from tests.clients.programs.cells import QUESTION, URL, errors_told, try_cells

set_tracing_disabled(True)


@function_tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


def try_agents(*, responses: bool) -> None:
    """Try all cells with one of the two APIs."""
    shape = OpenAIResponsesModel if responses else OpenAIChatCompletionsModel

    def agent(model: str, **more: Any) -> Any:
        client = AsyncOpenAI(base_url=URL, api_key="none")
        settings = ModelSettings(include_usage=True)
        used = shape(model=model, openai_client=client)
        return Agent(name="Ada", instructions="Answer.", model=used, model_settings=settings, **more)

    def run(model: str, **more: Any) -> Any:
        return asyncio.run(Runner.run(agent(model, **more), QUESTION))

    async def streamed(model: str) -> Any:
        result = Runner.run_streamed(agent(model), QUESTION)
        events = [event async for event in result.stream_events()]
        return result, [event.data for event in events if event.type == "raw_response_event"]

    def plain() -> dict[str, Any]:
        return {"text": run("two").final_output}

    def stream() -> dict[str, Any]:
        result, events = asyncio.run(streamed("two"))
        pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
        thoughts = [event.delta for event in events if "reasoning" in event.type and event.type.endswith(".delta")]
        return {"text": result.final_output, "pieces": len(pieces), "progress": "".join(thoughts)}

    def usage() -> dict[str, Any]:
        results = [run("two"), asyncio.run(streamed("two"))[0]]
        used = [result.context_wrapper.usage for result in results]
        return {"tokens": [[each.input_tokens, each.output_tokens] for each in used]}

    def tools() -> dict[str, Any]:
        result = run("tools", tools=[add])
        return {"text": result.final_output, "messages": len(result.to_input_list())}

    def error() -> dict[str, Any]:
        return errors_told(run, lambda name: asyncio.run(streamed(name)))

    async def left() -> str:
        result = Runner.run_streamed(agent("slow"), QUESTION)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                result.cancel()
                return str(event.data.delta)
        return ""

    def cancel() -> dict[str, Any]:
        return {"first": asyncio.run(left())}

    try_cells(plain, stream, usage, tools, error, cancel)
