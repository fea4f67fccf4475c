"""What the interpreter knows of a worker besides how to ask it: its limits, prices, and what makes it the same worker.

Pools describe workers in their own way; here only what the layers need is read, once per worker and run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wfdsl.protocols import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl.interpreter.environment import WorkerPool
    from wfdsl.protocols import Message

_MUCH = Usage(1_000_000, 1_000_000)
_NOT_IDENTITY = {
    "description",
    "tags",
    "limits",
    "prices",
    "timeout_s",
    "idle_timeout_s",
    "retries",
    "fallback",
    "api_key_env",
    "api_key_file",
    "headers_env",
    "proxy",
    "proxy_env",
    "ca_file",
}
"""Fields of an entry that change when, where from or at what price an answer comes, but not which answer."""


@dataclass(frozen=True)
class Terms:
    """What one worker's layers go by."""

    ordinal: int
    entry: Any
    """The pool's own description of the worker."""
    name: str
    retries: int
    """Further attempts after a failure that may pass."""
    fallbacks: tuple[int, ...]
    """The workers to ask when this one has failed for good, in order."""
    concurrency: int | None
    """Calls in flight at the same time; None: no limit."""
    requests_per_minute: int | None
    tokens_per_minute: int | None
    output_limit: int | None
    """The most output tokens of a call, thinking included; None: not known."""
    system_prompt: str
    place: tuple[Any, ...]
    """Which model at which server it is, and under which limits; empty for a worker that lives in this process."""
    conductor: bool
    """Whether the worker runs workflows of its own."""

    @cached_property
    def priced(self) -> bool:
        """Whether there is a price list."""
        return self.cost_usd(_MUCH) is not None

    @cached_property
    def free(self) -> bool:
        """Whether the price list says that it costs nothing."""
        return self.cost_usd(_MUCH) == 0

    def cost_usd(self, usage: Usage) -> float | None:
        """What tokens cost by the price list, in US dollars; None if there is none."""
        cost = getattr(self.entry, "cost_usd", None)
        return None if cost is None else cost(usage)

    def input_bound(self, messages: tuple[Message, ...]) -> int:
        """The most input tokens that messages can be: their UTF-8 bytes, since a token is at least one byte."""
        total = self._system_bytes
        for message in messages:
            text = message["content"]
            total += len(text) if text.isascii() else utf8_bytes(text)
        return total

    def output_bound(self, settings: Mapping[str, Any]) -> int | None:
        """The most output tokens of a call with these settings; None if nothing limits them."""
        limit = settings.get("max_tokens")
        if limit is None:
            return self.output_limit
        thinking = getattr(self.entry, "thinking_budget", None) or 0
        return int(limit) + int(thinking)

    @cached_property
    def _system_bytes(self) -> int:
        return utf8_bytes(self.system_prompt)

    @cached_property
    def fingerprint(self) -> str:
        """What makes this the same worker to the journal: everything that can change its answers."""
        dump = getattr(self.entry, "model_dump", None)
        if dump is None:
            identity: Any = [self.name, getattr(self.entry, "provider", ""), getattr(self.entry, "model", "")]
        else:
            identity = dump(mode="json", exclude=_NOT_IDENTITY)
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def terms_of(pool: WorkerPool, ordinal: int) -> Terms:
    """Read a worker's terms; what an entry does not say is not limited, and never retried."""
    entry = pool.entry(ordinal)
    limits = getattr(entry, "limits", None)
    return Terms(
        ordinal=ordinal,
        entry=entry,
        name=entry.name,
        retries=getattr(entry, "retries", 0),
        fallbacks=_fallbacks(pool, ordinal),
        concurrency=getattr(limits, "concurrency", None),
        requests_per_minute=getattr(limits, "requests_per_minute", None),
        tokens_per_minute=getattr(limits, "tokens_per_minute", None),
        output_limit=getattr(entry, "output_limit", None),
        system_prompt=getattr(entry, "system_prompt", ""),
        place=_place(entry),
        conductor=ordinal in getattr(pool, "conductors", ()),
    )


def utf8_bytes(text: str) -> int:
    """The length of a text in UTF-8; a lone surrogate counts as the three bytes of its replacement."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _place(entry: Any) -> tuple[Any, ...]:
    model = getattr(entry, "model", "")
    limits = getattr(entry, "limits", None)
    return (entry.name, entry.provider, model, entry.base_url, entry.api_key_env, str(limits)) if model else ()


def _fallbacks(pool: WorkerPool, ordinal: int) -> tuple[int, ...]:
    """The chain of fallback workers, which ends where it would come back to a worker."""
    by_name = None
    chain = [ordinal]
    while (name := getattr(pool.entry(chain[-1]), "fallback", None)) is not None:
        by_name = by_name or {pool.entry(other).name: other for other in pool.ordinals}
        if name not in by_name or by_name[name] in chain:
            break
        chain.append(by_name[name])
    return tuple(chain[1:])
