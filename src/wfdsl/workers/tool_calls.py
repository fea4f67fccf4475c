"""Tools, tool calls and images in the forms of the three APIs. Calls bring them in the form of OpenAI's chat API.

Anthropic has no custom tools: there, one is a function with a single text, `input`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from wfdsl.protocols import Call, Message, Reply, ToolCall
from wfdsl.workers.http_reply import mapping

_INPUT: Final = "input"
_INPUT_SCHEMA: Final = {"type": "object", "properties": {_INPUT: {"type": "string"}}, "required": [_INPUT]}


def with_tool_calls(call: Call, reply: Reply) -> Reply:
    """The reply, with its tool calls only if they are whole and the call offered tools; those of custom tools as such,
    also where the API has had to make functions of them. A function that is given nothing is given an empty object.
    """
    if not reply.tool_calls:
        return reply
    tools = call.settings.get("tools") or ()
    if not tools or call.settings.get("tool_choice") == "none" or reply.finish not in ("stop", "tool_calls"):
        return replace(reply, tool_calls=())
    custom = {tool["custom"]["name"] for tool in tools if tool["type"] == "custom"}
    calls = tuple(_whole(each, is_custom=each.name in custom) for each in reply.tool_calls)
    return replace(reply, tool_calls=calls, finish="tool_calls")


def _whole(call: ToolCall, *, is_custom: bool) -> ToolCall:
    if call.custom:
        return call
    arguments = call.arguments or "{}"
    given = _object(arguments).get(_INPUT) if is_custom else None
    return call._replace(arguments=given if isinstance(given, str) else arguments, custom=is_custom)


def _object(arguments: str) -> dict[str, Any]:
    """The arguments of a call; what is not an object is one under `input`."""
    try:
        found = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        found = arguments
    return found if isinstance(found, dict) else {_INPUT: found}


def _calls(message: Message) -> list[ToolCall]:
    return [ToolCall(**call) for call in message.get("tool_calls", ())]


def chat_message(message: Message) -> dict[str, Any]:
    """A message of the chat API."""
    found: dict[str, Any] = {name: message.get(name) for name in ("role", "content", "tool_call_id") if name in message}
    if "images" in message:
        images = [{"type": "image_url", "image_url": {"url": url}} for url in message["images"]]
        found["content"] = [{"type": "text", "text": message["content"]}, *images]
    if "tool_calls" in message:
        found["content"] = message["content"] or None
        found["tool_calls"] = [chat_call(call) for call in _calls(message)]
    return found


def chat_call(call: ToolCall) -> dict[str, Any]:
    """A tool call as the chat API has it."""
    kind, given = ("custom", "input") if call.custom else ("function", "arguments")
    return {"id": call.id, "type": kind, kind: {"name": call.name, given: call.arguments}}


def responses_input(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Items of the responses API."""
    custom = {call.id for message in messages for call in _calls(message) if call.custom}
    return [item for message in messages for item in _items(message, custom)]


def _items(message: Message, custom: set[str]) -> Iterable[dict[str, Any]]:
    if "tool_call_id" in message:
        call_id = message["tool_call_id"]
        kind = "custom_tool_call_output" if call_id in custom else "function_call_output"
        yield {"type": kind, "call_id": call_id, "output": message["content"]}
        return
    if "images" in message:
        images = [{"type": "input_image", "image_url": url} for url in message["images"]]
        yield {"role": message["role"], "content": [{"type": "input_text", "text": message["content"]}, *images]}
    elif message["content"] or "tool_calls" not in message:
        yield {"role": message["role"], "content": message["content"]}
    for call in _calls(message):
        kind, field = ("custom_tool_call", "input") if call.custom else ("function_call", "arguments")
        yield {"type": kind, "call_id": call.id, "name": call.name, field: call.arguments}


def responses_tools(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request of the responses API that are about tools and the form of the answer."""
    found: dict[str, Any] = {"parallel_tool_calls": settings.get("parallel_tool_calls")}
    if settings.get("tools"):
        found["tools"] = [_flat(tool) for tool in settings["tools"]]
        choice = settings.get("tool_choice")
        found["tool_choice"] = _flat(choice) if isinstance(choice, Mapping) else choice
    shape = settings.get("response_format")
    if shape is not None:
        found["text"] = {"format": {"type": shape["type"], **mapping(shape.get(shape["type"]))}}
    return found


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    """What the chat API nests under the name of its type, unnested."""
    kind = tool["type"]
    inside = dict(mapping(tool.get(kind)))
    grammar = mapping(inside.get("format")).get("grammar")
    if grammar is not None:
        inside["format"] = {"type": "grammar", **grammar}
    return {"type": kind, **inside}


def anthropic_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages of Anthropic's API: results of tools come together, in one message of the user."""
    found: list[dict[str, Any]] = []
    for are_results, group in groupby(messages, lambda message: "tool_call_id" in message):
        if are_results:
            found.append({"role": "user", "content": [_result(each) for each in group]})
        else:
            found += [{"role": each["role"], "content": _blocks(each)} for each in group]
    return found


def _result(message: Message) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}


def _blocks(message: Message) -> str | list[dict[str, Any]]:
    blocks = [_image(url) for url in message.get("images", ())]
    for call in _calls(message):
        given = {_INPUT: call.arguments} if call.custom else _object(call.arguments)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
    if not blocks:
        return message["content"]
    said = [{"type": "text", "text": message["content"]}] if message["content"].strip() else []
    return [*said, *blocks]


def _image(url: str) -> dict[str, Any]:
    kind, comma, data = url.partition(";base64,")
    if not (kind.startswith("data:") and comma):
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "image", "source": {"type": "base64", "media_type": kind.removeprefix("data:"), "data": data}}


def anthropic_tools(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request of Anthropic's API that are about tools."""
    if not settings.get("tools"):
        return {}
    single = {"disable_parallel_tool_use": True} if settings.get("parallel_tool_calls") is False else {}
    choice = settings.get("tool_choice")
    if isinstance(choice, Mapping):
        chosen = {"type": "tool", "name": choice[choice["type"]]["name"]}
    else:
        chosen = {"type": {"required": "any", None: "auto"}.get(choice, choice)}
    if chosen["type"] != "none":
        chosen |= single
    return {"tools": [_anthropic_tool(tool) for tool in settings["tools"]], "tool_choice": chosen}


def _anthropic_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    inside = tool[tool["type"]]
    schema = _INPUT_SCHEMA if tool["type"] == "custom" else inside.get("parameters") or {"type": "object"}
    about = {"description": inside["description"]} if inside.get("description") else {}
    return {"name": inside["name"], **about, "input_schema": schema}
