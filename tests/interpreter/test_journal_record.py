"""A record comes back from its kept form exactly as it was, nested runs included."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.interpreter.toy_workers import always, pool_of

from wfdsl import Step, Workflow
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.journal_record import packed, unpacked
from wfdsl.interpreter.record import LostCall, Run
from wfdsl.interpreter.running import run
from wfdsl.protocols import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

TWO = Workflow((Step(0, "a subtask of some length"), Step(0, "b", (0,))))


async def record_of(**options: Any) -> tuple[Run, RunRequest]:
    done = await run(TWO, "Why is that so?", pool_of(always("because it is so")), run_id="id", **options)
    plain = {name: value for name, value in options.items() if name in ("previous", "names")}
    return done, RunRequest(workflow=TWO, question="Why is that so?", pool=done.pool, sample_id="id", **plain)


def through(record: Run, request: RunRequest, replies: Mapping[str, int]) -> Run:
    plain = json.loads(request.to_json())
    kept = packed(record.to_dict(), plain, replies)
    return Run.from_json(unpacked(kept, record.id, plain, {row: text for text, row in replies.items()}))


async def test_a_record_comes_back_as_it_was() -> None:
    done, request = await record_of(names=("one", "two"), previous=("earlier subtask", "earlier response"))

    read = Run.from_json(done.to_json())
    assert through(done, request, {}) == read
    assert through(done, request, {"because it is so": 7}) == read


async def test_what_differs_from_the_request_is_kept() -> None:
    done, request = await record_of()
    other = replace(done, names=("x", "y"), pool="", settings={}, question="Another question?", error="bad")

    assert through(other, replace(request, names=("one", "two")), {}) == other
    assert through(replace(done, names=None), replace(request, names=("one", "two")), {}).names is None


async def test_nested_runs_come_back_as_they_were() -> None:
    done, request = await record_of()
    talk: tuple[Message, ...] = ({"role": "user", "content": "a conversation of some length"},)
    inside = replace(done, question=talk, settings={"conductor": [{"text": "model_id = [0]"}]}, status="failed")
    lost = (LostCall((0, 1, 0), "w0", 1.0, 5, 0.5),)
    outer = replace(done, steps=(replace(done.steps[0], nested=(inside, inside)), done.steps[1]), lost=lost)

    assert through(outer, request, {}) == outer


async def test_a_text_that_a_reply_holds_is_not_repeated() -> None:
    done, request = await record_of()

    kept = packed(done.to_dict(), json.loads(request.to_json()), {"because it is so": 7})

    assert "because it is so" not in kept
    assert kept.count("a subtask of some length") == 1
