"""openai-python, chat completions."""

from __future__ import annotations

from typing import Any

from openai import OpenAI
from tests.clients.programs.cells import ADD, QUESTION, URL, add, message_of, try_cells

client = OpenAI(base_url=URL, api_key="none")
ASK: Any = [{"role": "user", "content": QUESTION}]
TOOLS: Any = [{"type": "function", "function": {"name": "add", "parameters": ADD}}]


def plain() -> dict[str, Any]:
    return {"text": client.chat.completions.create(model="two", messages=ASK).choices[0].message.content}


def stream() -> dict[str, Any]:
    deltas = [
        chunk.choices[0].delta for chunk in client.chat.completions.create(model="two", messages=ASK, stream=True)
    ]
    pieces = [delta.content for delta in deltas if delta.content]
    progress = "".join(getattr(delta, "reasoning_content", "") for delta in deltas)
    return {"text": "".join(pieces), "pieces": len(pieces), "progress": progress}


def usage() -> dict[str, Any]:
    whole = client.chat.completions.create(model="two", messages=ASK).usage
    options: Any = {"include_usage": True}
    chunks = client.chat.completions.create(model="two", messages=ASK, stream=True, stream_options=options)
    last = [chunk.usage for chunk in chunks if chunk.usage]
    return {"tokens": [[each.prompt_tokens, each.completion_tokens] for each in (whole, *last) if each]}


def tools() -> dict[str, Any]:
    messages = list(ASK)
    while True:
        message: Any = client.chat.completions.create(model="tools", messages=messages, tools=TOOLS).choices[0].message
        if not message.tool_calls:
            return {"text": message.content, "messages": len(messages)}
        messages.append(message)
        for call in message.tool_calls:
            result = add(call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def error() -> dict[str, Any]:
    def streamed() -> None:
        list(client.chat.completions.create(model="broken", messages=ASK, stream=True))

    return {
        "unknown": message_of(lambda: client.chat.completions.create(model="missing", messages=ASK)),
        "failed": message_of(lambda: client.chat.completions.create(model="broken", messages=ASK)),
        "streamed": message_of(streamed),
    }


def cancel() -> dict[str, Any]:
    with client.chat.completions.create(model="slow", messages=ASK, stream=True) as chunks:
        first = next(chunk.choices[0].delta.content for chunk in chunks if chunk.choices[0].delta.content)
    return {"first": first}


try_cells({each.__name__: each for each in (plain, stream, usage, tools, error, cancel)})
