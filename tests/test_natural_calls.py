"""Calls that somebody writes who has not read the reference: they work, or say what to write instead."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import wfdsl
from wfdsl import Conductor, Pool, Step, UsageError, Workflow, analyze, run_sync
from wfdsl.testing import ScriptedWorker

TEXT = 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]'


async def answer(messages: Any) -> str:
    return "an answer"


POOL = Pool.from_functions([answer])
WORKFLOW = Workflow.from_lists([0], ["a"], [[]])


def conductor() -> Conductor:
    return Conductor(ScriptedWorker([TEXT]), max_rounds=0)


def test_a_conductor_takes_a_model_by_its_name() -> None:
    entry = Conductor("openai:gpt-5").entry

    assert (entry.provider, entry.model) == ("openai", "gpt-5")


@pytest.mark.parametrize("model", ["gpt-5", 5, POOL])
def test_what_is_not_a_model_does_not_conduct(model: Any) -> None:
    with pytest.raises(UsageError, match=re.escape('write Conductor("openai:gpt-5")')):
        Conductor(model)


def test_a_conductor_answers_without_an_event_loop() -> None:
    assert conductor().solve_sync("Why?", POOL).answer == "an answer"


async def test_inside_an_event_loop_the_message_says_what_to_await() -> None:
    with pytest.raises(UsageError, match=r"write `await conductor\.solve\("):
        conductor().solve_sync("Why?", POOL)
    with pytest.raises(UsageError, match=r"write `await wfdsl\.run\("):
        run_sync(WORKFLOW, "Why?", POOL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one.wf", "Why?", POOL), "wfdsl.load(FILE, pool=pool)"),
        ((TEXT, "Why?", POOL), "wfdsl.parse(TEXT)"),
        ((WORKFLOW, "Why?", [answer]), "Pool.from_functions([...])"),
        ((WORKFLOW, "Why?", "openai:gpt-5"), 'Pool.load("openai:gpt-5")'),
    ],
)
def test_run_says_what_to_write(arguments: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        run_sync(*arguments)


@pytest.mark.parametrize(
    ("question", "pool", "message"),
    [
        ("Why?", [answer], "Pool.from_functions([...])"),
        (None, POOL, "question must be a text or a list of chat messages"),
        ([], POOL, "question must not be empty"),
    ],
)
def test_solve_says_what_to_write(question: Any, pool: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        conductor().solve_sync(question, pool)


@pytest.mark.parametrize(
    "steps",
    [
        (Step(0, "a", (3,)),),
        (Step(0, "a"), Step(0, "b", (1,))),
        (Step(0, "a"), Step(0, "b", (-1,))),
        (Step(0, "a"), Step(0, "b", "0")),  # type: ignore[arg-type]
        (Step(0, "a"), Step(0, "b", [0])),  # type: ignore[arg-type]
        [Step(0, "a")],
        ({"worker": 0},),
        ("a",),
        (Step(0, " "),),
        (Step(0, 5),),  # type: ignore[arg-type]
        (Step(0.0, "a"),),  # type: ignore[arg-type]
        (Step(True, "a"),),
    ],
)
def test_a_workflow_made_by_hand_is_checked_when_it_is_run(steps: Any) -> None:
    with pytest.raises(UsageError, match="step"):
        run_sync(Workflow(steps=steps), "Why?", POOL)

    assert run_sync(WORKFLOW, "Why?", POOL).answer == "an answer", "nothing of it is kept"


@pytest.mark.parametrize("pool", ["local", ["a"], [-1], True, 1.5])
def test_what_is_not_a_pool_is_refused(pool: Any) -> None:
    with pytest.raises(UsageError, match="pool must be a Pool, the number of its workers, or a list of their indices"):
        analyze(TEXT, pool=pool)


def test_an_option_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match="there is no option 'pool_size'"):
        analyze(TEXT, pool_size=[0, 2, 5])
    with pytest.raises(UsageError, match=r"^completion "):
        analyze(TEXT, params={"n": "1"})


async def test_the_classes_of_events_and_records_are_public() -> None:
    events = [event async for event in wfdsl.stream(WORKFLOW, "Why?", POOL)]

    assert {type(event).__name__ for event in events} <= set(wfdsl.__all__)
    assert {"RunConfig", "StepRecord", "Retried", "FellBack", "BudgetCharged", "Delta"} <= set(wfdsl.__all__)
    assert isinstance(events[-1], wfdsl.RunFinished)
    assert isinstance(events[-1].run.steps[0], wfdsl.StepRecord)


@pytest.mark.parametrize("draw", [wfdsl.to_svg, wfdsl.to_mermaid, wfdsl.to_terminal, wfdsl.to_html])
@pytest.mark.parametrize("value", ["plan.wf", Path("plan.wf"), TEXT, None])
def test_what_cannot_be_drawn_says_how_a_workflow_is_read(draw: Any, value: Any) -> None:
    with pytest.raises(UsageError, match=re.escape("write wfdsl.load(FILE) or wfdsl.parse(TEXT)")):
        draw(value)


@pytest.mark.parametrize("read", [analyze, wfdsl.parse, partial(analyze, form="wf")])
@pytest.mark.parametrize(
    ("text", "message"),
    [(TEXT.encode(), 'data.decode("utf-8")'), (Path("plan.wf"), "wfdsl.load(FILE)"), (None, "(got NoneType)")],
)
def test_what_is_not_a_text_is_not_read(read: Any, text: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        read(text)
