"""A worker that calls a tool suspends its step; with the results its run continues, and nothing is paid twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.interpreter.toy_workers import Answering, always, in_turn, pool_of

from wfdsl import Reply, RunFailed, RunSuspended, Step, ToolCall, Tools, Usage, UsageError, Workflow
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import run_of, runs_of_tool_calls
from wfdsl.interpreter.running import resume, run
from wfdsl.interpreter.tools import pending_calls
from wfdsl.protocols import Call, WorkerFailure

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
TOOLS = Tools(definitions=(WEATHER,))
CHAIN = Workflow((Step(0, "plan"), Step(1, "solve", (0,))))
FORK = Workflow((Step(0, "left"), Step(0, "right"), Step(1, "join", (0, 1))))


def calling(*names: str, text: str = "") -> Reply:
    calls = tuple(ToolCall(f"own-{index}", name, f'{{"n": {index}}}') for index, name in enumerate(names))
    return Reply(text, "tool_calls", Usage(5, 7), paid_usd=0.25, list_usd=0.25, tool_calls=calls)


def answer(text: str) -> Reply:
    return Reply(text, usage=Usage(3, 2), paid_usd=0.5, list_usd=0.5)


def until_told(called: Reply, last: str) -> Answering:
    """A worker that calls tools until it has seen a result."""

    async def reply(call: Call) -> Reply:
        told = [message["content"] for message in call.messages if message["role"] == "tool"]
        return answer(f"{last}: {', '.join(told)}") if told else called

    return Answering(reply)


async def suspended(path: Path, workflow: Workflow, pool: Any, tools: Tools = TOOLS, **options: Any) -> RunSuspended:
    with pytest.raises(RunSuspended) as caught:
        await run(workflow, "Q", pool, journal=path, run_id="r", tools=tools, **options)
    return caught.value


async def told(path: Path, results: dict[str, str]) -> None:
    with Journal(path) as journal:
        await journal.add_results(results)


async def test_the_answering_step_is_suspended_and_continues_with_the_results(path: Path) -> None:
    plan, solve = always("the plan"), until_told(calling("weather", "weather", text="Let me see."), "rain")
    pool = pool_of(plan, solve)

    error = await suspended(path, CHAIN, pool)
    calls = pending_calls(error.run)
    await told(path, {call.id: f"result {index}" for index, call in enumerate(calls)})
    done = await run(CHAIN, "Q", pool, journal=path, run_id="r", tools=TOOLS)

    assert str(error) == "the run waits for the results of tool calls: weather, weather"
    assert [step.status for step in error.run.steps] == ["done", "suspended"]
    assert [(call.name, call.arguments) for call in calls] == [("weather", '{"n": 0}'), ("weather", '{"n": 1}')]
    assert done.answer == "rain: result 0, result 1"
    assert (len(plan.calls), len(solve.calls)) == (1, 2)
    assert solve.calls[0].settings == {"tools": [WEATHER]}
    assert "tools" not in plan.calls[0].settings
    assert solve.calls[1].messages[-3:] == (
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call._asdict() for call in calls]},
        {"role": "tool", "content": "result 0", "tool_call_id": calls[0].id},
        {"role": "tool", "content": "result 1", "tool_call_id": calls[1].id},
    )
    assert done.steps[1].usage == Usage(8, 9)
    assert done.steps[1].paid_usd == 0.75
    assert error.run.steps[1].usage == Usage(5, 7)


async def test_a_run_is_found_by_its_tool_calls_and_no_other_ids(path: Path) -> None:
    error = await suspended(path, CHAIN, pool_of(always("plan"), until_told(calling("weather"), "x")))
    (call,) = pending_calls(error.run)

    assert runs_of_tool_calls(path, [call.id]) == {"r"}
    assert runs_of_tool_calls(path, ["own-0", "call_0", ""]) == set()
    assert len(call.id) == len("call_") + 24


async def test_a_result_is_kept_as_it_came_first(path: Path) -> None:
    pool = pool_of(always("plan"), until_told(calling("weather"), "so"))
    (call,) = pending_calls((await suspended(path, CHAIN, pool)).run)

    await told(path, {call.id: "first", "call_unknown": "x"})
    await told(path, {call.id: "second"})

    assert (await run(CHAIN, "Q", pool, journal=path, run_id="r", tools=TOOLS)).answer == "so: first"


async def test_every_running_step_ends_or_is_suspended_before_the_run_is(path: Path) -> None:
    async def left_calls(call: Call) -> Reply:
        told = any(message["role"] == "tool" for message in call.messages)
        return calling("weather") if "left" in call.messages[-1]["content"] and not told else answer("x")

    side = Answering(left_calls)
    pool = pool_of(side, always("joined"))
    tools = Tools(definitions=(WEATHER,), steps="all")

    error = await suspended(path, FORK, pool, tools)
    await told(path, {call.id: "sunny" for call in pending_calls(error.run)})
    done = await run(FORK, "Q", pool, journal=path, run_id="r", tools=tools)

    assert [step.status for step in error.run.steps] == ["suspended", "done", "waiting"]
    assert done.answer == "joined"
    assert len(side.calls) == 3


async def test_other_steps_see_the_answer_and_no_tool_calls(path: Path) -> None:
    first, second = until_told(calling("weather"), "it is"), always("done")
    pool = pool_of(first, second)
    tools = Tools(definitions=(WEATHER,), steps="all")

    error = await suspended(path, CHAIN, pool, tools)
    await told(path, {call.id: "SECRET TRACE" for call in pending_calls(error.run)})
    await run(CHAIN, "Q", pool, journal=path, run_id="r", tools=tools)

    (seen,) = second.calls
    assert [(message["role"], message["content"]) for message in seen.messages[:2]] == [
        ("user", "Q\n\nplan"),
        ("assistant", "it is: SECRET TRACE"),
    ]
    assert all(message.keys() == {"role", "content"} for message in seen.messages)


async def test_after_its_rounds_a_step_has_to_answer(path: Path) -> None:
    async def always_calls(call: Call) -> Reply:
        return answer("enough") if call.settings.get("tool_choice") == "none" else calling("weather")

    worker = Answering(always_calls)
    tools = Tools(definitions=(WEATHER,), max_rounds=2)
    for _ in range(2):
        error = await suspended(path, Workflow((Step(0, "a"),)), pool_of(worker), tools)
        await told(path, {call.id: "more" for call in pending_calls(error.run)})
    done = await run(Workflow((Step(0, "a"),)), "Q", pool_of(worker), journal=path, run_id="r", tools=tools)

    assert done.answer == "enough"
    assert len(worker.calls) == 3


async def test_a_failure_beside_a_suspended_step_is_a_failure(path: Path) -> None:
    async def left_calls(call: Call) -> Reply:
        if "left" in call.messages[-1]["content"]:
            return calling("weather")
        raise WorkerFailure("no luck", retryable=False)

    tools = Tools(definitions=(WEATHER,), steps="all")
    with pytest.raises(RunFailed, match="no luck"):
        await run(FORK, "Q", pool_of(Answering(left_calls), always("x")), journal=path, tools=tools)


@pytest.mark.parametrize("reply", [Reply("", "tool_calls"), calling("weather")])
async def test_tool_calls_that_no_one_offered_are_not_an_answer_also_once_resumed(path: Path, reply: Reply) -> None:
    with pytest.raises(RunFailed, match="workers have none") as failed:
        await run(Workflow((Step(0, "a"),)), "Q", pool_of(in_turn(reply)), journal=path)
    assert (await resume(failed.value.run_id, pool_of(always("an answer")), journal=path)).answer == "an answer"


async def test_tools_need_a_journal() -> None:
    with pytest.raises(UsageError, match="need a journal"):
        await run(CHAIN, "Q", pool_of(always("a"), always("b")), tools=TOOLS)


async def test_a_suspended_run_can_be_read_and_continues_from_what_the_journal_has_of_it(path: Path) -> None:
    pool = pool_of(always("plan"), until_told(calling("weather"), "so"))
    error = await suspended(path, CHAIN, pool)
    before, (call,) = run_of(path, "r"), pending_calls(error.run)
    await told(path, {call.id: "dry"})

    done = await resume("r", pool, journal=path)

    assert (before.status, pending_calls(before)) == ("suspended", (call,))
    assert [status.state for status in before.statuses()] == ["done", "waiting"]
    kept = run_of(path, "r")
    assert done.answer == "so: dry"
    assert kept.steps[1].messages == done.steps[1].messages
    assert kept.steps[1].messages[-1]["tool_call_id"] == call.id


async def test_a_choice_of_tools_holds_for_the_calls_that_are_made_with_it(path: Path) -> None:
    worker = until_told(calling("weather"), "so")
    required = Tools(definitions=(WEATHER,), choice="required")
    error = await suspended(path, CHAIN, pool_of(always("plan"), worker), required)
    await told(path, {call.id: "dry" for call in pending_calls(error.run)})

    await run(CHAIN, "Q", pool_of(always("plan"), worker), journal=path, run_id="r", tools=TOOLS)

    assert [call.settings.get("tool_choice") for call in worker.calls] == ["required", None]
