"""langchain-openai, ChatOpenAI."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from tests.clients.programs.cells import QUESTION, URL, errors_told, try_cells


def model(name: str) -> Any:
    return ChatOpenAI(model=name, base_url=URL, api_key="none")


@tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


def plain() -> dict[str, Any]:
    return {"text": model("two").invoke(QUESTION).content}


def stream() -> dict[str, Any]:
    chunks = list(model("two").stream(QUESTION))
    pieces = [chunk.content for chunk in chunks if chunk.content]
    progress = "".join(chunk.additional_kwargs.get("reasoning_content", "") for chunk in chunks)
    return {"text": "".join(pieces), "pieces": len(pieces), "progress": progress}


def usage() -> dict[str, Any]:
    whole = model("two").invoke(QUESTION).usage_metadata
    chunks = ChatOpenAI(model="two", base_url=URL, api_key="none", stream_usage=True).stream(QUESTION)
    last = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    return {"tokens": [[each["input_tokens"], each["output_tokens"]] for each in (whole, *last)]}


def tools() -> dict[str, Any]:
    messages: list[Any] = [HumanMessage(QUESTION)]
    while True:
        message = model("tools").bind_tools([add]).invoke(messages)
        if not message.tool_calls:
            return {"text": message.content, "messages": len(messages)}
        messages.append(message)
        messages += [ToolMessage(add.invoke(call["args"]), tool_call_id=call["id"]) for call in message.tool_calls]


def error() -> dict[str, Any]:
    return errors_told(lambda name: model(name).invoke(QUESTION), lambda name: list(model(name).stream(QUESTION)))


def cancel() -> dict[str, Any]:
    chunks = model("slow").stream(QUESTION)
    first = next(chunk.content for chunk in chunks if chunk.content)
    chunks.close()
    return {"first": first}


try_cells(plain, stream, usage, tools, error, cancel)
