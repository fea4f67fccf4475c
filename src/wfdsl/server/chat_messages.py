"""The messages of a chat completion request: the conversation that is the question, and results of tools.

Tool calls of the conversation and their results become text: they belong to runs that are over, or to none, and every
worker can read text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.interpreter.arguments import checked_question
from wfdsl.interpreter.context import Question
from wfdsl.protocols import Message
from wfdsl.server.api_errors import not_supported, shown, wrong_value

_ROLES: Final = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "user"}
_IMAGE_URLS: Final = ("https://", "http://", "data:image/")


def read_question(messages: Any) -> Question:
    """The question that a conversation is.

    Raises:
        ApiError: it is not one, or holds what no worker can be shown.
    """
    if not isinstance(messages, list) or not messages:
        raise wrong_value("messages", "messages must be a list with at least one message")
    found = [_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
    if not any(each["role"] == "user" and (each["content"].strip() or "images" in each) for each in found):
        raise wrong_value("messages", "messages must hold a message of the user with some text")
    alone = len(found) == 1 and "images" not in found[0]
    try:
        return checked_question(found[0]["content"] if alone else found)
    except UsageError as error:
        raise wrong_value("messages", str(error)) from error


def tool_results(messages: list[dict[str, Any]]) -> dict[str, str]:
    """The results of tools, by the ids of the calls, with which a conversation that has been checked ends."""
    found: dict[str, str] = {}
    for index in reversed(range(len(messages))):
        if messages[index]["role"] != "tool":
            break
        place = f"messages[{index}].content"
        found[messages[index]["tool_call_id"]] = _text(messages[index].get("content"), place)[0]
    return found


def _message(message: Any, place: str) -> Message:
    if not isinstance(message, dict):
        raise wrong_value(place, f"{place} must be an object (got {shown(message)})")
    role = message.get("role")
    if role == "function" or message.get("function_call"):
        raise not_supported(place, f"{place}: functions are not supported: use tools")
    if not isinstance(role, str) or role not in _ROLES:
        raise wrong_value(f"{place}.role", f"{place}.role must be one of {', '.join(_ROLES)} (got {shown(role)})")
    calls = _calls(message.get("tool_calls"), f"{place}.tool_calls") if role == "assistant" else ""
    content = message.get("content")
    text, images = ("", []) if content is None and calls else _text(content, f"{place}.content")
    if images and role != "user":
        raise wrong_value(f"{place}.content", f"{place}.content: images belong into messages of the user")
    if role == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str):
            raise wrong_value(f"{place}.tool_call_id", f"{place}.tool_call_id must be a text (got {shown(call_id)})")
        text = f"[result of {call_id}]\n{text}"
    found: Message = {"role": _ROLES[role], "content": "\n".join(filter(None, [text, calls]))}  # type: ignore[typeddict-item]  # the values of _ROLES are roles
    if images:
        found["images"] = images
    return found


def _calls(calls: Any, place: str) -> str:
    """Tool calls as text."""
    if calls is None:
        return ""
    if not isinstance(calls, list):
        raise wrong_value(place, f"{place} must be a list (got {shown(calls)})")
    return "\n".join(_call(call, f"{place}[{index}]") for index, call in enumerate(calls))


def _call(call: Any, place: str) -> str:
    inside = call.get(call.get("type", "function")) if isinstance(call, dict) else None
    if not isinstance(inside, dict) or not isinstance(inside.get("name"), str):
        raise wrong_value(place, f"{place} must be a tool call with a name (got {shown(call)})")
    given = inside.get("arguments", inside.get("input", ""))
    return f"[called {inside['name']} as {call.get('id')}]\n{given}"


def _text(content: Any, place: str) -> tuple[str, list[str]]:
    """A message's content, a text or a list of parts: its text, and the URLs of its images."""
    if isinstance(content, str):
        return content, []
    if not isinstance(content, list) or not content:
        raise wrong_value(place, f"{place} must be a text or a list of parts (got {shown(content)})")
    texts, images = [], []
    for index, part in enumerate(content):
        if isinstance(part, dict) and part.get("type") == "image_url":
            images.append(_image(part, f"{place}[{index}].image_url.url"))
        else:
            texts.append(_part(part, f"{place}[{index}]"))
    return "".join(texts), images


def _part(part: Any, place: str) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise wrong_value(place, f"{place} must be an object with a type (got {shown(part)})")
    kind = "text" if part["type"] == "input_text" else part["type"]
    if kind not in ("text", "refusal"):
        raise not_supported(place, f"{place}: parts of type {shown(kind)} are not supported, only text and image_url")
    if not isinstance(part.get(kind), str):
        raise wrong_value(place, f"{place}.{kind} must be a text (got {shown(part.get(kind))})")
    return str(part[kind])


def _image(part: Mapping[str, Any], place: str) -> str:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if not isinstance(url, str) or not url.startswith(_IMAGE_URLS):
        raise wrong_value(place, f"{place} must be a URL or a data URL of an image (got {shown(url)})")
    return url
