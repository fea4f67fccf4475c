"""Answers of OpenAI's responses API."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from wfdsl.protocols import Finish, Reply, Usage, WorkerFailure
from wfdsl.workers.chat_answer import bound
from wfdsl.workers.http_failure import error_in_body
from wfdsl.workers.plain_json import count, mapping, mappings, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wfdsl.protocols import Message

_LAST_EVENTS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(slots=True)
class ResponsesAnswer:
    """A response, or the events of one: the last event holds it whole."""

    _body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the response has come."""
        return bool(self._body)

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in a response.

        Raises:
            WorkerFailure: it is an error, or holds no output.
        """
        if body.get("error"):
            raise error_in_body(body)
        if not isinstance(body.get("output"), list):
            raise WorkerFailure("the server sent a response without any output", retryable=True)
        self._body = body

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in an event; the text that it adds.

        Raises:
            WorkerFailure: it is an error.
        """
        kind = event.get("type")
        if kind == "error" or "error" in event:
            raise error_in_body(event)
        if kind in _LAST_EVENTS:
            self.whole(mapping(event.get("response")))
        return text(event.get("delta")) if kind == "response.output_text.delta" else ""

    def reply(self, messages: Sequence[Message]) -> Reply:
        """The reply. Where the server counts no tokens, their upper bound is charged."""
        parts = [part for item in mappings(self._body.get("output")) for part in mappings(item.get("content"))]
        said = "".join(text(part.get("text")) for part in parts if part.get("type") == "output_text")
        refusal = "".join(text(part.get("refusal")) for part in parts if part.get("type") == "refusal")
        usage = _usage(mapping(self._body.get("usage"))) or bound(messages, said + refusal)
        return Reply(said or refusal, self._finish(said, refusal), usage, text(self._body.get("model")))

    def _finish(self, said: str, refusal: str) -> Finish:
        reason = mapping(self._body.get("incomplete_details")).get("reason")
        if reason == "content_filter":
            return "filtered"
        if not said.strip():
            return "refusal" if refusal else "empty"
        return "length" if reason == "max_output_tokens" else "stop"


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    if "input_tokens" not in usage:
        return None
    return Usage(
        count(usage, "input_tokens"),
        count(usage, "output_tokens"),
        count(mapping(usage.get("output_tokens_details")), "reasoning_tokens"),
        count(mapping(usage.get("input_tokens_details")), "cached_tokens"),
    )
