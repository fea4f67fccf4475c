"""Telemetry: OpenTelemetry spans of a run, made from its events.

A span per run, per step, per nested run and per completion of a Conductor. A step is one span however often its worker
was asked; further attempts are events in it. The names are those of OpenTelemetry's conventions for generative AI
(0.1.0), and of OpenInference for the kinds of spans. They may still change, so only this file has them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Final

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
from wfdsl.protocols import Usage

try:
    from opentelemetry import trace
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
except ImportError as error:
    raise UsageError(f"spans need the OpenTelemetry API: {install_command('otel')}") from error

TEXTS_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_AGENT: Final = "gen_ai.agent.name"
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
        self._open: dict[Path, Span] = {}
        """The spans of runs, steps and completions that have not ended, by path."""
        self._conductors: set[Path] = set()

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        path = event.path
        match event:
            case RunStarted():
                self._conversation, name = event.run_id, "" if path else self._workflow
                about = {"wfdsl.run": event.run_id, "wfdsl.steps": len(event.workflow)}
                about |= {_AGENT: name} if name else {}
                self._begin(path, path[:-1], f"invoke_workflow {name}", "CHAIN", about)
            case StepStarted(conductor=True, worker_name=name):
                self._conductors.add(path)
                about = {_AGENT: name, "wfdsl.step": path[-1], "wfdsl.worker": name}
                self._begin(path, path[:-1], f"invoke_agent {name}", "AGENT", about)
            case StepStarted():
                self._begin_chat(event, path[:-1], {"wfdsl.step": path[-1]})
            case CompletionStarted():
                self._begin_chat(event, path[:-2], {_AGENT: event.worker_name, "wfdsl.round": path[-2]})
            case _ if path in self._open:
                self._go_on(event, self._open[path])

    def _begin_chat(self, event: StepStarted | CompletionStarted, parent: Path, about: dict[str, Any]) -> None:
        provider = _PROVIDERS.get(event.provider, event.provider) or "unknown"
        about |= {"wfdsl.worker": event.worker_name, "gen_ai.provider.name": provider}
        if event.model:
            about["gen_ai.request.model"] = event.model
        self._begin(event.path, parent, f"chat {event.model or event.worker_name}", "LLM", about)

    def _begin(self, path: Path, parent: Path, name: str, kind: str, about: dict[str, Any]) -> None:
        outer = self._open.get(parent)
        self._open[path] = self._tracer.start_span(
            name.strip(),
            context=None if outer is None else trace.set_span_in_context(outer),
            kind=SpanKind.CLIENT if kind == "LLM" else SpanKind.INTERNAL,
            attributes={
                "gen_ai.operation.name": name.partition(" ")[0],
                "gen_ai.conversation.id": self._conversation,
                "openinference.span.kind": kind,
                **about,
            },
        )

    def _go_on(self, event: Event, span: Span) -> None:
        match event:
            case Retried():
                span.add_event("retry", {"reason": event.reason, "wait_s": event.wait_s})
            case FellBack():
                span.add_event("fallback", {"reason": event.reason, "worker": event.worker_name})
            case CompletionFinished(reply=reply):
                if reply is None:
                    _set_error(span, event.error, event.error_type)
                else:
                    span.set_attributes(_answered(reply.model, reply.finish, reply.usage))
                    self._set_texts(span, event.messages, reply.text, reply.finish)
                self._open.pop(event.path).end(int(event.at * _NANOSECONDS))
            case StepFinished():
                self._end_step(event.path, event.record, event.error_type)
            case RunFinished(path=path, run=run):
                for step in [each for each in self._open if each[:-1] == path != each]:  # those stopped with the run
                    self._end_step(step, run.steps[step[-1]], "")
                self._set_texts(span, run.question, run.answer, None)
                _end(self._open.pop(path), run, run.error, run.status)

    def _end_step(self, path: Path, record: StepRecord, error_type: str) -> None:
        span = self._open.pop(path)
        span.set_attributes({"wfdsl.retries": record.retries, "wfdsl.replayed": record.replayed})
        if path in self._conductors:
            self._conductors.discard(path)
        else:  # a Conductor's tokens are those of the spans inside; those of a replayed reply have been reported before
            usage = Usage() if record.replayed else record.usage
            span.set_attributes(_answered(record.model, record.finish, usage))
        self._set_texts(span, record.messages, record.response, record.finish)
        _end(span, record, record.error, error_type or record.status)

    def _set_texts(self, span: Span, messages: Question, response: str | None, finish: str | None) -> None:
        """Add messages and a reply as JSON texts, which every back end can keep."""
        if not self._texts:
            return
        sent: Sequence[Any] = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        span.set_attribute("gen_ai.input.messages", json.dumps([_message(**each) for each in sent]))
        if response is not None:
            said = {**_message("assistant", response), "finish_reason": finish or "stop"}
            span.set_attribute("gen_ai.output.messages", json.dumps([said]))


def _answered(model: str, finish: str | None, usage: Usage) -> dict[str, Any]:
    found = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        "gen_ai.response.model": model or None,
        "gen_ai.response.finish_reasons": finish and [finish],
    }
    return {name: value for name, value in found.items() if value is not None}


def _message(role: str, content: str, **_: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def _set_error(span: Span, message: str, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, message))


def _end(span: Span, record: StepRecord | Run, error: str, error_type: str) -> None:
    if record.status not in ("done", "suspended"):
        _set_error(span, error or record.status, error_type)
    span.end(None if record.finished is None else int(record.finished * _NANOSECONDS))
