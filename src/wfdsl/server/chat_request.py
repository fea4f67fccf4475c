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

from wfdsl.conductor.effort import Effort
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.tools import Tools
from wfdsl.server.api_errors import ApiError, not_supported, shown, wrong_value
from wfdsl.server.chat_messages import read_question, tool_results
from wfdsl.server.chat_tools import read_response_format, read_tools
from wfdsl.server.middleware import json_object

_MOST_STOPS: Final = 4  # as in OpenAI's API
_INTEGERS: Final = 2**63
_MOST_ANSWERS: Final = 16
"""Each one is a run. Our choice."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request that can be answered."""

    model: str
    question: Question
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the call that gives the answer."""
    count: int = 1
    """How many answers are wanted; each has a run of its own."""
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


def read_chat_request(body: bytes) -> ChatRequest:
    """Read and check a request.

    Raises:
        ApiError: it is not one, or asks for what cannot be done.
    """
    return chat_request(read_object(body))


def chat_request(fields: Mapping[str, Any]) -> ChatRequest:
    """Check a request, given as the fields of its body.

    Raises:
        ApiError: it asks for what cannot be done.
    """
    _refuse_unsupported(fields)
    model = fields.get("model")
    if not isinstance(model, str) or not model:
        raise wrong_value("model", "model must be a text: GET /v1/models lists the models")
    stop = _stop(fields.get("stop"))
    options = fields.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise wrong_value("stream_options", "stream_options must be an object")
    question, count = read_question(fields.get("messages")), _integer(fields, "n", 1)
    if count is not None and count > _MOST_ANSWERS:
        raise wrong_value("n", f"n must be from 1 to {_MOST_ANSWERS} (got {count})")
    effort = _effort(fields)
    return ChatRequest(
        model=model,
        question=question,
        settings=_settings(fields, stop),
        count=count or 1,
        effort=None if effort is None else _EFFORTS[effort],
        tools=read_tools(fields),
        results=tool_results(fields["messages"]),
        stop=stop,
        seed=_integer(fields, "seed", -_INTEGERS),
        stream=_flag(fields, "stream"),
        include_usage=_flag(options or {}, "include_usage"),
        labels=_labels(fields),
    )


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is, of which every text can be sent to a worker.

    Raises:
        ApiError: it is not one.
    """
    found = json_object(body)
    if b"\\u" in body:
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            what = "the body must be text that UTF-8 can hold: it has half of a surrogate pair"
            raise ApiError(400, what, code="invalid_json") from None
    return found


def _refuse_unsupported(fields: Mapping[str, Any]) -> None:
    for name, plain in _UNSUPPORTED.items():
        value = fields.get(name)
        if value is not None and value not in plain:
            raise not_supported(name, f"{name} is not supported: leave it out")


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


def _settings(fields: Mapping[str, Any], stop: tuple[str, ...]) -> dict[str, Any]:
    limits = [_integer(fields, name, 1) for name in ("max_tokens", "max_completion_tokens")]
    given = [limit for limit in limits if limit is not None]
    found = {
        "temperature": _number(fields, "temperature", 2),
        "top_p": _number(fields, "top_p", 1),
        "max_tokens": min(given, default=None),
        "stop": list(stop) or None,
        "reasoning_effort": _effort(fields),
        "response_format": read_response_format(fields.get("response_format")),
    }
    return {name: value for name, value in found.items() if value is not None}


def _effort(fields: Mapping[str, Any]) -> str | None:
    effort = fields.get("reasoning_effort")
    if effort is not None and (not isinstance(effort, str) or effort not in _EFFORTS):
        wanted = ", ".join(_EFFORTS)
        raise wrong_value("reasoning_effort", f"reasoning_effort must be one of {wanted} (got {shown(effort)})")
    return effort


def _stop(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise wrong_value("stop", f"stop must be a text, or a list of texts that are not empty (got {shown(value)})")
    if len(texts) > _MOST_STOPS:
        raise wrong_value("stop", f"stop must hold at most {_MOST_STOPS} texts (got {len(texts)})")
    return tuple(texts)


def _number(fields: Mapping[str, Any], name: str, largest: float) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise wrong_value(name, f"{name} must be a number (got {shown(value)})")
    if not 0 <= value <= largest:
        raise wrong_value(name, f"{name} must be from 0 to {largest:g} (got {value})")
    return float(value)


def _integer(fields: Mapping[str, Any], name: str, smallest: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value < _INTEGERS:
        at_least = f" from {smallest}" if smallest > 0 else ""
        raise wrong_value(name, f"{name} must be a whole number{at_least} (got {shown(value)})")
    return value


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise wrong_value(name, f"{name} must be true or false (got {shown(value)})")
    return bool(value)


def _labels(fields: Mapping[str, Any]) -> dict[str, str]:
    user, metadata = fields.get("user"), fields.get("metadata")
    if user is not None and not isinstance(user, str):
        raise wrong_value("user", f"user must be a text (got {shown(user)})")
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    ):
        raise wrong_value("metadata", "metadata must be an object whose values are texts")
    found = {} if user is None else {"user": user}
    return found | ({"metadata": json.dumps(metadata)} if metadata else {})
