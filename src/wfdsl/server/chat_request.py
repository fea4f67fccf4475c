"""The body of a chat completion request: what is honoured, what is refused, what makes no difference.

A field that would change the answer is honoured or refused, never ignored. Fields that this module does not name make
no difference to the answer (`service_tier`, `store`, `prompt_cache_key`), or are not known yet.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.interpreter.arguments import checked_question
from wfdsl.interpreter.context import Question
from wfdsl.protocols import Message
from wfdsl.server.api_errors import ApiError, not_supported

_ROLES: Final = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_MOST_STOPS: Final = 4  # as in OpenAI's API
_INTEGERS: Final = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request that can be answered."""

    model: str
    question: Question
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sampling settings of the call that gives the answer."""
    stop: tuple[str, ...] = ()
    seed: int | None = None
    stream: bool = False
    include_usage: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    """`user` and `metadata`, which are kept with the run."""


def read_chat_request(body: bytes) -> ChatRequest:
    """Read and check a request.

    Raises:
        ApiError: it is not one, or asks for what cannot be done.
    """
    fields = read_object(body)
    _refuse_unsupported(fields)
    model = fields.get("model")
    if not isinstance(model, str) or not model:
        raise _wrong("model", "model must be a text: GET /v1/models lists the models")
    stop = _stop(fields.get("stop"))
    options = fields.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise _wrong("stream_options", "stream_options must be an object")
    return ChatRequest(
        model=model,
        question=_question(fields.get("messages")),
        settings=_settings(fields, stop),
        stop=stop,
        seed=_integer(fields, "seed", -_INTEGERS),
        stream=_flag(fields, "stream"),
        include_usage=_flag(options or {}, "include_usage"),
        labels=_labels(fields),
    )


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is.

    Raises:
        ApiError: it is not one.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not valid JSON: {error}", code="invalid_json") from None
    if not isinstance(found, dict):
        raise ApiError(400, "the body must be a JSON object", code="invalid_json")
    return found


def _refuse_unsupported(fields: Mapping[str, Any]) -> None:
    if fields.get("tools") and fields.get("tool_choice") != "none":
        raise not_supported("tools", "tools are not supported: leave tools out, or set tool_choice to none")
    for name, plain in _UNSUPPORTED.items():
        value = fields.get(name)
        if value is not None and value not in plain:
            raise not_supported(name, f"{name} is not supported: leave it out")
    shape = fields.get("response_format")
    if shape is not None and (not isinstance(shape, dict) or shape.get("type") != "text"):
        raise not_supported("response_format", 'response_format is not supported, except for {"type": "text"}')
    count = fields.get("n")
    if count is not None and (count != 1 or isinstance(count, bool)):
        raise not_supported("n", f"n must be 1: send one request for each answer (got {_shown(count)})")


_UNSUPPORTED: Final[Mapping[str, tuple[Any, ...]]] = {
    "functions": ([],),
    "function_call": ("none", "auto"),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "modalities": (["text"],),
    "audio": (),
    "web_search_options": (),
    "verbosity": ("medium",),
    "grammar": (),
    "guided_json": (),
    "guided_regex": (),
    "guided_choice": (),
    "guided_grammar": (),
    "structured_outputs": (),
}
"""Fields that would change the answer, with the values that do not."""


def _question(messages: Any) -> Question:
    if not isinstance(messages, list) or not messages:
        raise _wrong("messages", "messages must be a list with at least one message")
    found = [_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
    if not any(message["role"] == "user" and message["content"].strip() for message in found):
        raise _wrong("messages", "messages must hold a message of the user with some text")
    try:
        return checked_question(found[0]["content"] if len(found) == 1 else found)
    except UsageError as error:
        raise _wrong("messages", str(error)) from error


def _message(message: Any, place: str) -> Message:
    if not isinstance(message, dict):
        raise _wrong(place, f"{place} must be an object (got {_shown(message)})")
    role = message.get("role")
    if role in ("tool", "function") or message.get("tool_calls") or message.get("function_call"):
        raise not_supported(place, f"{place}: tool calls and their results are not supported")
    if not isinstance(role, str) or role not in _ROLES:
        raise _wrong(f"{place}.role", f"{place}.role must be one of {', '.join(_ROLES)} (got {_shown(role)})")
    text = _text(message.get("content"), f"{place}.content")
    return {"role": _ROLES[role], "content": text}  # type: ignore[typeddict-item]  # the values of _ROLES are roles


def _text(content: Any, place: str) -> str:
    """A message's content: a text, or a list of parts of text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise _wrong(place, f"{place} must be a text or a list of parts (got {_shown(content)})")
    return "".join(_part(part, f"{place}[{index}]") for index, part in enumerate(content))


def _part(part: Any, place: str) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise _wrong(place, f"{place} must be an object with a type (got {_shown(part)})")
    kind = "text" if part["type"] == "input_text" else part["type"]
    if kind not in ("text", "refusal"):
        raise not_supported(place, f"{place}: parts of type {_shown(kind)} are not supported, only text")
    if not isinstance(part.get(kind), str):
        raise _wrong(place, f"{place}.{kind} must be a text (got {_shown(part.get(kind))})")
    return str(part[kind])


def _settings(fields: Mapping[str, Any], stop: tuple[str, ...]) -> dict[str, Any]:
    limits = [_integer(fields, name, 1) for name in ("max_tokens", "max_completion_tokens")]
    given = [limit for limit in limits if limit is not None]
    effort = fields.get("reasoning_effort")
    if effort is not None and not isinstance(effort, str):
        raise _wrong("reasoning_effort", f"reasoning_effort must be a text (got {_shown(effort)})")
    found = {
        "temperature": _number(fields, "temperature", 2),
        "top_p": _number(fields, "top_p", 1),
        "max_tokens": min(given, default=None),
        "stop": list(stop) or None,
        "reasoning_effort": effort,
    }
    return {name: value for name, value in found.items() if value is not None}


def _stop(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise _wrong("stop", f"stop must be a text, or a list of texts that are not empty (got {_shown(value)})")
    if len(texts) > _MOST_STOPS:
        raise _wrong("stop", f"stop must hold at most {_MOST_STOPS} texts (got {len(texts)})")
    return tuple(texts)


def _number(fields: Mapping[str, Any], name: str, largest: float) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(name, f"{name} must be a number (got {_shown(value)})")
    if not 0 <= value <= largest:
        raise _wrong(name, f"{name} must be from 0 to {largest:g} (got {value})")
    return float(value)


def _integer(fields: Mapping[str, Any], name: str, smallest: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value < _INTEGERS:
        at_least = f" from {smallest}" if smallest > 0 else ""
        raise _wrong(name, f"{name} must be a whole number{at_least} (got {_shown(value)})")
    return value


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise _wrong(name, f"{name} must be true or false (got {_shown(value)})")
    return bool(value)


def _labels(fields: Mapping[str, Any]) -> dict[str, str]:
    user, metadata = fields.get("user"), fields.get("metadata")
    if user is not None and not isinstance(user, str):
        raise _wrong("user", f"user must be a text (got {_shown(user)})")
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    ):
        raise _wrong("metadata", "metadata must be an object whose values are texts")
    found = {} if user is None else {"user": user}
    return found | ({"metadata": json.dumps(metadata)} if metadata else {})


def _wrong(param: str, message: str) -> ApiError:
    return ApiError(400, message, code="invalid_value", param=param)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
