"""Answers of the chat completions API, as OpenAI and many other servers give them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from wfdsl.protocols import Finish, Reply, Usage, WorkerFailure
from wfdsl.workers.http_failure import error_in_body
from wfdsl.workers.plain_json import count, mapping, mappings, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wfdsl.protocols import Message

_FINISHES: Final[Mapping[str, Finish]] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filtered",
    "refusal": "refusal",
}


@dataclass(slots=True)
class ChatAnswer:
    """A chat completion, or the chunks of one."""

    _text: list[str] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _finish: str = ""
    _model: str = ""
    _usage: Usage | None = None

    @property
    def complete(self) -> bool:
        """Whether the server has said how the reply ended."""
        return self._finish != ""

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in a completion.

        Raises:
            WorkerFailure: it is an error, or holds no choices.
        """
        self._take(body, "message")
        if not mappings(body.get("choices")):
            raise WorkerFailure("the server sent a reply without any choices", retryable=True)

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in a chunk; the text that it adds.

        Raises:
            WorkerFailure: it is an error.
        """
        return self._take(event, "delta")

    def reply(self, messages: Sequence[Message]) -> Reply:
        """The reply. Where the server counts no tokens, their upper bound is charged: a token has at least one byte."""
        said, refusal = "".join(self._text), "".join(self._refusal)
        usage = self._usage or bound(messages, said + refusal)
        return Reply(said or refusal, _finish(self._finish, said, refusal), usage, self._model)

    def _take(self, body: Mapping[str, Any], part: str) -> str:
        if body.get("error"):
            raise error_in_body(body)
        choice = next(iter(mappings(body.get("choices"))), {})
        message = mapping(choice.get(part))
        new = _content(message.get("content"))
        self._text.append(new)
        self._refusal.append(text(message.get("refusal")))
        self._finish = text(choice.get("finish_reason")) or self._finish
        self._model = text(body.get("model")) or self._model
        self._usage = _usage(mapping(body.get("usage"))) or self._usage
        return new


def bound(messages: Sequence[Message], reply: str) -> Usage:
    """The most tokens that a call can have used, for a server that does not count them."""
    asked = sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
    return Usage(asked, len(reply.encode("utf-8", "replace")))


def _finish(reason: str, said: str, refusal: str) -> Finish:
    known = _FINISHES.get(reason, "stop")
    if known == "filtered":
        return known
    if not said.strip():
        return "refusal" if refusal else "empty"
    return known


def _content(content: Any) -> str:
    """A message's content: a string, or a list of parts."""
    return "".join(text(part.get("text")) for part in mappings(content)) or text(content)


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    if "prompt_tokens" not in usage:
        return None
    asked, completion = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    # Some servers leave thinking out of completion_tokens, but none leaves it out of the total.
    output = max(completion, count(usage, "total_tokens") - asked)
    said = count(mapping(usage.get("completion_tokens_details")), "reasoning_tokens")
    cached = count(mapping(usage.get("prompt_tokens_details")), "cached_tokens")
    return Usage(asked, output, max(said, output - completion), cached)
