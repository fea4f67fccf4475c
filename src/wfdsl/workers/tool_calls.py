"""Tools, tool calls and images in the forms of the three APIs. Calls bring them in the form of OpenAI's chat API.

Anthropic has no custom tools: there, one is a function with a single text, `input`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from wfdsl.protocols import Call, Message, Reply, ToolCall
from wfdsl.workers.http_reply import mapping, mappings, text

_INPUT: Final = "input"
_INPUT_SCHEMA: Final = {"type": "object", "properties": {_INPUT: {"type": "string"}}, "required": [_INPUT]}


def with_tool_calls(call: Call, reply: Reply) -> Reply:
    """The reply, with its tool calls only if they are whole and the call offered tools."""
    if not reply.tool_calls:
        return reply
    offered = call.settings.get("tools") and call.settings.get("tool_choice") != "none"
    if offered and reply.finish in ("stop", "tool_calls"):
        return replace(_with_custom_tools(call, reply), finish="tool_calls")
    return replace(reply, tool_calls=())


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages of the chat API."""
    return [_chat_message(message) for message in messages]


def _chat_message(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    if "images" in message:
        images = [{"type": "image_url", "image_url": {"url": url}} for url in message["images"]]
        found["content"] = [{"type": "text", "text": message["content"]}, *images]
    if "tool_calls" in message:
        found["content"] = message["content"] or None
        found["tool_calls"] = [_chat_call(ToolCall(**call)) for call in message["tool_calls"]]
    if "tool_call_id" in message:
        found["tool_call_id"] = message["tool_call_id"]
    return found


def _chat_call(call: ToolCall) -> dict[str, Any]:
    if call.custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


@dataclass(slots=True)
class ChatCalls:
    """The tool calls of a chat completion, or of its chunks, which bring them in pieces."""

    _parts: dict[int, dict[str, str]] = field(default_factory=dict)

    def take(self, calls: Any) -> None:
        """Take in the `tool_calls` of a message or of a delta."""
        for place, call in enumerate(mappings(calls)):
            index = call.get("index")
            part = self._parts.setdefault(index if isinstance(index, int) else place, dict.fromkeys(_PARTS, ""))
            custom = mapping(call.get("custom"))
            function = custom or mapping(call.get("function"))
            part["id"] = part["id"] or text(call.get("id"))
            part["name"] = part["name"] or text(function.get("name"))
            part["arguments"] += text(function.get("input" if custom else "arguments"))
            part["custom"] = part["custom"] or ("custom" if custom else "")

    def found(self) -> tuple[ToolCall, ...]:
        """The calls so far."""
        return tuple(
            ToolCall(part["id"], part["name"], part["arguments"], bool(part["custom"]))
            for _, part in sorted(self._parts.items())
            if part["name"]
        )


_PARTS: Final = ("id", "name", "arguments", "custom")


def responses_input(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Items of the responses API."""
    custom = {call["id"] for each in messages for call in each.get("tool_calls", ()) if call["custom"]}
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
    for each in message.get("tool_calls", ()):
        call = ToolCall(**each)
        about = {"call_id": call.id, "name": call.name}
        if call.custom:
            yield {"type": "custom_tool_call", **about, "input": call.arguments}
        else:
            yield {"type": "function_call", **about, "arguments": call.arguments}


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


def responses_calls(items: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    """The tool calls among the items of a response."""
    kinds = {"function_call": ("arguments", False), "custom_tool_call": ("input", True)}
    found = []
    for item in items:
        if text(item.get("type")) in kinds:
            part, custom = kinds[item["type"]]
            found.append(ToolCall(text(item.get("call_id")), text(item.get("name")), text(item.get(part)), custom))
    return tuple(found)


def anthropic_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages of Anthropic's API: results of tools come together, in one message of the user."""
    found: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for message in messages:
        if "tool_call_id" not in message:
            results = []
            found.append({"role": message["role"], "content": _blocks(message)})
            continue
        if not results:
            found.append({"role": "user", "content": results})
        results.append({"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]})
    return found


def _blocks(message: Message) -> str | list[dict[str, Any]]:
    blocks = [_image(url) for url in message.get("images", ())]
    blocks += [_tool_use(ToolCall(**call)) for call in message.get("tool_calls", ())]
    if not blocks:
        return message["content"]
    said = [{"type": "text", "text": message["content"]}] if message["content"].strip() else []
    return [*said, *blocks]


def _image(url: str) -> dict[str, Any]:
    kind, comma, data = url.partition(";base64,")
    if not (kind.startswith("data:") and comma):
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "image", "source": {"type": "base64", "media_type": kind.removeprefix("data:"), "data": data}}


def _tool_use(call: ToolCall) -> dict[str, Any]:
    given = {_INPUT: call.arguments} if call.custom else _object(call.arguments)
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _object(arguments: str) -> dict[str, Any]:
    """The arguments of a call; what is not an object is one under `input`."""
    try:
        found = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        found = arguments
    return found if isinstance(found, dict) else {_INPUT: found}


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


@dataclass(slots=True)
class AnthropicCalls:
    """The tool calls of a message of Anthropic's, or of its events, which bring the input in pieces."""

    _parts: dict[int, dict[str, Any]] = field(default_factory=dict)

    def begin(self, index: Any, block: Mapping[str, Any]) -> None:
        """Take in a block, with its place in the message."""
        if block.get("type") == "tool_use" and isinstance(index, int):
            known = block.get("input")
            begun = json.dumps(known) if known else ""
            self._parts[index] = {"id": text(block.get("id")), "name": text(block.get("name")), "arguments": begun}

    def add(self, index: Any, piece: str) -> None:
        """Take in a piece of a call's input."""
        if index in self._parts:
            self._parts[index]["arguments"] += piece

    def found(self) -> tuple[ToolCall, ...]:
        """The calls so far."""
        return tuple(ToolCall(each["id"], each["name"], each["arguments"] or "{}") for each in self._parts.values())


def _with_custom_tools(call: Call, reply: Reply) -> Reply:
    """The reply with calls of custom tools as such, also where the API has had to make functions of them."""
    tools = call.settings.get("tools") or ()
    custom = {tool["custom"]["name"] for tool in tools if tool["type"] == "custom"}
    if not custom:
        return reply
    calls = (_as_custom(each) if each.name in custom and not each.custom else each for each in reply.tool_calls)
    return replace(reply, tool_calls=tuple(calls))


def _as_custom(call: ToolCall) -> ToolCall:
    given = _object(call.arguments).get(_INPUT)
    return call._replace(arguments=given if isinstance(given, str) else call.arguments, custom=True)
