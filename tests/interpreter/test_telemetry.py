"""Spans mirror the events of a run, by OpenTelemetry's conventions; texts are in them only if they were asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from tests.interpreter.test_nested import OUTER, ScriptedConductor, conducted, echoing
from tests.interpreter.toy_workers import always, in_turn, pool_of

from wfdsl import RunFailed, Step, Workflow
from wfdsl.interpreter.running import resume, run
from wfdsl.interpreter.telemetry import SpanListener
from wfdsl.protocols import Reply, Usage, WorkerFailure

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl.protocols import Call

TWO = Workflow((Step(0, "secret plan"), Step(1, "answer", (0,))))


class Collected:
    """A tracer whose spans are kept in memory."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._tracer = provider.get_tracer("test")

    def listener(self, **options: Any) -> SpanListener:
        return SpanListener(self._tracer, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they ended."""
        return list(self._exporter.get_finished_spans())

    def one(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def tree(self) -> dict[str, list[str]]:
        """The names of spans, and of those inside them, both in order of their starts."""
        starts = sorted(self.spans, key=lambda span: (span.start_time or 0, span.context.span_id))
        names = {span.context.span_id: span.name for span in starts}
        found: dict[str, list[str]] = {}
        for span in starts:
            parent = "" if span.parent is None else names[span.parent.span_id]
            found.setdefault(parent, []).append(span.name)
        return found


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_step_is_a_chat_inside_the_span_of_its_workflow() -> None:
    collected = Collected()
    busy = WorkerFailure("HTTP 503", retryable=True, status=503)
    second = in_turn(busy, Reply("x", usage=Usage(7, 3, cached_tokens=4), model="m-1-2026", finish="length"))
    entry = {"retries": 1, "provider": "google", "model": "m-1"}

    done = await run(
        TWO,
        "Q",
        pool_of(always("x"), second, entries=[{}, entry]),
        on_event=collected.listener(workflow="two"),
    )

    assert collected.tree() == {"": ["invoke_workflow two"], "invoke_workflow two": ["chat w0", "chat m-1"]}
    workflow, chat = collected.one("invoke_workflow two"), collected.one("chat m-1")
    assert (workflow.kind, chat.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT)
    assert attributes(workflow) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.agent.name": "two",
        "gen_ai.conversation.id": done.id,
        "openinference.span.kind": "CHAIN",
        "wfdsl.run": done.id,
        "wfdsl.steps": 2,
    }
    assert attributes(chat) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": done.id,
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "m-1",
        "gen_ai.response.model": "m-1-2026",
        "gen_ai.response.finish_reasons": ("length",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "openinference.span.kind": "LLM",
        "wfdsl.step": 1,
        "wfdsl.worker": "w1",
        "wfdsl.retries": 1,
        "wfdsl.replayed": False,
    }
    assert [event.name for event in chat.events] == ["retry"]


async def test_a_conductor_s_node_holds_its_completions_and_its_workflows() -> None:
    collected = Collected()

    await run(OUTER, "Q", conducted(ScriptedConductor(), echoing()), on_event=collected.listener())

    tree = collected.tree()
    assert tree["invoke_agent conductor"] == ["chat conductor", "invoke_workflow"]
    assert tree["invoke_workflow"] == ["chat plain", "invoke_agent conductor", *["chat plain"] * 3]
    agent, chat = (collected.one(f"{name} conductor") for name in ("invoke_agent", "chat"))
    assert [attributes(span)["openinference.span.kind"] for span in (agent, chat)] == ["AGENT", "LLM"]
    assert attributes(chat)["gen_ai.agent.name"] == "conductor"
    assert (attributes(chat)["gen_ai.usage.input_tokens"], attributes(chat)["gen_ai.usage.output_tokens"]) == (7, 3)
    totals = [attributes(span).get("gen_ai.usage.input_tokens", 0) for span in collected.spans]
    assert sum(totals) == 7 + 4 * 10


async def test_a_failed_run_ends_every_span_with_its_error() -> None:
    collected = Collected()
    wide = Workflow((Step(0, "a"), Step(1, "b"), Step(0, "c", "all")))
    pool = pool_of(always("x", delay_s=5), in_turn(WorkerFailure("HTTP 404", retryable=False, status=404)))

    with pytest.raises(RunFailed):
        await run(wide, "Q", pool, on_event=collected.listener())

    found = {span.name: (span.status.description, attributes(span)["error.type"]) for span in collected.spans}
    workflow = found.pop("invoke_workflow")
    assert found == {"chat w1": ("HTTP 404", "404"), "chat w0": ("stopped", "stopped")}
    assert "step 1 failed" in str(workflow[0])
    assert workflow[1] == "failed"


@pytest.mark.parametrize("asked", ["by argument", "by environment", "not"])
async def test_texts_are_in_spans_only_if_they_were_asked_for(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    collected = Collected()
    monkeypatch.setenv(
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true" if asked == "by environment" else "false"
    )

    options = {"texts": True} if asked == "by argument" else {}
    pool = pool_of(always("hidden reply"), always("hidden reply"))
    await run(TWO, "secret question", pool, on_event=collected.listener(**options))

    everything = repr([attributes(span) for span in collected.spans])
    if asked == "not":
        assert "hidden" not in everything
        assert "secret" not in everything
        return
    step, workflow = attributes(collected.one("chat w0")), attributes(collected.one("invoke_workflow"))
    question = {"role": "user", "parts": [{"type": "text", "content": "secret question\n\nsecret plan"}]}
    assert json.loads(step["gen_ai.input.messages"]) == [question]
    assert json.loads(step["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "hidden reply"}], "finish_reason": "stop"}
    ]
    assert json.loads(workflow["gen_ai.input.messages"])[0]["parts"][0]["content"] == "secret question"


async def test_a_reply_of_the_journal_is_not_counted_again(tmp_path: Path) -> None:
    again = Collected()
    kept = always("x", usage=Usage(10, 5))

    async def fails(call: Call) -> Reply:
        raise WorkerFailure("gone", retryable=False)

    with pytest.raises(RunFailed) as caught:
        await run(TWO, "Q", pool_of(kept, fails), journal=tmp_path / "journal.db")
    await resume(
        caught.value.run_id,
        pool_of(kept, always("y", usage=Usage(1, 1))),
        journal=tmp_path / "journal.db",
        on_event=again.listener(),
    )

    found = {span.name: attributes(span).get("gen_ai.usage.input_tokens") for span in again.spans}
    assert found == {"chat w0": 0, "chat w1": 1, "invoke_workflow": None}
