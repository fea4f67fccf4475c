"""LiteLLM, the Responses API of a server of OpenAI's shape."""

from __future__ import annotations

from functools import partial
from typing import Any

import litellm
from tests.clients.programs.cells import ADD, QUESTION, URL, add, message_of, try_cells

litellm.suppress_debug_info = True
STREAMS: dict[str, Any] = {"litellm_provider": "openai", "mode": "responses", "supports_native_streaming": True}
# It asks models that it does not know without a stream, and cuts the whole answer into pieces.
litellm.register_model({f"openai/{model}": STREAMS for model in ("two", "slow", "broken")})
REMARK = "once its registry has the model"
ask = partial(litellm.responses, api_base=URL, api_key="none")


def plain() -> dict[str, Any]:
    return {"text": ask(model="openai/two", input=QUESTION).output_text}


def stream() -> dict[str, Any]:
    heard = list(ask(model="openai/two", input=QUESTION, stream=True))
    pieces = [event.delta for event in heard if event.type == "response.output_text.delta"]
    progress = "".join(e.delta for e in heard if "reasoning" in e.type and e.type.endswith(".delta"))
    return {"text": "".join(pieces), "pieces": len(pieces), "progress": progress, "remark": REMARK}


def usage() -> dict[str, Any]:
    last = list(ask(model="openai/two", input=QUESTION, stream=True))[-1].response
    used = [each.usage for each in (ask(model="openai/two", input=QUESTION), last)]
    return {"tokens": [[each.input_tokens, each.output_tokens] for each in used]}


def tools() -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    offered = [{"type": "function", "name": "add", "parameters": ADD}]
    while True:
        reply = ask(model="openai/tools", input=messages, tools=offered)
        messages += [item.model_dump() for item in reply.output]
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return {"text": reply.output_text, "messages": len(messages)}
        messages += [
            {"type": "function_call_output", "call_id": call.call_id, "output": add(call.arguments)} for call in calls
        ]


def error() -> dict[str, Any]:
    def streamed() -> None:
        for event in ask(model="openai/broken", input=QUESTION, stream=True):
            if event.type == "response.failed":
                raise RuntimeError(event.response.error)

    return {
        "unknown": message_of(lambda: ask(model="openai/missing", input=QUESTION)),
        "failed": message_of(lambda: ask(model="openai/broken", input=QUESTION)),
        "streamed": message_of(streamed),
    }


def cancel() -> dict[str, Any]:
    events = ask(model="openai/slow", input=QUESTION, stream=True)
    first = next(event.delta for event in events if event.type == "response.output_text.delta")
    events.response.close()
    return {"first": first, "remark": REMARK}


try_cells({each.__name__: each for each in (plain, stream, usage, tools, error, cancel)})
