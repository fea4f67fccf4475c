"""openai-python, the Responses API."""

from __future__ import annotations

from typing import Any

from openai import OpenAI
from tests.clients.programs.cells import ADD, QUESTION, URL, add, message_of, try_cells

client = OpenAI(base_url=URL, api_key="none")
TOOLS: Any = [{"type": "function", "name": "add", "parameters": ADD, "strict": True}]


def events_of(model: str) -> list[Any]:
    return list(client.responses.create(model=model, input=QUESTION, stream=True))


def plain() -> dict[str, Any]:
    return {"text": client.responses.create(model="two", input=QUESTION).output_text}


def stream() -> dict[str, Any]:
    """What its own collector of events makes of the stream."""
    with client.responses.stream(model="two", input=QUESTION) as events:
        heard = list(events)
        text = events.get_final_response().output_text
    pieces = [event.delta for event in heard if event.type == "response.output_text.delta"]
    progress = "".join(e.delta for e in heard if "reasoning" in e.type and e.type.endswith(".delta"))
    return {"text": text, "pieces": len(pieces), "progress": progress}


def usage() -> dict[str, Any]:
    used = [client.responses.create(model="two", input=QUESTION).usage, events_of("two")[-1].response.usage]
    return {"tokens": [[each.input_tokens, each.output_tokens] for each in used]}


def tools() -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        reply: Any = client.responses.create(model="tools", input=messages, tools=TOOLS)
        messages += reply.output
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return {"text": reply.output_text, "messages": len(messages)}
        messages += [
            {"type": "function_call_output", "call_id": call.call_id, "output": add(call.arguments)} for call in calls
        ]


def error() -> dict[str, Any]:
    def streamed() -> None:
        with client.responses.stream(model="broken", input=QUESTION) as events:
            for event in events:
                if event.type == "response.failed":
                    raise RuntimeError(event.response.error)

    return {
        "unknown": message_of(lambda: client.responses.create(model="missing", input=QUESTION)),
        "failed": message_of(lambda: client.responses.create(model="broken", input=QUESTION)),
        "streamed": message_of(streamed),
    }


def cancel() -> dict[str, Any]:
    with client.responses.create(model="slow", input=QUESTION, stream=True) as events:
        first = next(event.delta for event in events if event.type == "response.output_text.delta")
    return {"first": first}


try_cells({each.__name__: each for each in (plain, stream, usage, tools, error, cancel)})
