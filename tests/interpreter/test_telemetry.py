"""Spans mirror the events of a run, without any text of messages or replies."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from tests.interpreter.toy_workers import always, in_turn, pool_of

from wfdsl import RunFailed, Step, Workflow
from wfdsl.interpreter.running import run
from wfdsl.interpreter.telemetry import SpanListener
from wfdsl.protocols import Reply, Usage, WorkerFailure

TWO = Workflow((Step(0, "secret plan"), Step(1, "answer", (0,))))


class RecordedSpan(NonRecordingSpan):
    def __init__(self, number: int, name: str, parent: int, attributes: dict[str, Any]) -> None:
        super().__init__(SpanContext(1, number, is_remote=False, trace_flags=TraceFlags(1)))
        self.name, self.parent, self.attributes = name, parent, dict(attributes)
        self.events: list[str] = []
        self.status = ""
        self.ended = False

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_attributes(self, attributes: Any) -> None:
        self.attributes |= attributes

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        self.events.append(name)

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status = status.description

    def end(self, end_time: int | None = None) -> None:
        self.ended = True


class RecordingTracer(trace.NoOpTracer):
    def __init__(self) -> None:
        self.spans: list[RecordedSpan] = []

    def start_span(  # type: ignore[override]  # what is not recorded is not named
        self, name: str, context: Any = None, **more: Any
    ) -> RecordedSpan:
        parent = trace.get_current_span(context).get_span_context().span_id
        span = RecordedSpan(len(self.spans) + 1, name, parent, more["attributes"])
        self.spans.append(span)
        return span


async def test_each_step_is_a_span_inside_that_of_its_run() -> None:
    tracer = RecordingTracer()
    busy = WorkerFailure("HTTP 503", retryable=True, status=503)
    second = in_turn(busy, Reply("hidden reply", usage=Usage(7, 3), model="m-1"))

    pool = pool_of(always("x"), second, entries=[{}, {"retries": 1}])
    await run(TWO, "Q", pool, on_event=SpanListener(tracer))

    assert [(span.name, span.parent, span.ended) for span in tracer.spans] == [
        ("workflow", 0, True),
        ("chat w0", 1, True),
        ("chat w1", 1, True),
    ]
    assert tracer.spans[2].attributes["gen_ai.usage.input_tokens"] == 7
    assert tracer.spans[2].attributes["gen_ai.response.model"] == "m-1"
    assert tracer.spans[2].events == ["retry"]
    assert "hidden" not in repr([span.attributes for span in tracer.spans])
    assert "secret" not in repr([span.attributes for span in tracer.spans])


async def test_a_failed_run_ends_every_span_with_its_error() -> None:
    tracer = RecordingTracer()
    wide = Workflow((Step(0, "a"), Step(1, "b"), Step(0, "c", "all")))
    pool = pool_of(always("x", delay_s=5), in_turn(WorkerFailure("HTTP 404", retryable=False)))

    with pytest.raises(RunFailed):
        await run(wide, "Q", pool, on_event=SpanListener(tracer))

    assert all(span.ended for span in tracer.spans)
    assert [span.status for span in tracer.spans[1:]] == ["stopped", "HTTP 404"]
    assert "step 1 failed" in tracer.spans[0].status
