"""What an entry adds to a call and its reply: sampling settings, grammar, system prompt, time limit, price.

A server that does not know a field ignores it silently, so a grammar is sent only to those that are known to take one.
Sources: llama.cpp, tools/server/README.md (`grammar`, GBNF); vLLM, docs/features/structured_outputs.md
(`structured_outputs`, EBNF in the form of GBNF for xgrammar, llguidance's dialect for its guidance backend; before 0.12
`guided_grammar`); SGLang, advanced_features/structured_outputs (`ebnf`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Message, Reply, WorkerFailure
from wfdsl.workers.entry import WorkerEntry


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
    """In the dialect that `grammars.dialect_of` says; no entry has it, calls bring it. So it is with what follows."""
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: str | Mapping[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: Mapping[str, Any] | None = None


_NAMES = tuple(field.name for field in fields(Sampling))
_UNSEEN = "[There are images here, which you cannot see.]"
_CONTROL_TOKEN = re.compile(r"<(?=[|｜][^<>\s]{1,60}[|｜]>|/?s>|(?:start|end)_of_turn>)|\[(?=/?INST\])")
"""How the tokens begin that part messages in the chat templates of ChatML, Llama, Mistral, Gemma and DeepSeek."""


def as_content(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages whose texts cannot end their message, for models that run here.

    Their tokenizers read `<|im_end|>` inside a text as the end of its message. A space makes it text: `< |im_end|>`.
    """
    return tuple({**message, "content": _CONTROL_TOKEN.sub(r"\g<0> ", message["content"])} for message in messages)


def sampling(entry: WorkerEntry, call: Call) -> Sampling:
    """The settings of one call.

    Raises:
        UsageError: the call brings a setting that no worker knows.
    """
    for name in call.settings:
        if name not in _NAMES:
            raise UsageError(f'a call cannot set "{name}"; it can set {", ".join(_NAMES)}')
    own = {name: getattr(entry, name) for name in _NAMES if hasattr(entry, name)}
    asked = {**own, **call.settings}
    stop = asked["stop"]
    return Sampling(**{**asked, "stop": (stop,) if isinstance(stop, str) else tuple(stop or ())})


def split_system(entry: WorkerEntry, messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """The text of all system messages, the entry's own first, and copies of the other messages, without images where
    the worker cannot see them.
    """
    system = [entry.system_prompt, *(message["content"] for message in messages if message["role"] == "system")]
    rest = [message.copy() for message in messages if message["role"] != "system"]
    for message in rest:
        if not entry.images and message.pop("images", None) is not None:
            message["content"] = f"{message['content']}\n\n{_UNSEEN}".lstrip()
    return "\n\n".join(filter(None, system)), rest


def with_system(entry: WorkerEntry, messages: Sequence[Message]) -> list[Message]:
    """The messages with one system message at the start: chat templates of small models take no more."""
    system, rest = split_system(entry, messages)
    return [Message(role="system", content=system), *rest] if system else rest


def priced(entry: WorkerEntry, reply: Reply) -> Reply:
    """The reply with its cost by the entry's price list."""
    cost = entry.cost_usd(reply.usage)
    return replace(reply, paid_usd=cost, list_usd=cost)


def require_no_tools(call: Call, who: str) -> None:
    """Refuse a call that brings tools or a form of the answer, for a worker that takes none.

    Raises:
        WorkerFailure: it does.
    """
    given = [name for name in ("tools", "response_format") if call.settings.get(name)]
    if given:
        raise WorkerFailure(f"{who} takes no {given[0]}; give the step to another worker", retryable=False, sent=False)


GrammarDialect: TypeAlias = Literal["gbnf", "llguidance"]


def dialect_of(entry: WorkerEntry) -> GrammarDialect:
    """The dialect in which an entry's model takes a grammar.

    Raises:
        UsageError: it takes none, and would leave one out without a word.
    """
    hosted = entry.provider == "openai" and (entry.base_url is None or entry.api == "responses")
    if hosted or entry.provider in ("anthropic", "google", "function"):
        who = "the responses API" if entry.api == "responses" else entry.provider
        raise UsageError(
            f'worker "{entry.name}": {who} takes no grammar; leave the grammar out, '
            f"or use a local model or a server of your own (base_url)"
        )
    if entry.grammar_dialect != "auto":
        return entry.grammar_dialect
    return "llguidance" if entry.provider == "transformers" else "gbnf"


def with_grammar(entry: WorkerEntry, body: Mapping[str, Any], grammar: str) -> dict[str, Any]:
    """The body of a request to an entry's server, with a grammar under the name that the server knows.

    Raises:
        UsageError: the server takes none.
    """
    dialect_of(entry)
    field = "grammar" if entry.grammar_field == "auto" else entry.grammar_field
    if field != "structured_outputs":
        return {**body, field: grammar}
    inside = body.get(field)
    return {**body, field: {**(inside if isinstance(inside, Mapping) else {}), "grammar": grammar}}


@asynccontextmanager
async def in_time(call: Call, timeout_s: float | None = None) -> AsyncIterator[None]:
    """Leave the block at the call's deadline, or after `timeout_s` seconds, whichever comes first.

    Raises:
        WorkerFailure: the time is over; `sent` is False if it was over before the block began.
    """
    now = asyncio.get_running_loop().time()
    if call.deadline is not None and call.deadline <= now:
        raise WorkerFailure("the deadline had passed before the call was sent", retryable=True, sent=False)
    own_end = None if timeout_s is None else now + timeout_s
    ends = [end for end in (call.deadline, own_end) if end is not None]
    clock = asyncio.timeout_at(min(ends, default=None))
    try:
        async with clock:
            yield
    except TimeoutError:
        if not clock.expired():
            raise
        late = "no complete reply before the deadline of the step or of the run"
        if own_end == min(ends):
            late = f"no complete reply within {timeout_s:g} s; timeout_s in the pool allows more"
        raise WorkerFailure(late, retryable=True) from None
