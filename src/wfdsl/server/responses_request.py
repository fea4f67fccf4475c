"""The body of a Responses API request, as the fields of a chat completion request, which are checked in one place.

What that API has beyond chat completions: earlier responses and their items can be named by their ids. Items of
reasoning are left out, since no worker has written them; tools that the provider runs by itself (`web_search` and
others) are not offered to workers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import response_of
from wfdsl.server.api_errors import ApiError, not_supported
from wfdsl.server.chat_request import MOST_MESSAGES, ChatRequest, Limit, Sampling, chat_request
from wfdsl.server.request_body import RequestObject, json_object, validated


class Reasoning(RequestObject):
    """How much a Conductor may spend, which the check of chat completion requests knows."""

    effort: Any = None


class TextShape(RequestObject):
    """The form of the answer, which the check of chat completion requests knows."""

    format: dict[str, Any] | None = None
    verbosity: Any = None


class ResponsesBody(Sampling):
    """A Responses API request as it is sent."""

    input: str | Annotated[list[dict[str, Any]], Field(max_length=MOST_MESSAGES)]
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: Limit | None = None
    reasoning: Reasoning | None = None
    text: TextShape | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    store: bool | None = None
    include: list[str] | None = None

    @property
    def items(self) -> list[dict[str, Any]]:
        """The input, as items."""
        return [{"role": "user", "content": self.input}] if isinstance(self.input, str) else self.input


class ResponsesRequest(NamedTuple):
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
    fields = json_object(body)
    asked = validated(ResponsesBody, fields)
    messages = _Messages(asked, kept)
    text = asked.text or TextShape()
    wanted = {name: fields[name] for name in Sampling.model_fields if name in fields} | {
        "messages": messages.found,
        "max_completion_tokens": asked.max_output_tokens,
        "reasoning_effort": None if asked.reasoning is None else asked.reasoning.effort,
        "verbosity": text.verbosity,
        "response_format": _response_format(text.format or {}),
        "tools": [found for tool in asked.tools or () if (found := _tool(tool)) is not None],
        "tool_choice": _tool_choice(asked.tool_choice),
    }
    try:
        chat = chat_request(wanted)
    except ApiError as error:
        raise _renamed(error, messages.places) from error
    return ResponsesRequest(chat, fields, asked.items, store=kept.are_kept and asked.store is not False)


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


class _Messages:
    """The messages of the whole conversation, and the place of each in the body. Instructions are those of this request
    only, as in OpenAI's API.
    """

    def __init__(self, asked: ResponsesBody, kept: KeptResponses) -> None:
        self.found: list[dict[str, Any]] = []
        self.places: list[str] = []
        if asked.instructions is not None:
            self._add({"role": "system", "content": asked.instructions}, "instructions")
        if asked.previous_response_id:
            for item in kept.conversation(asked.previous_response_id):
                self._read(item, "previous_response_id", kept)
        for index, item in enumerate(asked.items):
            self._read(item, f"input[{index}]", kept)

    def _add(self, message: dict[str, Any], place: str) -> None:
        self.found.append(message)
        self.places.append(place)

    def _read(self, item: Mapping[str, Any], place: str, kept: KeptResponses) -> None:
        if item.get("type") == "item_reference":
            item = kept.item(item.get("id"), place)
        match item.get("type", "message"):
            case "reasoning":
                return
            case "function_call" | "custom_tool_call" as kind:
                what, given = ("function", "arguments") if kind == "function_call" else ("custom", "input")
                inside = {"name": item.get("name"), given: item.get(given)}
                call = {"id": item.get("call_id"), "type": what, what: inside}
                last = self.found[-1] if self.found else {}
                if last.get("role") == "assistant":
                    last["tool_calls"] = [*last.get("tool_calls", []), call]
                else:
                    self._add({"role": "assistant", "content": None, "tool_calls": [call]}, place)
            case "function_call_output" | "custom_tool_call_output":
                output = _content(item.get("output"))
                self._add({"role": "tool", "tool_call_id": item.get("call_id"), "content": output}, place)
            case "message":
                self._add({"role": item.get("role"), "content": _content(item.get("content"))}, place)
            case kind:
                what = f"{place}.type: items of this type are not supported (got {kind!r:.60})"
                raise not_supported(f"{place}.type", what)


def _content(content: Any) -> Any:
    """The content of a message; what is not known here is left to the check of chat completion requests."""
    if not isinstance(content, list):
        return content
    return [_part(part) if isinstance(part, dict) else part for part in content]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") in ("input_text", "output_text", "summary_text"):
        return {"type": "text", "text": part.get("text")}
    if part.get("type") == "input_image":
        return {"type": "image_url", "image_url": {"url": part.get("image_url"), "detail": part.get("detail")}}
    return part


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


def _response_format(shape: Mapping[str, Any]) -> dict[str, Any] | None:
    if shape.get("type") == "json_schema":
        return {"type": "json_schema", "json_schema": _untyped(shape)}
    return dict(shape) or None


def _untyped(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if name != "type"}


RESPONSE_PREFIX = "resp_"


class KeptResponses:
    """Earlier responses of one API key, which a request names by their ids or by those of their items.

    A response is in the journal with the items that it was asked and that it gave, so it is found after a restart.
    """

    def __init__(self, journal: Journal | None, key: str) -> None:
        """Without a journal, nothing is kept; `key` is the key's name, and empty where no keys are needed."""
        self._journal = journal
        self._key = key

    @property
    def are_kept(self) -> bool:
        """Whether responses can be kept."""
        return self._journal is not None

    async def keep(
        self, response_id: str, run_id: str, *, previous: str | None, asked: Sequence[Any], output: Sequence[Any]
    ) -> None:
        """Keep a response: the one before it, and the items of its input and output.

        Raises:
            JournalFailure: it cannot be kept now.
        """
        assert self._journal is not None  # callers have looked at `are_kept`
        content = {"previous": previous, "input": list(asked), "output": list(output)}
        await self._journal.keep_response(response_id, run_id, content)

    def conversation(self, response_id: str) -> list[Any]:
        """The items of a response and of all before it, input and output, in order.

        Raises:
            ApiError: one of them is not kept.
        """
        found: list[Any] = []
        following: str | None = response_id
        while following is not None:
            content = self._response(following, "previous_response_id")
            if content is None:
                message = f"previous response {following!r} was not found: send the whole conversation as input"
                raise ApiError(400, message, code="previous_response_not_found", param="previous_response_id")
            found = [*content["input"], *content["output"], *found]
            following = content["previous"]
        return found

    def item(self, item_id: Any, place: str) -> dict[str, Any]:
        """The item of a response's output that a reference names; `place` is where the reference is.

        Raises:
            ApiError: there is none.
        """
        # The id of an item holds that of its response: `msg_RESPONSE`, `fc_RESPONSE_0`.
        own = item_id.split("_") if isinstance(item_id, str) else []
        content = self._response(f"{RESPONSE_PREFIX}{own[1]}", place) if len(own) > 1 else None
        for item in content["output"] if content is not None else ():
            if item["id"] == item_id:
                return dict(item)
        message = f"{place}: item {item_id!r:.100} was not found: send the item itself; `store: false` keeps no items"
        raise ApiError(404, message, code="item_not_found", param=place)

    def _response(self, response_id: str, param: str) -> Mapping[str, Any] | None:
        if self._journal is None:
            raise not_supported(param, f"{param}: without a journal no responses are kept; send the items themselves")
        return response_of(self._journal.path, response_id, self._key)
