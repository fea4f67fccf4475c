"""The exported grammar on a real server: an untrained model of 135 million parameters writes valid workflows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workers.wire import call
from wfdsl import analyze
from wfdsl.language.constrained import gbnf, max_tokens_for
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

pytestmark = pytest.mark.local
SIZES = [(1, 1), (2, 3), (3, 2), (5, 5), (7, 4)]  # of the pool, and the most steps
PROMPT = 'Write model_id = [...], subtasks = ["..."], access_list = [[], ...] for workers that bake a cake.'


async def test_what_the_local_model_writes_under_the_grammar_is_strictly_valid_and_whole() -> None:
    pool = Pool(
        WorkerEntry(
            name=f"conductor-{size}-{most}",
            provider="local",
            temperature=1.0,
            seed=size,
            max_tokens=max_tokens_for(range(size), most, max_prose=30, max_subtask=30),
            extra_body={"grammar": gbnf(range(size), most, max_prose=30, max_subtask=30)},
        )
        for size, most in SIZES
    )

    async with pool.open():
        replies = [await pool.worker(index)(call(PROMPT)) for index in pool.indices]

    for reply, (size, most) in zip(replies, SIZES, strict=True):
        assert reply.finish == "stop"
        assert analyze(reply.text, pool=size, max_steps=most, profile="strict").ok, reply.text


async def test_the_local_model_may_reason_freely_before_valid_lists() -> None:
    bounds: dict[str, Any] = {"max_subtask": 30, "max_reasoning": 1100}
    entry = WorkerEntry(
        name="conductor",
        provider="local",
        temperature=1.0,
        seed=1,
        max_tokens=max_tokens_for(range(3), 2, **bounds),
        extra_body={"grammar": gbnf(range(3), 2, **bounds)},
    )
    pool = Pool([entry])

    async with pool.open():
        reply = await pool.worker(0)(call(PROMPT))

    assert reply.finish == "stop"
    assert "</think>\n=== workflow ===\nmodel_id = [" in reply.text
    assert analyze(reply.text, pool=3, max_steps=2, profile="strict").ok, reply.text


@pytest.mark.parametrize("max_reasoning", [0, 100_000])
async def test_the_server_reads_the_largest_grammar(max_reasoning: int) -> None:
    bounds: dict[str, Any] = {"max_prose": 2000, "max_subtask": 2000, "max_reasoning": max_reasoning}
    entry = WorkerEntry(
        name="conductor",
        provider="local",
        temperature=1.0,
        seed=1,
        max_tokens=8,
        extra_body={"grammar": gbnf(range(100), 32, **bounds, recursion=True)},
    )
    pool = Pool([entry])

    async with pool.open():
        reply = await pool.worker(0)(call(PROMPT))

    assert reply.finish == "length"
    assert reply.text
