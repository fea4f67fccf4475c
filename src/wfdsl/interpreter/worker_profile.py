"""Worker profile: what the interpreter knows about a worker besides how to call it: limits, prices, identity.

Pools describe workers in their own way; a profile holds only what the call pipeline needs. It also bounds what a call
can cost: input at its UTF-8 bytes, since a token is at least one byte, and output at its most tokens. So can be said
what a run would ask and cost at most, before anything is asked: a response that does not exist yet is shown as a
placeholder and counted, where later steps read it, as the longest reply of its worker. Retries and nested runs are not
included.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from wfdsl.errors import UsageError
from wfdsl.graph import graph_of
from wfdsl.interpreter.budget import Budget, BudgetUsage
from wfdsl.interpreter.context import Question, QuestionFor, messages_for
from wfdsl.interpreter.journal import Charge, Key
from wfdsl.interpreter.record import total_usd, worker_title
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Call, Message, Reply, Usage, WorkerFailure, WorkerPool

TOKENS_OF_IMAGE = 50_000
"""More than the dearest models count for one image, so that a budget holds. Our choice."""
_KEY_DIGITS = 32
_PLAIN_MESSAGE = 2
"""The fields of a message that is only a text."""
_NOT_IDENTITY = {
    "description",
    "tags",
    "max_tokens",  # keys have it by itself
    "limits",
    "prices",
    "timeout_s",
    "idle_timeout_s",
    "stream",
    "stream_options",
    "retries",
    "fallback",
    "api_key_env",
    "headers_env",
}
"""Fields of an entry that change when, where from or at what price an answer comes, but not which answer."""


@dataclass(frozen=True)
class WorkerProfile:
    """What the pipeline of one worker needs to know about it."""

    index: int
    entry: Any
    """The pool's own description of the worker, a `WorkerEntry`."""
    fallbacks: tuple[int, ...] = ()
    """The workers to ask when this one has failed for good, in order."""
    conductor: bool = False
    """Whether the worker runs workflows of its own."""

    @cached_property
    def name(self) -> str:
        """The worker's name."""
        return str(self.entry.name)

    @cached_property
    def priced(self) -> bool:
        """Whether there is a price list."""
        return self.entry.cost_usd(Usage()) is not None

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the worker in the journal: a hash of everything that can change its answers."""
        identity = self.entry.model_dump(mode="json", exclude=_NOT_IDENTITY)
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    @cached_property
    def endpoint(self) -> tuple[str, ...]:
        """What the limits hold for: a model at a server, or an account; empty for a worker of this process."""
        entry = self.entry
        if entry.limits.account is not None:
            return (str(entry.limits),)
        at = (entry.name, entry.provider, entry.model, entry.base_url, entry.api_key_env, entry.limits)
        return tuple(map(str, at)) if entry.model else ()

    def key(self, call: Call) -> Key:
        """What makes two calls the same, the sample id apart: the worker's fingerprint, the request, and the most
        tokens of a reply, which are the last part, since a reply that was not cut is also one under a larger limit.
        """
        settings = {name: value for name, value in call.settings.items() if name != "tool_choice"}  # each has its own
        parts = [self.fingerprint, settings, call.messages, call.path]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:_KEY_DIGITS]
        return digest if self.entry.max_tokens is None else f"{digest}-{self.entry.max_tokens}"

    def input_bound(self, messages: tuple[Message, ...]) -> int:
        """The most input tokens that messages can be."""
        total = self._system_bytes + utf8_bytes("".join([message["content"] for message in messages]))
        for message in messages:
            if len(message) > _PLAIN_MESSAGE:
                total += len(json.dumps(message.get("tool_calls"))) + TOKENS_OF_IMAGE * len(message.get("images", ()))
        return total

    def output_bound(self, settings: Mapping[str, Any]) -> int:
        """The most output tokens of a call with these settings, thinking included."""
        limit = settings.get("max_tokens")
        return int(self.entry.output_limit) if limit is None else int(limit) + int(self.entry.thinking_budget or 0)

    def within_limits(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sampling settings as far as the worker's own allow: no longer replies, and its own stop texts as well."""
        found = dict(settings)
        if "max_tokens" in found:
            found["max_tokens"] = min(found["max_tokens"], self.entry.max_tokens)
        if "stop" in found:
            found["stop"] = [*found["stop"], *self.entry.stop]
        return found

    def usage_bound(self, call: Call) -> BudgetUsage:
        """The most that a call can be charged; an unknown price counts as 0 (see `require_priced`)."""
        read, written = self.input_bound(call.messages), self.output_bound(call.settings)
        if "tools" in call.settings:
            read += len(json.dumps(call.settings["tools"]))
        return BudgetUsage(1, read + written, self.entry.most_usd(read, written) or 0.0)

    def with_price(self, reply: Reply) -> Reply:
        """The reply, with the price list's cost if it counts tokens but claims to be free."""
        if reply.paid_usd == reply.list_usd == 0 and (cost := self.entry.cost_usd(reply.usage)):
            return replace(reply, paid_usd=cost, list_usd=cost)
        return reply

    def usage_of_reply(self, call: Call, reply: Reply) -> BudgetUsage:
        """What a reply is charged; a token per byte of question and reply if the provider counts no tokens."""
        usage = reply.usage
        if usage.total_tokens:
            paid = self.entry.cost_usd(usage) if reply.paid_usd is None else reply.paid_usd
            return BudgetUsage(1, usage.total_tokens, paid or 0.0)
        usage = Usage(self.input_bound(call.messages), utf8_bytes(reply.text))
        return BudgetUsage(1, usage.total_tokens, reply.paid_usd or self.entry.cost_usd(usage) or 0.0)

    def charge(self, usage: BudgetUsage, *, paid_usd: float | None = None) -> Charge:
        """What the journal says of an amount; without dollars where no one knows them."""
        is_known = self.priced or paid_usd is not None or not usage.tokens
        return usage.calls, usage.tokens, usage.usd if is_known else None

    def usage_of_failure(self, call: Call, failure: WorkerFailure, bound: BudgetUsage) -> BudgetUsage:
        """What a failed attempt is charged: nothing if it was never sent, one call if the provider refused it, what a
        rejected reply took, otherwise its bound, since the provider may have done the work.
        """
        if not failure.sent:
            return BudgetUsage()
        if failure.rejected is not None:
            return self.usage_of_reply(call, failure.rejected)
        refused = failure.status is not None and failure.status >= 400
        return BudgetUsage(calls=1) if refused else bound

    @cached_property
    def _system_bytes(self) -> int:
        return utf8_bytes(self.entry.system_prompt)


def profile_of(pool: WorkerPool, index: int) -> WorkerProfile:
    """A worker's profile. It is kept with its pool, which never changes: programs run many workflows on one."""
    known = _PROFILES.get(pool) or _PROFILES.setdefault(pool, {})
    if index not in known:
        conductor = index in getattr(pool, "conductors", ())
        known[index] = WorkerProfile(index, pool.entry(index), _fallbacks(pool, index), conductor)
    return known[index]


_PROFILES: WeakKeyDictionary[WorkerPool, dict[int, WorkerProfile]] = WeakKeyDictionary()


def require_priced(profiles: Iterable[WorkerProfile], budget: Budget) -> None:
    """Refuse workers of unknown price under a budget in US dollars. A Conductor's calls are bounded one by one.

    Raises:
        UsageError: a price is not known.
    """
    for profile in profiles:
        if budget.usd is not None and not profile.conductor and not profile.priced:
            raise UsageError(
                f"{worker_title(profile.index, profile.name)} has no known price, so a budget in US dollars cannot be "
                "enforced; set its prices in the pool file (0 for a free worker), or use another budget"
            )


def utf8_bytes(text: str) -> int:
    """The length of a text in UTF-8; a lone surrogate counts as the three bytes of its replacement."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _fallbacks(pool: WorkerPool, index: int) -> tuple[int, ...]:
    """The chain of fallback workers, which ends before a worker would come twice."""
    if pool.entry(index).fallback is None:
        return ()
    chain, by_name = [index], {pool.entry(each).name: each for each in pool.indices}
    while (named := by_name.get(pool.entry(chain[-1]).fallback)) is not None and named not in chain:
        chain.append(named)
    return tuple(chain[1:])


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One step that would be run."""

    step: int
    worker: int
    worker_name: str
    messages: tuple[Message, ...]
    """What it would be sent; responses to come are `{response of step N}`."""
    input_tokens: int
    """At most."""
    output_tokens: int
    """At most."""
    usd: float | None
    """US dollars at most; None: not known."""
    conductor: bool
    """Whether the step runs workflows of its own, whose calls are not known beforehand."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The steps that would be run, in order."""

    steps: tuple[StepEstimate, ...]
    pruned: tuple[int, ...]
    """Dead steps, which would be left out."""

    @property
    def calls(self) -> int:
        """How many workers would be asked, each once."""
        return sum(not step.conductor for step in self.steps)

    @property
    def usd(self) -> float | None:
        """US dollars at most, if each call succeeds at once; None: not known."""
        return total_usd(step.usd for step in self.steps)

    @property
    def unpriced(self) -> str:
        """Why the dollars are not known, where they are not."""
        nested = any(step.conductor for step in self.steps)
        return "a Conductor decides what else is asked" if nested else "a worker has no prices or no max_tokens"


def estimate(
    workflow: Workflow,
    question: Question,
    pool: WorkerPool,
    *,
    question_for: QuestionFor = "all",
    run_dead_steps: bool = False,
    previous: tuple[str, str] | None = None,
    replies: Mapping[int, str] = MappingProxyType({}),
) -> RunEstimate:
    """Work out what a run would ask. Steps that have replies already are left out, and shown to the others."""
    schedule = graph_of(workflow).schedule(run_dead_steps=run_dead_steps)
    shown = [replies.get(step, f"{{response of step {step}}}") for step in range(len(workflow))]
    longest: dict[int, int] = {}
    steps = []
    for step in range(len(workflow)):
        if schedule.missing[step] < 0 or step in replies:
            continue
        messages = messages_for(workflow, step, shown, question, question_for=question_for, previous=previous)
        worker = workflow[step].worker
        assert isinstance(worker, int)  # only workflows that can run are estimated
        profile = profile_of(pool, worker)
        longest[step] = profile.output_bound(workflow[step].settings)
        unread = [seen for seen in workflow.sees(step) if seen not in replies]
        read = profile.input_bound(messages) + sum(longest[seen] - len(shown[seen]) for seen in unread)
        usd = None if profile.conductor else profile.entry.most_usd(read, longest[step])
        steps.append(StepEstimate(step, worker, profile.name, messages, read, longest[step], usd, profile.conductor))
    return RunEstimate(tuple(steps), schedule.pruned)
