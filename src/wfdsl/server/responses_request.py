"""The body of a Responses API request, as the fields of a chat completion request, which are checked in one place.

What that API has beyond chat completions: earlier responses and their items can be named by their ids. Items of
reasoning are left out, since no worker has written them; tools that the provider runs by itself (`web_search` and
others) are not offered to workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wfdsl.server.api_errors import ApiError, not_supported
from wfdsl.server.chat_request import ChatRequest, chat_request, read_object
from wfdsl.server.kept_responses import KeptResponses


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """A request that can be answered."""

    chat: ChatRequest
    """The request as a chat completion request."""
    fields: Mapping[str, Any]
    """The body, of which the response repeats some fields."""
    items: Sequence[Any]
    """The input, as items."""
    store: bool
    """Whether later requests may name the response."""


def read_responses_request(body: bytes, kept: KeptResponses) -> ResponsesRequest:
    """Read and check a request, which may name responses that are kept.

    Raises:
        ApiError: it is not one, or asks for what cannot be done.
    """
    fields = read_object(body)
    _refuse_unsupported(fields)
    items, store = _items(fields), fields.get("store")
    if store is not None and not isinstance(store, bool):
        raise _wrong("store", "store must be true or false")
    messages, places = _messages(fields, items, kept)
    try:
        chat = chat_request(_chat_fields(fields, messages))
    except ApiError as error:
        raise _renamed(error, places) from error
    return ResponsesRequest(chat, fields, items, store=kept.are_kept and store is not False)


def _refuse_unsupported(fields: Mapping[str, Any]) -> None:
    for name, why in _UNSUPPORTED.items():
        if fields.get(name):
            raise not_supported(name, f"{name} is not supported: {why}")


_UNSUPPORTED: Final[Mapping[str, str]] = {
    "conversation": "send the whole conversation as input, or previous_response_id",
    "background": "leave it out, and wait for the response",
    "prompt": "send its text as instructions",
    "context_management": "leave it out",
}


def _chat_fields(fields: Mapping[str, Any], messages: list[Any]) -> dict[str, Any]:
    """The body as a chat completion request has it."""
    reasoning, text = _object(fields, "reasoning"), _object(fields, "text")
    known = {name: fields[name] for name in _SAME if name in fields}
    tools = _list(fields, "tools")
    return known | {
        "messages": messages,
        "max_completion_tokens": fields.get("max_output_tokens"),
        "reasoning_effort": reasoning.get("effort"),
        "verbosity": text.get("verbosity"),
        "response_format": _response_format(_object(text, "format", "text.format")),
        "tools": [found for tool in tools if (found := _tool(tool)) is not None],
        "tool_choice": _tool_choice(fields.get("tool_choice")),
    }


_SAME: Final = (
    "model",
    "temperature",
    "top_p",
    "stream",
    "user",
    "metadata",
    "parallel_tool_calls",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "seed",
    "stop",
)
"""Fields that both APIs have; the last two are not OpenAI's, but other servers take them."""
_OTHER_NAMES: Final = {
    "messages": "input",
    "max_completion_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "response_format": "text.format",
}


def _renamed(error: ApiError, places: list[str]) -> ApiError:
    """An error with the name that this API has for its parameter."""
    if error.param is None:
        return error
    name, bracket, rest = error.param.partition("[")
    if name == "messages" and bracket:
        number, _, rest = rest.partition("]")
        param = places[int(number)] + rest
    else:
        param = _OTHER_NAMES.get(name, name) + bracket + rest
    message = str(error)
    if message.startswith(error.param):
        message = param + message.removeprefix(error.param)
    return ApiError(error.status, message, code=error.code, param=param, headers=error.headers)


def _items(fields: Mapping[str, Any]) -> list[Any]:
    """The items of the input; a text is one of the user."""
    given = fields.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list):
        raise _wrong("input", "input must be a text or a list of items")
    return given


def _messages(fields: Mapping[str, Any], items: Sequence[Any], kept: KeptResponses) -> tuple[list[Any], list[str]]:
    """The messages of the whole conversation, and the place of each in the body. Instructions are those of this request
    only, as in OpenAI's API.
    """
    instructions, previous = fields.get("instructions"), fields.get("previous_response_id")
    messages: list[Any] = []
    places: list[str] = []
    if instructions is not None:
        if not isinstance(instructions, str):
            raise _wrong("instructions", "instructions must be a text")
        messages.append({"role": "system", "content": instructions})
        places.append("instructions")
    if previous is not None and not isinstance(previous, str):
        raise _wrong("previous_response_id", "previous_response_id must be the id of a response")
    for item in kept.conversation(previous) if previous else []:
        _add(messages, places, item, "previous_response_id", kept)
    for index, item in enumerate(items):
        _add(messages, places, item, f"input[{index}]", kept)
    return messages, places


def _add(messages: list[Any], places: list[str], item: Any, place: str, kept: KeptResponses) -> None:
    if not isinstance(item, dict):
        raise _wrong(place, f"{place} must be an object")
    kind = item.get("type", "message")
    if kind == "item_reference":
        item = kept.item(item.get("id"), place)
        kind = item["type"]
    if kind == "reasoning":
        return
    if kind in ("function_call", "custom_tool_call"):
        call = _tool_call(item, kind)
        last = messages[-1] if messages else None
        if isinstance(last, dict) and last.get("role") == "assistant":
            last["tool_calls"] = [*last.get("tool_calls", []), call]
            return
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    elif kind in ("function_call_output", "custom_tool_call_output"):
        message = {"role": "tool", "tool_call_id": item.get("call_id"), "content": _content(item.get("output"))}
    elif kind == "message":
        message = {"role": item.get("role"), "content": _content(item.get("content"))}
    else:
        raise not_supported(f"{place}.type", f"{place}.type: items of this type are not supported (got {kind!r:.60})")
    messages.append(message)
    places.append(place)


def _tool_call(item: Mapping[str, Any], kind: str) -> dict[str, Any]:
    call = {"id": item.get("call_id")}
    if kind == "custom_tool_call":
        return {**call, "type": "custom", "custom": {"name": item.get("name"), "input": item.get("input")}}
    about = {"name": item.get("name"), "arguments": item.get("arguments")}
    return {**call, "type": "function", "function": about}


def _content(content: Any) -> Any:
    """The content of a message; what is not known here is left to the check of chat completion requests."""
    if not isinstance(content, list):
        return content
    return [_part(part) if isinstance(part, dict) else part for part in content]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    kind = part.get("type")
    if kind in ("input_text", "output_text", "summary_text"):
        return {"type": "text", "text": part.get("text")}
    if kind == "input_image":
        detail = {} if part.get("detail") is None else {"detail": part["detail"]}
        return {"type": "image_url", "image_url": {"url": part.get("image_url"), **detail}}
    return part


def _tool(tool: Any) -> dict[str, Any] | None:
    """A tool that a worker can be offered; None for one that only a provider can run."""
    if not isinstance(tool, dict):
        raise _wrong("tools", "tools must be a list of objects")
    about = {name: value for name, value in tool.items() if name != "type"}
    if tool.get("type") == "function":
        return {"type": "function", "function": {name: value for name, value in about.items() if value is not None}}
    if tool.get("type") == "custom":
        shape = about.get("format")
        if isinstance(shape, dict) and shape.get("type") == "grammar":
            grammar = {name: value for name, value in shape.items() if name != "type"}
            about["format"] = {"type": "grammar", "grammar": grammar}
        return {"type": "custom", "custom": about}
    return None


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, dict) and choice.get("type") in ("function", "custom"):
        return {"type": choice["type"], choice["type"]: {"name": choice.get("name")}}
    return choice


def _response_format(shape: Mapping[str, Any]) -> dict[str, Any] | None:
    if shape.get("type") == "json_schema":
        return {"type": "json_schema", "json_schema": {name: value for name, value in shape.items() if name != "type"}}
    return dict(shape) or None


def _object(fields: Mapping[str, Any], name: str, place: str | None = None) -> Mapping[str, Any]:
    found = fields.get(name)
    if found is not None and not isinstance(found, dict):
        raise _wrong(place or name, f"{place or name} must be an object")
    return found or {}


def _list(fields: Mapping[str, Any], name: str) -> list[Any]:
    found = fields.get(name)
    if found is not None and not isinstance(found, list):
        raise _wrong(name, f"{name} must be a list")
    return found or []


def _wrong(param: str, message: str) -> ApiError:
    return ApiError(400, message, code="invalid_value", param=param)
