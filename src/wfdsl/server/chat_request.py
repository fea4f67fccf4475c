"""The body of a chat completion request: what is honoured, what is refused, what makes no difference.

A field that would change the answer is honoured or refused, never ignored. Fields that no class here names make no
difference to the answer (`service_tier`, `store`, `prompt_cache_key`), or are not known yet. The classes are both what
is checked and what the OpenAPI document shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from wfdsl.conductor.config import Effort
from wfdsl.errors import UsageError
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import checked_question
from wfdsl.interpreter.tools import Tools
from wfdsl.protocols import Message
from wfdsl.server.api_errors import shown, wrong_value
from wfdsl.server.json_schema import Schema
from wfdsl.server.request_body import RequestObject, Sent, validated

MOST_MESSAGES: Final = 2_000
_MOST_PARTS: Final = 256
"""Of one message: parts, or tool calls. Our choice, as are the messages: each takes time that other requests wait."""
_MOST_TOOLS: Final = 128
_MOST_STOPS: Final = 4  # as in OpenAI's API, like the tools
_INTEGERS: Final = 2**63
_EFFORTS: Final[Mapping[str, Effort]] = {
    "none": "minimal",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
"""The efforts of OpenAI's API, and what they are here."""
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Limit: TypeAlias = Annotated[int, Field(ge=1, lt=_INTEGERS)]
_Nothing: TypeAlias = Annotated[list[Any], Field(max_length=0)] | None


class Image(RequestObject):
    """Where an image is: at an address, or in the text itself."""

    url: str = Field(pattern="^(https?://|data:image/)")


class Part(RequestObject):
    """A part of a message: a text or an image, under the names that chat completions and the Responses API have."""

    type: Literal["text", "input_text", "output_text", "summary_text", "refusal", "image_url", "input_image"]
    text: str | None = None
    refusal: str | None = None
    image_url: Annotated[str, Field(pattern="^(https?://|data:image/)")] | Image | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.content is None:
            raise PydanticCustomError("missing", "must have what its type says")
        return self

    @property
    def is_image(self) -> bool:
        """Whether it is an image."""
        return self.type in ("image_url", "input_image")

    @property
    def content(self) -> str | None:
        """The text, or the URL of the image."""
        if self.is_image:
            return self.image_url.url if isinstance(self.image_url, Image) else self.image_url
        return self.refusal if self.type == "refusal" else self.text


class Named(Sent):
    """What a tool, or the call of one, is named, and what a call gives it."""

    name: Text
    parameters: dict[str, Any] | None = None
    arguments: Any = None
    input: Any = None


class Tool(Sent):
    """A tool, or the call of one."""

    type: Literal["function", "custom"] = "function"
    id: str | None = None
    function: Named | None = None
    custom: Named | None = None

    @property
    def named(self) -> Named:
        """The part that its type names."""
        found = self.custom if self.type == "custom" else self.function
        assert found is not None  # `_is_whole` has checked it
        return found

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.custom if self.type == "custom" else self.function) is None:
            raise PydanticCustomError("missing", "must be a tool with a type and a name")
        return self


class ChatMessage(RequestObject):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[Part], Field(min_length=1, max_length=_MOST_PARTS)] | None = None
    tool_calls: Annotated[list[Tool], Field(max_length=_MOST_PARTS)] | None = None
    tool_call_id: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.role == "tool" and self.tool_call_id is None:
            raise PydanticCustomError("missing", "must have a tool_call_id, since its role is tool")
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            raise PydanticCustomError("missing", "must have a content")
        if self.images and self.role != "user":
            raise PydanticCustomError("images", "images belong into messages of the user")
        return self

    @property
    def text(self) -> str:
        """The text of its content."""
        if isinstance(self.content, list):
            return "".join(part.content or "" for part in self.content if not part.is_image)
        return self.content or ""

    @property
    def images(self) -> list[str]:
        """The URLs of its images."""
        parts = self.content if isinstance(self.content, list) else []
        return [part.content or "" for part in parts if part.is_image]

    def message(self) -> Message:
        """As a worker is shown it: every worker can read text, and tool calls belong to runs that are over, or none."""
        text = f"[result of {self.tool_call_id}]\n{self.text}" if self.role == "tool" else self.text
        calls = [_call_text(call) for call in self.tool_calls or ()] if self.role == "assistant" else []
        role: Any = {"developer": "system", "tool": "user"}.get(self.role, self.role)
        found: Message = {"role": role, "content": "\n".join(filter(None, [text, *calls]))}
        if self.images:
            found["images"] = self.images
        return found


def _call_text(call: Tool) -> str:
    given = call.named.arguments if call.named.arguments is not None else call.named.input
    return f"[called {call.named.name} as {call.id}]\n{'' if given is None else given}"


class StreamOptions(RequestObject):
    """What a stream has besides the answer."""

    include_usage: bool | None = None


class JsonSchema(Sent):
    """The schema that an answer has to fit; it is enforced if it is strict."""

    schema_: dict[str, Any] = Field({}, alias="schema")
    strict: bool | None = None


class ResponseFormat(Sent):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None:
            raise PydanticCustomError("missing", "json_schema must hold a schema")
        return self


class Refused(RequestObject):
    """Fields that would change the answer and cannot be honoured, with the values that do not change it."""

    n: Annotated[int, Field(ge=1, le=1)] | None = None
    functions: _Nothing = None
    function_call: Literal["none", "auto"] | None = None
    logprobs: Literal[False] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=0)] | None = None
    logit_bias: Annotated[dict[str, Any], Field(max_length=0)] | None = None
    presence_penalty: Annotated[float, Field(ge=0, le=0)] | None = None
    frequency_penalty: Annotated[float, Field(ge=0, le=0)] | None = None
    modalities: list[Literal["text"]] | None = None
    verbosity: Literal["medium"] | None = None
    audio: None = None
    web_search_options: None = None
    grammar: None = None
    guided_json: None = None
    guided_regex: None = None
    guided_choice: None = None
    guided_grammar: None = None
    structured_outputs: None = None
    background: Literal[False] | None = None
    context_management: _Nothing = None
    conversation: None = None
    prompt: None = None


class Sampling(Refused):
    """Fields that both APIs have."""

    model: Text
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    stream: bool | None = None
    user: str | None = None
    metadata: dict[str, str] | None = None
    seed: Annotated[int, Field(ge=-_INTEGERS, lt=_INTEGERS)] | None = None
    stop: Text | Annotated[list[Text], Field(max_length=_MOST_STOPS)] | None = None
    parallel_tool_calls: bool | None = None
    unsupported = frozenset(Refused.model_fields)


class ChatRequest(Sampling):
    """A chat completion request."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES)]
    max_tokens: Limit | None = None
    max_completion_tokens: Limit | None = None
    stream_options: StreamOptions | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[Tool], Field(max_length=_MOST_TOOLS)] | None = None
    tool_choice: Literal["auto", "none", "required"] | Tool | None = None

    @cached_property
    def question(self) -> Question:
        """What is asked.

        Raises:
            ApiError: nothing is, or it is not valid Unicode.
        """
        found = [each.message() for each in self.messages]
        if not any(each["role"] == "user" and (each["content"].strip() or "images" in each) for each in found):
            raise wrong_value("messages", "messages must hold a message of the user with some text")
        alone = len(found) == 1 and "images" not in found[0]
        try:
            return checked_question(found[0]["content"] if alone else found)
        except UsageError as error:
            raise wrong_value("messages", str(error)) from error

    @property
    def effort(self) -> Effort | None:
        """How much a Conductor may spend."""
        return None if self.reasoning_effort is None else _EFFORTS[self.reasoning_effort]

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts at which the answer ends."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    @property
    def labels(self) -> dict[str, str]:
        """What is kept with the run."""
        metadata = {"metadata": json.dumps(self.metadata)} if self.metadata else {}
        return metadata if self.user is None else {"user": self.user, **metadata}

    @cached_property
    def form(self) -> dict[str, Any] | None:
        """The form that the answer has to have; None: any."""
        shape = self.response_format
        return None if shape is None or shape.type == "text" else shape.sent()

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the call that gives the answer."""
        limits = [limit for limit in (self.max_tokens, self.max_completion_tokens) if limit is not None]
        found = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": min(limits, default=None),
            "stop": list(self.stops) or None,
            "reasoning_effort": self.reasoning_effort,
            "response_format": self.form,
        }
        return {name: value for name, value in found.items() if value is not None}

    @cached_property
    def offered(self) -> Tools | None:
        """The tools that workers are offered; None: there are none."""
        choice = self.tool_choice
        continues = self.messages[-1].role == "tool"  # a run that continues has offered tools before
        if not self.tools or (choice == "none" and not continues):
            return None
        wanted = choice.sent() if isinstance(choice, Tool) else None if choice == "auto" else choice
        return Tools(
            definitions=tuple(each.sent() for each in self.tools), parallel=self.parallel_tool_calls, choice=wanted
        )

    @property
    def results(self) -> dict[str, str]:
        """The results of tools with which the conversation ends, by the ids of the calls."""
        found: dict[str, str] = {}
        for each in reversed(self.messages):
            if each.role != "tool" or each.tool_call_id is None:
                break
            found[each.tool_call_id] = each.text
        return found


def chat_request(fields: Mapping[str, Any]) -> ChatRequest:
    """Check a request, given as the fields of its body.

    Raises:
        ApiError: it asks for what cannot be done.
    """
    found = validated(ChatRequest, fields)
    choice, names = found.tool_choice, [tool.named.name for tool in found.tools or ()]
    if isinstance(choice, Tool) and choice.named.name not in names:
        what = f"tool_choice must name a tool that is there (got {shown(choice.named.name)})"
        raise wrong_value("tool_choice", what)
    schema = None if found.response_format is None else found.response_format.json_schema
    if schema is not None and schema.strict:
        validated(Schema, schema.schema_, "response_format.json_schema.schema")
    assert found.question  # which is checked where it is made
    return found
