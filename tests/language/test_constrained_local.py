"""The exported grammar on a real server: an untrained model of 135 million parameters writes valid workflows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workers.wire import call
from wfdsl import analyze
from wfdsl.language.constrained import gbnf, max_tokens_for
from wfdsl.protocols import Reply
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

pytestmark = pytest.mark.local
SIZES = [(1, 1), (7, 3)]  # of the pool, and the most steps
PROMPT = 'Write model_id = [...], subtasks = ["..."], access_list = [[], ...] for workers that bake a cake.'


def entry(size: int, most: int, *, max_tokens: int | None = None, **bounds: Any) -> WorkerEntry:
    """The model under the grammar for a pool of this size and at most so many steps."""
    return WorkerEntry(
        name=f"conductor-{size}-{most}",
        provider="local",
        temperature=1.0,
        seed=size,
        max_tokens=max_tokens or max_tokens_for(range(size), most, **bounds),
        extra_body={"grammar": gbnf(range(size), most, **bounds)},
    )


async def replies_of(*entries: WorkerEntry) -> list[Reply]:
    pool = Pool(entries)
    async with pool.open():
        return [await pool.worker(index)(call(PROMPT)) for index in pool.indices]


async def test_what_the_local_model_writes_under_the_grammar_is_strictly_valid_and_whole() -> None:
    replies = await replies_of(*(entry(size, most, max_prose=30, max_subtask=30) for size, most in SIZES))

    for reply, (size, most) in zip(replies, SIZES, strict=True):
        assert reply.finish == "stop"
        assert analyze(reply.text, pool=size, max_steps=most, profile="strict").ok, reply.text


async def test_the_local_model_may_reason_freely_before_valid_lists() -> None:
    (reply,) = await replies_of(entry(3, 2, max_subtask=30, max_reasoning=300))

    assert reply.finish == "stop"
    assert "</think>\n=== workflow ===\nmodel_id = [" in reply.text
    assert analyze(reply.text, pool=3, max_steps=2, profile="strict").ok, reply.text


@pytest.mark.parametrize("max_reasoning", [0, 100_000])
async def test_the_server_reads_the_largest_grammar(max_reasoning: int) -> None:
    largest = {"max_prose": 2000, "max_subtask": 2000, "max_reasoning": max_reasoning, "recursion": True}

    (reply,) = await replies_of(entry(100, 32, max_tokens=8, **largest))

    assert reply.finish == "length"
    assert reply.text
