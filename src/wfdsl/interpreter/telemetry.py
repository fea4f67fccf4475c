"""Telemetry: OpenTelemetry spans of a run, made from its events.

A span per run, per step and per nested run, and two for each completion of a Conductor: its plan, and the call of its
model. A step is one span however often its worker was asked; further attempts are events in it. The names are those of
OpenTelemetry's conventions for generative AI (0.1.0), and of OpenInference for the kinds of spans. They may still
change, so only this file has them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from wfdsl.errors import UsageError
from wfdsl.installation import install_command
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.events import (
    CompletionFinished,
    CompletionStarted,
    Event,
    FellBack,
    Path,
    Retried,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.protocols import Message, Usage

try:
    from opentelemetry import trace
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
except ImportError as error:
    raise UsageError(f"spans need the OpenTelemetry API: {install_command('otel')}") from error

TEXTS_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OPERATION: Final = "gen_ai.operation.name"
CONVERSATION: Final = "gen_ai.conversation.id"
AGENT: Final = "gen_ai.agent.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
INPUT: Final = "gen_ai.input.messages"
OUTPUT: Final = "gen_ai.output.messages"
ERROR_TYPE: Final = "error.type"
SPAN_KIND: Final = "openinference.span.kind"
_PROVIDERS: Final = {"google": "gcp.gemini"}
"""The conventions' names of providers, where they are not ours."""
_NANOSECONDS: Final = 1_000_000_000


def require_provider() -> None:
    """Refuse to make spans that no one gets.

    Raises:
        UsageError: neither the program nor the environment has set up a provider of tracers.
    """
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        raise UsageError(
            "--otel: no OpenTelemetry provider is set up, so spans would be sent nowhere; "
            "start the command with opentelemetry-instrument, or leave --otel out"
        )


class _Plan(NamedTuple):
    """The spans of one completion of a Conductor."""

    plan: Span
    chat: Span


class SpanListener:
    """Pass it to `run(..., on_event=)`, or call it from a listener of your own."""

    def __init__(self, tracer: Tracer | None = None, *, workflow: str = "", texts: bool | None = None) -> None:
        """`tracer` is where spans go; None: the one that the program or the environment has set up.

        `workflow` is the outermost workflow's name. `texts` puts questions, messages and replies into the spans; None:
        if the variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is `true`.
        """
        self._tracer = tracer or trace.get_tracer("wfdsl")
        self._workflow = workflow
        self._texts = os.environ.get(TEXTS_VARIABLE, "").lower() == "true" if texts is None else texts
        self._conversation = ""
        self._runs: dict[Path, Span] = {}
        self._steps: dict[Path, Span] = {}
        self._plans: dict[Path, _Plan] = {}
        self._conductors: set[Path] = set()

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        match event:
            case RunStarted():
                self._begin_run(event)
            case StepStarted():
                self._begin_step(event)
            case CompletionStarted():
                self._begin_plan(event)
            case CompletionFinished() if event.path in self._plans:
                self._end_plan(event)
            case Retried() if event.path in self._steps:
                self._steps[event.path].add_event("retry", {"reason": event.reason, "wait_s": event.wait_s})
            case FellBack() if event.path in self._steps:
                self._steps[event.path].add_event("fallback", {"reason": event.reason, "worker": event.worker_name})
            case StepFinished() if event.path in self._steps:
                self._end_step(event.path, event.record, event.error_type)
            case RunFinished() if event.path in self._runs:
                self._end_run(event)

    def _begin_run(self, event: RunStarted) -> None:
        self._conversation = event.run_id
        name = "" if event.path else self._workflow
        attributes = {SPAN_KIND: "CHAIN", "wfdsl.run": event.run_id, "wfdsl.steps": len(event.workflow)}
        if name:
            attributes[AGENT] = name
        self._runs[event.path] = self._span("invoke_workflow", name, self._steps.get(event.path[:-1]), attributes)

    def _begin_step(self, event: StepStarted) -> None:
        parent = self._runs.get(event.path[:-1])
        attributes: dict[str, Any] = {"wfdsl.step": event.path[-1], "wfdsl.worker": event.worker_name}
        if event.conductor:
            self._conductors.add(event.path)
            attributes |= {SPAN_KIND: "AGENT", AGENT: event.worker_name}
            self._steps[event.path] = self._span("invoke_agent", event.worker_name, parent, attributes)
        else:
            self._steps[event.path] = self._chat(event, parent, attributes)

    def _begin_plan(self, event: CompletionStarted) -> None:
        parent = self._steps.get(event.path[:-2])
        attributes = {SPAN_KIND: "AGENT", AGENT: event.worker_name, "wfdsl.round": event.path[-2]}
        plan = self._span("plan", event.worker_name, parent, attributes)
        self._plans[event.path] = _Plan(plan, self._chat(event, plan, {"wfdsl.worker": event.worker_name}))

    def _chat(self, event: StepStarted | CompletionStarted, parent: Span | None, attributes: dict[str, Any]) -> Span:
        attributes |= {SPAN_KIND: "LLM", PROVIDER: _PROVIDERS.get(event.provider, event.provider) or "unknown"}
        if event.model:
            attributes[REQUEST_MODEL] = event.model
        return self._span("chat", event.model or event.worker_name, parent, attributes, SpanKind.CLIENT)

    def _span(
        self,
        operation: str,
        about: str,
        parent: Span | None,
        attributes: dict[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        context = None if parent is None else trace.set_span_in_context(parent)
        name = f"{operation} {about}" if about else operation
        known = {OPERATION: operation, CONVERSATION: self._conversation, **attributes}
        return self._tracer.start_span(name, context=context, kind=kind, attributes=known)

    def _end_plan(self, event: CompletionFinished) -> None:
        plan, chat = self._plans.pop(event.path)
        if event.reply is None:
            for span in (chat, plan):
                _set_error(span, event.error, event.error_type)
        else:
            reply = event.reply
            chat.set_attributes(_answered(reply.model, reply.finish, reply.usage))
            if self._texts:
                chat.set_attributes(_texts(event.messages, reply.text, reply.finish))
        for span in (chat, plan):
            span.end(int(event.at * _NANOSECONDS))

    def _end_step(self, path: Path, record: StepRecord, error_type: str) -> None:
        span = self._steps.pop(path)
        span.set_attributes({"wfdsl.retries": record.retries, "wfdsl.replayed": record.replayed})
        if path in self._conductors:
            self._conductors.discard(path)
        else:  # a Conductor's tokens are those of the spans inside; those of a replayed reply have been reported before
            usage = Usage() if record.replayed else record.usage
            span.set_attributes(_answered(record.model, record.finish, usage))
        if self._texts:
            span.set_attributes(_texts(record.messages, record.response, record.finish))
        if record.status not in ("done", "suspended"):
            _set_error(span, record.error or record.status, error_type or record.status)
        span.end(_end_time(record))

    def _end_run(self, event: RunFinished) -> None:
        """End the run's span, and those of steps that were stopped with it."""
        for path in [path for path in self._steps if path[:-1] == event.path]:
            self._end_step(path, event.run.steps[path[-1]], "")
        span, run = self._runs.pop(event.path), event.run
        if self._texts:
            span.set_attributes(_texts(run.question, run.answer, None))
        if run.status not in ("done", "suspended"):
            _set_error(span, run.error or run.status, run.status)
        span.end(_end_time(run))


def _answered(model: str, finish: str | None, usage: Usage) -> dict[str, Any]:
    found: dict[str, Any] = {INPUT_TOKENS: usage.input_tokens, OUTPUT_TOKENS: usage.output_tokens}
    if usage.cached_tokens:
        found[CACHED_TOKENS] = usage.cached_tokens
    if model:
        found[RESPONSE_MODEL] = model
    if finish is not None:
        found[FINISH_REASONS] = [finish]
    return found


def _texts(messages: Question, response: str | None, finish: str | None) -> dict[str, str]:
    """Messages and a reply as JSON texts, which every back end can keep."""
    sent: Sequence[Message] = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    found = {INPUT: json.dumps([_message(each["role"], each["content"]) for each in sent])}
    if response is not None:
        found[OUTPUT] = json.dumps([{**_message("assistant", response), "finish_reason": finish or "stop"}])
    return found


def _message(role: str, text: str) -> Mapping[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _set_error(span: Span, message: str, kind: str) -> None:
    span.set_attribute(ERROR_TYPE, kind)
    span.set_status(Status(StatusCode.ERROR, message))


def _end_time(record: StepRecord | Run) -> int | None:
    return None if record.finished is None else int(record.finished * _NANOSECONDS)
