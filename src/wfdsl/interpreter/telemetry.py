"""Telemetry: OpenTelemetry spans of a run, made from its events.

A span per run, per step and per nested run. OpenTelemetry's `gen_ai` names may still change, so only this file has
them. Texts of messages and replies are not put into spans.
"""

from __future__ import annotations

from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.interpreter.events import Event, FellBack, Path, Retried, RunFinished, RunStarted, StepFinished, StepStarted
from wfdsl.interpreter.record import Run, StepRecord

try:
    from opentelemetry import trace
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
except ImportError as error:
    raise UsageError("spans need the OpenTelemetry API; install it with: pip install 'wfdsl[otel]'") from error

OPERATION: Final = "gen_ai.operation.name"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
_NANOSECONDS: Final = 1_000_000_000


class SpanListener:
    """Pass it to `run(..., on_event=)`, or call it from a listener of your own."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        """`tracer` is where spans go; None: the one that the program or the environment has set up."""
        self._tracer = tracer or trace.get_tracer("wfdsl")
        self._runs: dict[Path, Span] = {}
        self._steps: dict[Path, Span] = {}

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        match event:
            case RunStarted():
                self._begin_run(event)
            case StepStarted():
                self._begin_step(event)
            case Retried() if event.path in self._steps:
                self._steps[event.path].add_event("retry", {"reason": event.reason, "wait_s": event.wait_s})
            case FellBack() if event.path in self._steps:
                self._steps[event.path].add_event("fallback", {"reason": event.reason, "worker": event.worker_name})
            case StepFinished() if event.path in self._steps:
                _end_step(self._steps.pop(event.path), event.record)
            case RunFinished() if event.path in self._runs:
                self._end_run(event)

    def _begin_run(self, event: RunStarted) -> None:
        attributes = {OPERATION: "invoke_workflow", "wfdsl.run": event.run_id, "wfdsl.steps": len(event.workflow)}
        parent = self._steps.get(event.path[:-1])
        self._runs[event.path] = self._span("workflow", parent, attributes)

    def _begin_step(self, event: StepStarted) -> None:
        attributes = {OPERATION: "chat", "wfdsl.step": event.path[-1], "wfdsl.worker": event.worker_name}
        parent = self._runs.get(event.path[:-1])
        self._steps[event.path] = self._span(f"chat {event.worker_name}", parent, attributes, SpanKind.CLIENT)

    def _span(
        self, name: str, parent: Span | None, attributes: dict[str, Any], kind: SpanKind = SpanKind.INTERNAL
    ) -> Span:
        context = None if parent is None else trace.set_span_in_context(parent)
        return self._tracer.start_span(name, context=context, kind=kind, attributes=attributes)

    def _end_run(self, event: RunFinished) -> None:
        """End the run's span, and those of steps that were stopped with it."""
        for path in [path for path in self._steps if path[:-1] == event.path]:
            _end_step(self._steps.pop(path), event.run.steps[path[-1]])
        span, run = self._runs.pop(event.path), event.run
        span.set_attributes({INPUT_TOKENS: run.usage.input_tokens, OUTPUT_TOKENS: run.usage.output_tokens})
        if run.status != "done":
            span.set_status(Status(StatusCode.ERROR, run.error or run.status))
        span.end(_end_time(run))


def _end_step(span: Span, record: StepRecord) -> None:
    span.set_attributes(
        {
            INPUT_TOKENS: record.usage.input_tokens,
            OUTPUT_TOKENS: record.usage.output_tokens,
            "wfdsl.retries": record.retries,
            "wfdsl.replayed": record.replayed,
        }
    )
    if record.model:
        span.set_attribute(RESPONSE_MODEL, record.model)
    if record.finish is not None:
        span.set_attribute(FINISH_REASONS, [record.finish])
    if record.status != "done":
        span.set_status(Status(StatusCode.ERROR, record.error or record.status))
    span.end(_end_time(record))


def _end_time(record: StepRecord | Run) -> int | None:
    return None if record.finished is None else int(record.finished * _NANOSECONDS)
