"""LiteLLM, chat completions of a server of OpenAI's shape."""

from __future__ import annotations

from functools import partial
from typing import Any

import litellm
from tests.clients.programs.cells import ADD, QUESTION, URL, add, message_of, try_cells

litellm.suppress_debug_info = True
ask = partial(litellm.completion, api_base=URL, api_key="none", messages=[{"role": "user", "content": QUESTION}])


def plain() -> dict[str, Any]:
    return {"text": ask(model="openai/two").choices[0].message.content}


def stream() -> dict[str, Any]:
    deltas = [chunk.choices[0].delta for chunk in ask(model="openai/two", stream=True)]
    pieces = [delta.content for delta in deltas if delta.content]
    progress = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    return {"text": "".join(pieces), "pieces": len(pieces), "progress": progress}


def usage() -> dict[str, Any]:
    whole = ask(model="openai/two").usage
    chunks = list(ask(model="openai/two", stream=True, stream_options={"include_usage": True}))
    last = [chunk.usage for chunk in chunks if getattr(chunk, "usage", None)]
    return {"tokens": [[each.prompt_tokens, each.completion_tokens] for each in (whole, *last)]}


def tools() -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    offered = [{"type": "function", "function": {"name": "add", "parameters": ADD}}]
    while True:
        message = ask(model="openai/tools", messages=messages, tools=offered).choices[0].message
        if not message.tool_calls:
            return {"text": message.content, "messages": len(messages)}
        messages.append(message)
        for call in message.tool_calls:
            result = add(call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def error() -> dict[str, Any]:
    return {
        "unknown": message_of(lambda: ask(model="openai/missing")),
        "failed": message_of(lambda: ask(model="openai/broken")),
        "streamed": message_of(lambda: list(ask(model="openai/broken", stream=True))),
    }


def cancel() -> dict[str, Any]:
    chunks = ask(model="openai/slow", stream=True)
    first = next(chunk.choices[0].delta.content for chunk in chunks if chunk.choices[0].delta.content)
    chunks.completion_stream.close()
    return {"first": first}


try_cells({each.__name__: each for each in (plain, stream, usage, tools, error, cancel)})
