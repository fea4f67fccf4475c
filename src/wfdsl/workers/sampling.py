"""What an entry adds to a call and to its reply: sampling settings, the system prompt, and the price."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from wfdsl.errors import UsageError
from wfdsl.protocols import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.protocols import Call, Reply
    from wfdsl.workers.pool import WorkerEntry


@dataclass(frozen=True, slots=True)
class Sampling:
    """What `Call.settings` may override. None: the provider's default."""

    temperature: float | None
    top_p: float | None
    max_tokens: int
    seed: int | None
    stop: tuple[str, ...]
    reasoning_effort: str | None
    thinking_budget: int | None
    grammar: str | None = None
    """In the dialect that `grammars.dialect_of` says; no entry has it, calls bring it."""


_NAMES = tuple(field.name for field in fields(Sampling))


def sampling(entry: WorkerEntry, call: Call) -> Sampling:
    """The settings of one call.

    Raises:
        UsageError: the call brings a setting that no worker knows.
    """
    own = Sampling(**{name: getattr(entry, name) for name in _NAMES if name != "grammar"})
    for name in call.settings:
        if name not in _NAMES:
            raise UsageError(f'a call cannot set "{name}"; it can set {", ".join(_NAMES)}')
    if not call.settings:
        return own
    stop = call.settings.get("stop", own.stop)
    return replace(own, **{**call.settings, "stop": (stop,) if isinstance(stop, str) else tuple(stop or ())})


def split_system(entry: WorkerEntry, messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """The text of all system messages, the entry's own first, and copies of the other messages."""
    system = [entry.system_prompt, *(message["content"] for message in messages if message["role"] == "system")]
    rest = [Message(role=m["role"], content=m["content"]) for m in messages if m["role"] != "system"]
    return "\n\n".join(filter(None, system)), rest


def with_system(entry: WorkerEntry, messages: Sequence[Message]) -> list[Message]:
    """The messages with one system message at the start: chat templates of small models take no more."""
    system, rest = split_system(entry, messages)
    return [Message(role="system", content=system), *rest] if system else rest


def priced(entry: WorkerEntry, reply: Reply) -> Reply:
    """The reply with its cost by the entry's price list."""
    cost = entry.cost_usd(reply.usage)
    return replace(reply, paid_usd=cost, list_usd=cost)
