"""Rows whose completions begin with words that are given: they stand in the prompt, so that no reward teaches them.

The prompt of such a row is a text, in which the completion has begun already; `asked` keeps its messages. Our choice:
what a small model reads in its prompt is forgotten under rewards, or turned into one more way to choose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def rendered(tokenizer: Any, conversations: Sequence[Any], beginnings: Sequence[str]) -> list[str]:
    """Conversations as the texts that a network goes on from, each with what its answer begins with."""
    asked = tokenizer.apply_chat_template(list(conversations), add_generation_prompt=True, tokenize=False)
    return [f"{prompt}{beginning}" for prompt, beginning in zip(asked, beginnings, strict=True)]


def begun(row: Mapping[str, Any], beginning: str, tokenizer: Any) -> dict[str, Any]:
    """The row with a prompt in which the completion begins so."""
    messages = messages_of(row)
    (text,) = rendered(tokenizer, [messages], [beginning])
    if tokenizer("").input_ids:  # what it begins every text with: the trainer will have it do so, once more
        text = text.removeprefix(tokenizer.bos_token or "")
    return {**row, "asked": messages, "begun": beginning, "prompt": text}


def messages_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conversation that a row asks for a completion of."""
    messages: list[dict[str, Any]] = row["asked"] or row["prompt"]
    return messages


def whole(row: Mapping[str, Any], completion: Any) -> str:
    """A completion from its beginning; the trainer gives messages for messages, and a text for a text."""
    text = completion if isinstance(completion, str) else str(completion[0]["content"])
    return f"{row['begun']}{text}"
