"""The body of a Responses API request, as the fields of a chat completion request, which are checked in one place.

Responses are not kept: a request brings its whole conversation, as clients send it that ask with `store: false`. Items
of reasoning are left out, since no worker has written them; tools that the provider runs by itself (`web_search` and
others) are not offered to workers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from wfdsl.server.api_errors import ApiError, not_supported
from wfdsl.server.chat_request import MOST_MESSAGES, ChatRequest, Limit, Sampling, chat_request
from wfdsl.server.request_body import json_object, validated


class ResponsesBody(Sampling):
    """A Responses API request as it is sent."""

    input: str | Annotated[list[dict[str, Any]], Field(max_length=MOST_MESSAGES)]
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: Limit | None = None
    reasoning: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    store: bool | None = None
    include: list[str] | None = None


def read_responses_request(body: bytes) -> tuple[ChatRequest, Mapping[str, Any]]:
    """Read and check a request: what it asks for, and the fields of its body, of which the response repeats some.

    Raises:
        ApiError: it is not one, or asks for what cannot be done.
    """
    fields = json_object(body)
    asked = validated(ResponsesBody, fields)
    if asked.previous_response_id:
        what = "previous_response_id is not supported: no response is kept; send the whole conversation as input"
        raise not_supported("previous_response_id", what)
    messages, places = _messages(asked)
    reasoning, text = asked.reasoning or {}, asked.text or {}
    wanted = {name: fields[name] for name in Sampling.model_fields if name in fields} | {
        "messages": messages,
        "max_completion_tokens": asked.max_output_tokens,
        "reasoning_effort": reasoning.get("effort"),
        "verbosity": text.get("verbosity"),
        "response_format": _response_format(text.get("format")),
        "tools": [found for tool in asked.tools or () if (found := _tool(tool)) is not None],
        "tool_choice": _tool_choice(asked.tool_choice),
    }
    try:
        return chat_request(wanted), fields
    except ApiError as error:
        raise _renamed(error, places) from error


_OTHER_NAMES: Final = {
    "messages": "input",
    "max_completion_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "response_format": "text.format",
}


def _renamed(error: ApiError, places: list[str]) -> ApiError:
    """An error with the name that this API has for its parameter."""
    own = error.param or ""
    found = re.match(r"messages\[(\d+)\]|\w+", own)
    if found is None:
        return error
    name = places[int(found[1])] if found[1] else _OTHER_NAMES.get(found[0], found[0])
    param = name + own[found.end() :]
    message = str(error)
    if message.startswith(own):
        message = param + message.removeprefix(own)
    return ApiError(error.status, message, code=error.code, param=param, headers=error.headers)


def _messages(asked: ResponsesBody) -> tuple[list[dict[str, Any]], list[str]]:
    """The messages of a conversation, and the place of each in the body."""
    found: list[dict[str, Any]] = []
    places: list[str] = []
    if asked.instructions is not None:
        found.append({"role": "system", "content": asked.instructions})
        places.append("instructions")
    items = [{"role": "user", "content": asked.input}] if isinstance(asked.input, str) else asked.input
    for index, item in enumerate(items):
        place, kind = f"input[{index}]", item.get("type", "message")
        match kind:
            case "reasoning":
                continue
            case "message":
                message = {"role": item.get("role"), "content": item.get("content")}
            case "function_call" | "custom_tool_call":
                of, given = ("function", "arguments") if kind == "function_call" else ("custom", "input")
                inside = {"name": item.get("name"), given: item.get(given)}
                call = {"id": item.get("call_id"), "type": of, of: inside}
                last = found[-1] if found else {}
                if last.get("role") == "assistant":
                    last["tool_calls"] = [*last.get("tool_calls", []), call]
                    continue
                message = {"role": "assistant", "content": None, "tool_calls": [call]}
            case "function_call_output" | "custom_tool_call_output":
                message = {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
            case "item_reference":
                what = f"{place}: no item is kept; send the item itself, as clients do that ask with `store: false`"
                raise not_supported(place, what)
            case _:
                what = f"{place}.type: items of this type are not supported (got {kind!r:.60})"
                raise not_supported(f"{place}.type", what)
        found.append(message)
        places.append(place)
    return found, places


def _tool(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """A tool that a worker can be offered; None for one that only a provider can run."""
    kind = tool.get("type")
    if kind not in ("function", "custom"):
        return None
    inside = {name: value for name, value in _untyped(tool).items() if value is not None}
    shape = inside.get("format")
    if isinstance(shape, dict) and shape.get("type") == "grammar":
        inside["format"] = {"type": "grammar", "grammar": _untyped(shape)}
    return {"type": kind, kind: inside}


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, dict) and choice.get("type") in ("function", "custom"):
        return {"type": choice["type"], choice["type"]: {"name": choice.get("name")}}
    return choice


def _response_format(shape: Any) -> Any:
    if isinstance(shape, dict) and shape.get("type") == "json_schema":
        return {"type": "json_schema", "json_schema": _untyped(shape)}
    return shape or None


def _untyped(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if name != "type"}
