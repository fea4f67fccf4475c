"""Abilities of a model's server, found out by asking: what a workflow may need, and its own words do not tell.

Each ability is tried with one small request, whose reply shows whether the server did what it was asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from wfdsl.errors import UsageError, WfdslError
from wfdsl.protocols import PROBE, Call, Message, Reply, Worker
from wfdsl.workers.call_settings import dialect_of
from wfdsl.workers.endings import ENDINGS, is_blank
from wfdsl.workers.entry import WorkerEntry

LONGEST_WAIT_S = 60.0
_FEW_TOKENS: Final = 16
"""OpenAI's APIs take no smaller limit."""
_TOKENS: Final = 64
"""Enough for a model that must think a little before it says anything. Our choice."""
_CONTEXT_TOKENS: Final = 8000
"""What is tried where no context is stated: about what three visible replies of the usual length need. Our choice."""
_FILLER: Final = "one two three four five six seven eight nine ten\n"
_FILLER_WORDS: Final = 10
_MANY: Final = "Write the numbers from 1 to 500, each on a line of its own."
_WRITTEN_BY_GRAMMAR: Final = "zebra-417"
_GRAMMARS: Final = {
    "gbnf": f'root ::= "{_WRITTEN_BY_GRAMMAR}"\n',
    "llguidance": f'%llguidance {{}}\nstart: "{_WRITTEN_BY_GRAMMAR}"\n',
}
_TOOL: Final = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks a word up in a dictionary.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}


_PROBED: Final = Call(({"role": "user", "content": PROBE},), settings={"max_tokens": _TOKENS})


class Ability(NamedTuple):
    """Whether a worker can do something."""

    name: str
    ok: bool | None
    """None: it was not tried, since the provider has no such thing."""
    message: str
    """What the server did."""


_Shown: TypeAlias = Callable[[Reply, Sequence[str]], tuple[bool, str]]
"""Whether a reply, and the pieces in which it came, show an ability; and what they show."""
_Trial: TypeAlias = tuple[Call, _Shown]
"""How an ability is tried."""


def price_bound(entry: WorkerEntry) -> tuple[int, float | None]:
    """The requests that `abilities_of` makes, and the most that they cost in US dollars; None: no price is known."""
    calls = [trial[0] for trial in _trials(entry).values() if trial is not None]
    sizes = [len(f"{entry.system_prompt}{call.settings}{call.messages}".encode()) for call in calls]
    # A token is at least one byte.
    usd = [entry.most_usd(size, _TOKENS + (entry.thinking_budget or 0)) or 0.0 for size in sizes]
    return len(calls), None if entry.prices is None else sum(usd)


async def abilities_of(entry: WorkerEntry, worker: Worker) -> list[Ability]:
    """Try everything at once."""
    tried = [_tried(name, worker, trial) for name, trial in _trials(entry).items()]
    return list(await asyncio.gather(*tried))


async def _tried(name: str, worker: Worker, trial: _Trial | None) -> Ability:
    if trial is None:
        return Ability(name, ok=None, message="not known to this provider")
    (call, shown), pieces = trial, list[str]()
    try:
        return Ability(name, *shown(await asked(worker, call, pieces.append), pieces))
    except WfdslError as error:
        return Ability(name, ok=False, message=str(error))


async def asked(worker: Worker, call: Call = _PROBED, on_delta: Callable[[str], None] = lambda _: None) -> Reply:
    """A worker's reply, which is asked for as `run` does: in a stream.

    Raises:
        WfdslError: why there is none, whatever a worker of another package raises.
    """
    try:
        async with asyncio.timeout(LONGEST_WAIT_S):
            return await worker(call._replace(on_delta=on_delta))
    except TimeoutError:
        raise WfdslError(f"no complete reply within {LONGEST_WAIT_S:g} s") from None
    except WfdslError:
        raise
    except Exception as error:
        raise WfdslError(f"{type(error).__name__}: {error}") from error


def _trials(entry: WorkerEntry) -> Mapping[str, _Trial | None]:
    """The trial of each ability; None: the provider has no such thing."""
    try:
        grammar = _GRAMMARS[dialect_of(entry)]
    except UsageError:
        grammar = ""
    words = (entry.options.get("context") or _CONTEXT_TOKENS) - 2 * _TOKENS
    long = f"{_FILLER * (words // _FILLER_WORDS)}\n{PROBE}"
    has_tools = entry.provider in ("openai", "anthropic", "google")
    found: dict[str, _Trial | None] = {
        "system role": (_call(("system", "Be brief."), ("user", PROBE)), _answered),
        "history": (_call(("user", PROBE), ("assistant", "ok"), ("user", PROBE)), _answered),
        "alternation": (_call(("user", "Be brief."), ("user", PROBE)), _answered),
        "streaming": (_call(("user", _MANY)), _streamed),
        "natural end": (_PROBED, partial(_ended, ["stop"])),
        "token limit": (_call(("user", _MANY), max_tokens=_FEW_TOKENS), partial(_ended, ["length", "out_of_tokens"])),
        "context": (_call(("user", long)), partial(_has_read, words)),
        "grammar": (_call(("user", PROBE), grammar=grammar), _wrote_by_grammar),
        "tools": (_call(("user", "Look up the word ok."), tools=[_TOOL], tool_choice="required"), _called),
    }
    has = {"streaming": entry.stream, "grammar": bool(grammar), "tools": has_tools}
    return {name: trial if has.get(name, True) else None for name, trial in found.items()}


def _call(*said: tuple[str, str], **settings: object) -> Call:
    messages = tuple(Message(role=role, content=text) for role, text in said)  # type: ignore[typeddict-item]
    return Call(messages, settings={"max_tokens": _TOKENS, **settings})


def _answered(reply: Reply, _: Sequence[str]) -> tuple[bool, str]:
    return not is_blank(reply.text) or reply.finish == "out_of_tokens", quoted(reply)


def _streamed(reply: Reply, pieces: Sequence[str]) -> tuple[bool, str]:
    if "".join(pieces) != reply.text:
        return False, "the pieces are not the text of the reply"
    return len(pieces) > 1, f"the reply came in {len(pieces)} piece{'' if len(pieces) == 1 else 's'}"


def _ended(good: Sequence[str], reply: Reply, _: Sequence[str]) -> tuple[bool, str]:
    """Whether a reply ends in a way that is known, and that is a good one."""
    known = reply.ending.lower() in [word for words in ENDINGS.values() for word in words]
    what = "is" if known else "is not a known word, and counts as"
    return reply.finish in good, f'the ending "{reply.ending}" {what} {reply.finish}'


def _has_read(words: int, reply: Reply, _: Sequence[str]) -> tuple[bool, str]:
    """Whether the server counts at least as many tokens as there were words: some cut what is too long, silently."""
    read = reply.usage.input_tokens
    return read >= words - _FILLER_WORDS, f"{words} words were sent, and {read} tokens read"


def _wrote_by_grammar(reply: Reply, _: Sequence[str]) -> tuple[bool, str]:
    applied = reply.text.strip() == _WRITTEN_BY_GRAMMAR
    return applied, "applied" if applied else f"ignored: {quoted(reply)}; check grammar_field and grammar_dialect"


def _called(reply: Reply, _: Sequence[str]) -> tuple[bool, str]:
    names = ", ".join(each.name for each in reply.tool_calls)
    return bool(names), f"called {names}" if names else f"called none, although one was required: {quoted(reply)}"


def quoted(reply: Reply) -> str:
    """The beginning of a reply's text, or why there is none."""
    if said := " ".join(reply.text.split()):
        return f'"{said[:60]}{"..." if len(said) > 60 else ""}"'
    only = f": perhaps its first {_TOKENS} tokens are only thinking" if reply.finish == "out_of_tokens" else ""
    return f"no text ({reply.finish}){only}"
