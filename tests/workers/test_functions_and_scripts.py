"""Workers without a model: functions and scripts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.workers.wire import call

from wfdsl import Conductor, RunFailed
from wfdsl.errors import UsageError
from wfdsl.protocols import Reply, Usage, WorkerFailure
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl.workers.scripted import Line, ScriptedWorker


async def shout(messages: list[dict[str, Any]]) -> str:
    return str(messages[-1]["content"]).upper()


async def twice(messages: list[dict[str, Any]]) -> str:
    return 2 * str(messages[-1]["content"])


async def test_functions_become_workers_under_their_own_names() -> None:
    pool = Pool.from_functions([shout, twice, shout])

    replies = [await pool.worker(index)(call("ab")) for index in pool.indices]

    assert pool.names == ("shout", "twice", "shout_2")
    assert [reply.text for reply in replies] == ["AB", "abab", "AB"]
    assert {reply.paid_usd for reply in replies} == {0.0}


def plain(messages: list[dict[str, Any]]) -> str:
    return ""


@pytest.mark.parametrize(
    ("functions", "names", "message"),
    [([plain], None, "async def plain"), ([shout, twice], ["one"], "names")],
)
def test_functions_that_make_no_pool_are_refused(functions: list[Any], names: list[str] | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Pool.from_functions(functions, names=names)


async def test_a_function_cannot_change_the_messages_of_others() -> None:
    async def vandal(messages: list[dict[str, Any]]) -> str:
        messages[0]["content"] = "gone"
        messages.clear()
        return "ok"

    asked = call("keep me")
    await Pool.from_functions([vandal]).worker(0)(asked)

    assert asked.messages == ({"role": "user", "content": "keep me"},)


async def test_a_function_that_returns_no_text_fails() -> None:
    async def number(messages: list[dict[str, Any]]) -> str:
        return 5  # type: ignore[return-value]

    with pytest.raises(WorkerFailure, match="returned int, not a text"):
        await Pool.from_functions([number]).worker(0)(call())


async def test_a_function_in_the_place_of_a_worker_is_told_how_to_become_one() -> None:
    async def answer(messages: Any) -> str:
        return "42"

    with pytest.raises(RunFailed, match=r"returned str, not a Reply: `Pool.from_functions\(\[f\]\).worker\(0\)`"):
        await Conductor(answer).solve("Q", Pool.from_functions([answer]))  # type: ignore[arg-type]

    solved = await Conductor(Pool.from_functions([writer]).worker(0), max_rounds=0).solve(
        "Q", Pool.from_functions([answer])
    )
    assert solved.answer == "42"


async def writer(messages: list[dict[str, Any]]) -> str:
    return 'model_id = [0]\nsubtasks = ["Say it."]\naccess_list = [[]]'


@pytest.mark.parametrize("error", [KeyError("mine"), TimeoutError("mine"), RuntimeError("mine")])
async def test_whatever_a_function_raises_is_a_failure_that_names_it(error: Exception) -> None:
    async def broken(messages: list[dict[str, Any]]) -> str:
        raise error

    with pytest.raises(WorkerFailure, match=rf"broken.* raised {type(error).__name__}: .*mine") as failed:
        await Pool.from_functions([broken]).worker(0)(call())

    assert failed.value.__cause__ is error
    assert not failed.value.retryable


async def test_a_slow_function_ends_at_the_deadline() -> None:
    async def slow(messages: list[dict[str, Any]]) -> str:
        await asyncio.sleep(60)
        return ""

    with pytest.raises(WorkerFailure, match="deadline") as failed:
        await Pool.from_functions([slow]).worker(0)(call(deadline=asyncio.get_running_loop().time() + 0.05))

    assert (failed.value.retryable, failed.value.sent) == (True, True)


async def test_a_script_answers_line_by_line_in_words_and_keeps_the_calls() -> None:
    lines: list[Line] = [
        "  one two\nthree ",
        Reply("four", "length"),
        WorkerFailure("down", retryable=True, status=503),
    ]
    worker, pieces = ScriptedWorker(lines), list[str]()

    first, second = await worker(call("a b c", on_delta=pieces.append)), await worker(call("d"))
    with pytest.raises(WorkerFailure, match="down") as failed:
        await worker(call("e"))
    with pytest.raises(WorkerFailure, match="the script has 3 lines, and this is call 4"):
        await worker(call("f"))

    assert pieces == ["  one ", "two\n", "three "]
    assert (first.text, first.usage) == ("".join(pieces), Usage(3, 3))
    assert (second.text, second.finish) == ("four", "length")
    assert failed.value.status == 503
    assert [asked.messages[0]["content"] for asked in worker.calls] == ["a b c", "d", "e", "f"]


async def test_a_pool_file_may_hold_a_script_and_calls_of_tools() -> None:
    called = {"tool": "weather", "arguments": {"city": "Paris"}}
    entry = WorkerEntry(name="s", provider="scripted", options={"replies": ["a", called], "repeat": True})
    worker = Pool([entry]).worker(0)

    replies = [await worker(call()) for _ in range(3)]

    assert [each.text for each in replies] == ["a", "", "a"]
    assert [(each.name, each.arguments) for each in replies[1].tool_calls] == [("weather", '{"city": "Paris"}')]


@pytest.mark.parametrize("options", [{}, {"replies": []}, {"replies": "text"}, {"replies": [1]}])
def test_a_pool_file_without_a_script_is_told_how_to_write_one(options: dict[str, Any]) -> None:
    entry = WorkerEntry(name="s", provider="scripted", options=options)

    with pytest.raises(UsageError, match="options: replies"):
        Pool([entry]).worker(0)
