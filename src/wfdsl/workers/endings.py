"""How replies end: one table of the words that providers use, in every protocol.

A word that is not in the table is not a normal end: half a text must never pass as an answer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from wfdsl.protocols import Finish

ENDINGS: Final[Mapping[Finish, tuple[str, ...]]] = {
    "stop": (
        "stop",  # OpenAI, Google, Ollama, llama.cpp, vLLM, OpenRouter
        "completed",  # Responses
        "complete",  # Cohere
        "end_turn",  # Anthropic, xAI
        "stop_sequence",  # Anthropic, TGI
        "eos",  # llama.cpp, Together
        "eos_token",  # TGI
        "tool_calls",  # OpenAI and others
        "function_call",  # OpenAI, earlier
        "tool_use",  # Anthropic
    ),
    "length": (
        "length",  # OpenAI, Ollama, vLLM, llama.cpp, OpenRouter
        "limit",  # llama.cpp
        "max_tokens",  # Anthropic, Google, Cohere
        "max_output_tokens",  # Responses
        "model_length",  # Mistral
        "model_context_window_exceeded",  # Anthropic
        "repetition_truncation",  # servers that stop a reply which repeats itself
    ),
    "refusal": ("refusal",),  # Anthropic
    "filtered": (
        "content_filter",  # OpenAI, Google, OpenRouter; Google adds its own word after a colon
        "safety",  # Google, as the next five
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
        "error_toxic",  # Cohere
        "sensitive",  # Zhipu
    ),
}
"""The words in lower case, by what they mean. Whether tools are called, the reply itself says. All other words, such as
`error`, `abort`, `cancelled`, `network_error`, `insufficient_system_resource`, `pause_turn` or `in_progress`, mean that
the reply was broken off.
"""
_MEANING: Final = {word: finish for finish, words in ENDINGS.items() for word in words}


def ended(said: str, word: str, *, refusal: bool = False, tools: bool = False, thinking: bool = False) -> Finish:
    """How a reply ended, of which `said` is the text: one without a text is no answer, whatever the provider's word. No
    word is the normal end of a whole reply.
    """
    plain = word.strip().lower().partition(":")[0]
    finish: Finish = _MEANING.get(plain, "broken_off") if plain else "stop"
    if finish in ("filtered", "broken_off", "refusal") or not is_blank(said):
        return finish
    if refusal:
        return "refusal"
    if finish == "length":
        return "out_of_tokens"
    if tools:
        return "tool_calls"
    return "only_thinking" if thinking else "empty"


def is_blank(text: str) -> bool:
    """Whether a text has nothing to see: no characters, or only spaces, control, format and filling characters."""
    return all(char.isspace() or char in _FILLERS or unicodedata.category(char) in _UNSEEN for char in text)


_FILLERS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that are drawn as nothing: fillers of Hangul, and the blank of Braille."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Mn"})


def is_error(body: Mapping[str, Any]) -> bool:
    """Whether a body with status 200, or an event, says that it is an error, in the shape of any provider."""
    base = body.get("base_resp")  # MiniMax
    refused = isinstance(base, dict) and base.get("status_code") not in (0, None)
    only_a_reason = body.keys().isdisjoint(_ANSWERS) and any(isinstance(body.get(name), str) for name in _REASONS)
    return bool(body.get("error")) or "error" in (body.get("object"), body.get("type")) or refused or only_a_reason


_ANSWERS: Final = ("choices", "output", "content", "response", "delta")
_REASONS: Final = ("message", "detail", "msg")


def word_of(value: Any) -> str:
    """A provider's word for the end of a reply, from its JSON; what is not a text is not a word of the table."""
    return value if isinstance(value, str) else "" if value is None else f"({type(value).__name__})"
