"""What programs do whose client has the methods of OpenAI's own, for chat completions and for the Responses API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.clients.programs.cells import ADD, QUESTION, add, errors_told, try_cells

Ask = Callable[..., Any]
"""Asks a model by its name, with more fields of the request."""


def try_chat(ask: Ask, close: Callable[[Any], None]) -> None:
    """Try all cells with chat completions; `close` leaves a stream."""
    question = [{"role": "user", "content": QUESTION}]

    def plain() -> dict[str, Any]:
        return {"text": ask("two", messages=question).choices[0].message.content}

    def stream() -> dict[str, Any]:
        deltas = [chunk.choices[0].delta for chunk in ask("two", messages=question, stream=True)]
        pieces = [delta.content for delta in deltas if delta.content]
        progress = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
        return {"text": "".join(pieces), "pieces": len(pieces), "progress": progress}

    def usage() -> dict[str, Any]:
        whole = ask("two", messages=question).usage
        chunks = ask("two", messages=question, stream=True, stream_options={"include_usage": True})
        last = [chunk.usage for chunk in chunks if getattr(chunk, "usage", None)]
        return {"tokens": [[each.prompt_tokens, each.completion_tokens] for each in (whole, *last)]}

    def tools() -> dict[str, Any]:
        messages: list[Any] = list(question)
        offered = [{"type": "function", "function": {"name": "add", "parameters": ADD}}]
        while True:
            message = ask("tools", messages=messages, tools=offered).choices[0].message
            if not message.tool_calls:
                return {"text": message.content, "messages": len(messages)}
            messages.append(message)
            for call in message.tool_calls:
                result = add(call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def error() -> dict[str, Any]:
        def streamed(model: str) -> None:
            list(ask(model, messages=question, stream=True))

        return errors_told(lambda model: ask(model, messages=question), streamed)

    def cancel() -> dict[str, Any]:
        chunks = ask("slow", messages=question, stream=True)
        first = next(chunk.choices[0].delta.content for chunk in chunks if chunk.choices[0].delta.content)
        close(chunks)
        return {"first": first}

    try_cells(plain, stream, usage, tools, error, cancel)


def deltas_of(events: Iterable[Any]) -> dict[str, Any]:
    """The pieces of a response's text, and of its progress."""
    deltas = [event for event in events if event.type.endswith(".delta")]
    pieces = [event.delta for event in deltas if event.type == "response.output_text.delta"]
    progress = "".join(event.delta for event in deltas if "reasoning" in event.type)
    return {"text": "".join(pieces), "pieces": len(pieces), "progress": progress}


def try_responses(ask: Ask, stream: Callable[[], dict[str, Any]], close: Callable[[Any], None], **about: Any) -> None:
    """Try all cells with the Responses API; `about` is said of cells in which the client streams."""

    def plain() -> dict[str, Any]:
        return {"text": ask("two", input=QUESTION).output_text}

    def usage() -> dict[str, Any]:
        last = list(ask("two", input=QUESTION, stream=True))[-1].response
        used = [each.usage for each in (ask("two", input=QUESTION), last)]
        return {"tokens": [[each.input_tokens, each.output_tokens] for each in used]}

    def tools() -> dict[str, Any]:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        offered = [{"type": "function", "name": "add", "parameters": ADD, "strict": True}]
        while True:
            reply = ask("tools", input=messages, tools=offered)
            messages += [item.model_dump() for item in reply.output]
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                return {"text": reply.output_text, "messages": len(messages)}
            for call in calls:
                result = {"type": "function_call_output", "call_id": call.call_id, "output": add(call.arguments)}
                messages.append(result)

    def error() -> dict[str, Any]:
        def streamed(model: str) -> None:
            for event in ask(model, input=QUESTION, stream=True):
                if event.type == "response.failed":
                    raise RuntimeError(event.response.error)

        return errors_told(lambda model: ask(model, input=QUESTION), streamed)

    def cancel() -> dict[str, Any]:
        events = ask("slow", input=QUESTION, stream=True)
        first = next(event.delta for event in events if event.type == "response.output_text.delta")
        close(events)
        return {"first": first, **about}

    try_cells(plain, stream, usage, tools, error, cancel)
