"""The body of a chat completion request: what is honoured, what is refused, what makes no difference.

A field that would change the answer is honoured or refused, never ignored. Fields that no class here names make no
difference to the answer (`service_tier`, `store`, `prompt_cache_key`), or are not known yet. The classes are both what
is checked and what the OpenAPI document shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from wfdsl.conductor.effort import Effort
from wfdsl.errors import UsageError
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import checked_question
from wfdsl.interpreter.tools import Tools
from wfdsl.protocols import Message
from wfdsl.server.api_errors import not_supported, shown, wrong_value
from wfdsl.server.endpoints import json_object
from wfdsl.server.json_schema import Schema

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
_UNSUPPORTED: Final = "unsupported"
"""The type of pydantic's error for what the server cannot honour."""
_Model = TypeVar("_Model", bound=BaseModel)
Fields: TypeAlias = Mapping[str, Any]


class RequestObject(BaseModel):
    """An object of a request. It may have other fields."""

    model_config = ConfigDict(strict=True, extra="ignore")


def _kinds(*known: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if isinstance(value, str) and value not in known:
            told = {"kind": shown(value), "known": " and ".join(known)}
            raise PydanticCustomError(_UNSUPPORTED, "{kind} is not supported, only {known}", told)
        return value

    return check


Text: TypeAlias = Annotated[str, Field(min_length=1)]
Limit: TypeAlias = Annotated[int, Field(ge=1, lt=_INTEGERS)]
Kind: TypeAlias = Annotated[Literal["function", "custom"], BeforeValidator(_kinds("function", "custom"))]


class Image(RequestObject):
    """Where an image is: at an address, or in the text itself."""

    url: str = Field(pattern="^(https?://|data:image/)")


class Part(RequestObject):
    """A part of a message: a text or an image."""

    type: Annotated[
        Literal["text", "input_text", "refusal", "image_url"],
        BeforeValidator(_kinds("text", "input_text", "refusal", "image_url")),
    ]
    text: str | None = None
    refusal: str | None = None
    image_url: Annotated[str, Field(pattern="^(https?://|data:image/)")] | Image | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.content is None:
            raise PydanticCustomError("missing", "must have what its type says")
        return self

    @property
    def content(self) -> str | None:
        """The text, or the URL of the image."""
        if self.type == "image_url":
            return self.image_url.url if isinstance(self.image_url, Image) else self.image_url
        return self.refusal if self.type == "refusal" else self.text


class Named(RequestObject):
    """What a tool, or the call of one, is named, and what a call gives it."""

    name: Text
    parameters: dict[str, Any] | None = None
    arguments: Any = None
    input: Any = None


class Tool(RequestObject):
    """A tool, or the call of one."""

    type: Kind = "function"
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
            return "".join(part.content or "" for part in self.content if part.type != "image_url")
        return self.content or ""

    @property
    def images(self) -> list[str]:
        """The URLs of its images."""
        parts = self.content if isinstance(self.content, list) else []
        return [part.content or "" for part in parts if part.type == "image_url"]

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


class JsonSchema(RequestObject):
    """The schema that an answer has to fit; it is enforced if it is strict."""

    schema_: dict[str, Any] = Field({}, alias="schema")
    strict: bool | None = None


class ResponseFormat(RequestObject):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None:
            raise PydanticCustomError("missing", "json_schema must hold a schema")
        return self


class Sampling(RequestObject):
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


class ChatBody(Sampling):
    """A chat completion request as it is sent."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES)]
    max_tokens: Limit | None = None
    max_completion_tokens: Limit | None = None
    stream_options: StreamOptions | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[Tool], Field(max_length=_MOST_TOOLS)] | None = None
    tool_choice: Literal["auto", "none", "required"] | Tool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request that can be answered."""

    model: str
    question: Question
    settings: Fields = field(default_factory=dict)
    """Settings of the call that gives the answer."""
    effort: Effort | None = None
    """How much a Conductor may spend."""
    tools: Tools | None = None
    """The client's tools."""
    results: Mapping[str, str] = field(default_factory=dict)
    """Results of tools, with which the conversation ends, by the ids of the calls."""
    stop: tuple[str, ...] = ()
    seed: int | None = None
    stream: bool = False
    include_usage: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    """`user` and `metadata`, which are kept with the run."""

    @property
    def has_form(self) -> bool:
        """Whether an answer may have another form than was asked for."""
        return "response_format" in self.settings


def read_chat_request(body: bytes) -> ChatRequest:
    """Read and check a request.

    Raises:
        ApiError: it is not one, or asks for what cannot be done.
    """
    return chat_request(json_object(body))


def chat_request(fields: Fields) -> ChatRequest:
    """Check a request, given as the fields of its body.

    Raises:
        ApiError: it asks for what cannot be done.
    """
    refuse_unsupported(fields, _UNSUPPORTED_FIELDS)
    body = validated(ChatBody, fields)
    schema = None if body.response_format is None else body.response_format.json_schema
    if schema is not None and schema.strict:
        validated(Schema, schema.schema_, "response_format.json_schema.schema")
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    options = body.stream_options
    return ChatRequest(
        model=body.model,
        question=_question(body.messages),
        settings=_settings(body, fields, stop),
        effort=None if body.reasoning_effort is None else _EFFORTS[body.reasoning_effort],
        tools=_tools(body, fields),
        results=_results(body.messages),
        stop=stop,
        seed=body.seed,
        stream=bool(body.stream),
        include_usage=options is not None and bool(options.include_usage),
        labels={
            **({} if body.user is None else {"user": body.user}),
            **({"metadata": json.dumps(body.metadata)} if body.metadata else {}),
        },
    )


def refuse_unsupported(fields: Fields, plain: Mapping[str, tuple[object, ...]]) -> None:
    """Refuse fields that would change the answer; `plain` has them, with the values that do not.

    Raises:
        ApiError: there is one.
    """
    for name, values in plain.items():
        value = fields.get(name)
        if value is not None and value not in values:
            raise not_supported(name, f"{name} is not supported: leave it out")


_UNSUPPORTED_FIELDS: Final[Mapping[str, tuple[object, ...]]] = {
    "n": (1,),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "modalities": (["text"],),
    "verbosity": ("medium",),
    **dict.fromkeys(("audio", "web_search_options", "grammar", "guided_json", "guided_regex"), ()),
    **dict.fromkeys(("guided_choice", "guided_grammar", "structured_outputs"), ()),
}


def validated(model: type[_Model], fields: Fields, place: str = "") -> _Model:
    """The fields of an object as a class of them; `place` is where it is in the body.

    Raises:
        ApiError: one of them has a wrong value, or cannot be honoured.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        places = [(_place(each, fields), each) for each in error.errors(include_url=False)]
        inside, first = max(places, key=lambda each: len(each[0]))  # of a union, the alternative that fits best
    param = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in inside)
    param = f"{place}{param}".removeprefix(".")
    if first["type"] == _UNSUPPORTED:
        raise not_supported(param, f"{param} {first['msg']}")
    said = first["msg"].replace("Input should be", "must be")
    raise wrong_value(param, f"{param}: {said} (got {shown(first['input'])})")


def _place(error: ErrorDetails, value: Any) -> list[int | str]:
    """The place of an error in a body: pydantic names the alternatives of a union, too."""
    found: list[int | str] = []
    for part in error["loc"]:
        is_missing = error["type"] == "missing" and part is error["loc"][-1]
        if isinstance(value, dict) and isinstance(part, str) and (part in value or is_missing):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            continue
        found.append(part)
    return found


def _question(messages: list[ChatMessage]) -> Question:
    found = [each.message() for each in messages]
    if not any(each["role"] == "user" and (each["content"].strip() or "images" in each) for each in found):
        raise wrong_value("messages", "messages must hold a message of the user with some text")
    alone = len(found) == 1 and "images" not in found[0]
    try:
        return checked_question(found[0]["content"] if alone else found)
    except UsageError as error:
        raise wrong_value("messages", str(error)) from error


def _results(messages: list[ChatMessage]) -> dict[str, str]:
    """The results of tools with which a conversation ends, by the ids of the calls."""
    found: dict[str, str] = {}
    for each in reversed(messages):
        if each.role != "tool" or each.tool_call_id is None:
            break
        found[each.tool_call_id] = each.text
    return found


def _settings(body: ChatBody, fields: Fields, stop: tuple[str, ...]) -> dict[str, Any]:
    limits = [limit for limit in (body.max_tokens, body.max_completion_tokens) if limit is not None]
    shape = body.response_format
    found = {
        "temperature": body.temperature,
        "top_p": body.top_p,
        "max_tokens": min(limits, default=None),
        "stop": list(stop) or None,
        "reasoning_effort": body.reasoning_effort,
        "response_format": None if shape is None or shape.type == "text" else fields["response_format"],
    }
    return {name: value for name, value in found.items() if value is not None}


def _tools(body: ChatBody, fields: Fields) -> Tools | None:
    """The tools that workers are offered; None: there are none."""
    choice, names = body.tool_choice, [tool.named.name for tool in body.tools or ()]
    if isinstance(choice, Tool) and choice.named.name not in names:
        what = f"tool_choice must name a tool that is there (got {shown(choice.named.name)})"
        raise wrong_value("tool_choice", what)
    continues = body.messages[-1].role == "tool"  # a run that continues has offered tools before
    if not body.tools or (choice == "none" and not continues):
        return None
    wanted = None if choice == "auto" else fields.get("tool_choice")
    return Tools(definitions=tuple(fields["tools"]), parallel=body.parallel_tool_calls, choice=wanted)
