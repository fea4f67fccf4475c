"""Simulated workers in the interpreter: they know what their messages say, and do what the simulation says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.benchmarks.gym_search import vocabulary
from tests.benchmarks.gym_teams import SUBTASKS, team
from wfdsl import Call, Conductor, Pool, RunFailed, Step, UsageError, WorkerFailure, Workflow, run, run_sync
from wfdsl.cli.main import main as wfdsl_command
from wfdsl.grading.grade import grade
from wfdsl.language.completion import print_completion
from wfdsl.protocols import Message
from wfdsl.tasks.task import Task
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.registry import OpenWorkers
from wfdsl.workers.scripted import ScriptedWorker
from wfdsl_rl.gym import make
from wfdsl_rl.gym.world.families import recognise
from wfdsl_rl.gym.world.families.form import Item
from wfdsl_rl.gym.world.presets import preset_of
from wfdsl_rl.gym.world.replies import read
from wfdsl_rl.gym.world.simulate import simulate
from wfdsl_rl.gym.world.workers import build

POOL, PRESET = Pool.load("gym/paper7"), preset_of("gym/paper7")
TASKS = make("gym/paper7", 40, 11)
TEXTS = [*SUBTASKS.values(), "Hello.", "Write a Python function.", "Choose the option."]


def item_of(task: Task) -> Item:
    item = recognise(task.question)
    assert item is not None
    return item


AXES = make("gym/axes", 36, 11)


@st.composite
def workflows(draw: Any, texts: Sequence[str] = TEXTS) -> Workflow:
    steps = []
    for index in range(draw(st.integers(1, 5))):
        access = draw(
            st.just("all") | st.sets(st.integers(0, max(index - 1, 0)), max_size=index).map(sorted).map(tuple)
        )
        steps.append(Step(draw(st.integers(0, 6)), draw(st.sampled_from(texts)), access if index else ()))
    return Workflow(tuple(steps))


@given(workflows(), st.sampled_from(TASKS), st.text(max_size=8))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=20)
def test_a_run_and_a_simulation_with_the_same_sample_are_the_same(workflow: Workflow, task: Task, sample: str) -> None:
    done = run_sync(workflow, task.question, POOL, sample_id=sample)
    played = simulate(workflow, task.question, PRESET, sample_id=sample)

    for step, state in zip(done.steps, played.states, strict=True):
        if step.response is not None:  # dead steps are not run
            assert read(step.response, item_of(task)).state == state
    assert done.usage == played.usage
    assert done.list_usd == pytest.approx(played.usd)


@given(workflows((*vocabulary(preset_of("gym/axes")), "Hello.")), st.sampled_from(AXES))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
def test_parts_of_a_question_are_simulated_as_they_run(workflow: Workflow, task: Task) -> None:
    done = run_sync(workflow, task.question, Pool.load("gym/axes"), sample_id="p")
    played = simulate(workflow, task.question, preset_of("gym/axes"), sample_id="p")

    for step, state in zip(done.steps, played.states, strict=True):
        if step.response is not None:
            assert read(step.response, item_of(task)).state == state
    assert done.usage == played.usage


@given(workflows(), workflows(), st.sampled_from(TASKS))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=20)
def test_a_second_round_is_simulated_as_it_runs(first: Workflow, second: Workflow, task: Task) -> None:
    done = run_sync(first, task.question, POOL, sample_id="s")
    pair = (first[-1].subtask, done.answer or "")
    again = run_sync(second, task.question, POOL, sample_id="s", previous=pair)

    before = simulate(first, task.question, PRESET, sample_id="s")
    after = simulate(second, task.question, PRESET, sample_id="s", previous=(pair[0], before.states[-1]))

    assert read(again.answer or "", item_of(task)).state == after.states[-1]
    assert again.usage == after.usage


async def test_a_conductors_rounds_are_simulated_with_their_prefix_and_the_answer_before_them() -> None:
    first, second = team("PS", (1, 2)), team("SV", (4, 0))
    lists = [print_completion(workflow) for workflow in (first, second)]

    for task in TASKS:
        conductor = Conductor(ScriptedWorker(lists), prompt="tiny", max_rounds=1)
        solved = await conductor.solve(task.question, POOL, sample_id="c")
        before = simulate(first, task.question, PRESET, sample_id="c", prefix=(0, 0))
        pair = (first[-1].subtask, before.states[-1])
        after = simulate(second, task.question, PRESET, sample_id="c", prefix=(0, 1), previous=pair)

        assert read(solved.answer or "", item_of(task)).state == after.states[-1]


async def test_graders_agree_with_the_simulation() -> None:
    workflow = team("PSV", (1, 0, 2))
    outcomes = []

    for task in TASKS:
        if task.kind != "code":  # programs are judged in a sandbox; that the gold ones pass is the families' promise
            answer = (await run(workflow, task.question, POOL, sample_id="g")).answer
            outcomes.append((await grade(task, answer or "")).outcome == "right")
    played = [simulate(workflow, t.question, PRESET, sample_id="g").right for t in TASKS if t.kind != "code"]

    assert outcomes == played
    assert {True, False} == set(played)


async def test_the_same_call_gets_the_same_reply_and_samples_differ() -> None:
    calls = [Call(({"role": "user", "content": f"{t.question}\n\nSolve it."},), (0,), "a") for t in TASKS]
    others = [Call(call.messages, (0,), "b") for call in calls]
    later = [Call(call.messages, (1,), "a") for call in calls]
    worker = POOL.worker(0)

    first = [(await worker(call)).text for call in calls]

    assert [(await worker(call)).text for call in calls] == first
    assert [(await worker(call)).text for call in others] != first
    assert [(await worker(call)).text for call in later] != first


async def test_a_seed_stands_in_for_the_sample() -> None:
    task, workflow = TASKS[0], team("SV", (0, 1))

    left = await run(workflow, task.question, POOL, seed=4, sample_id="a")
    right = await run(workflow, task.question, POOL, seed=4, sample_id="b")

    assert [step.response for step in left.steps] == [step.response for step in right.steps]


@pytest.mark.parametrize(
    ("pool", "question", "said"),
    [
        ("gym/paper7", "Who was the first emperor of Rome?", "of gym/paper7 only know.*first emperor.*arithmetic"),
        ("gym/axes", TASKS[0].question, "of gym/axes only know its own questions.*--tasks gym/axes.*basket"),
    ],
)
async def test_a_question_of_somebody_else_is_refused_with_what_the_gym_knows(
    pool: str, question: str, said: str
) -> None:
    call = Call(({"role": "user", "content": f"{question}\n\nAnswer it."},))

    with pytest.raises(WorkerFailure, match=said) as caught:
        await Pool.load(pool).worker(0)(call)

    assert not caught.value.retryable


async def test_a_reply_that_was_cut_says_so_and_more_tokens_help() -> None:
    workflow = team("S", (2,))
    code = make("gym/paper7", 300, 2, kinds=["code"])
    short = [simulate(workflow, task.question, PRESET, sample_id="s") for task in code]
    long = [simulate(workflow, task.question, PRESET, sample_id="s", max_tokens=5 * 4096) for task in code]
    at = next(at for at, played in enumerate(short) if getattr(played.states[0], "cut", False))

    done = await run(workflow, code[at].question, POOL, sample_id="s")

    assert done.steps[0].finish == "length"
    assert done.usage.output_tokens == 4096
    assert long[at].right
    assert sum(played.right for played in long) > sum(played.right for played in short)


def test_a_mixture_of_agents_takes_about_as_many_tokens_as_in_the_paper() -> None:
    mixture = team("SSSSSSSA", (0, 1, 2, 3, 4, 5, 6, 0))

    tokens = [simulate(mixture, task.question, PRESET, sample_id="s").usage.total_tokens for task in TASKS]

    assert sum(tokens) / len(tokens) == pytest.approx(11_203, rel=0.2)


async def test_max_tokens_of_an_entry_counts() -> None:
    entries = [entry.model_copy(update={"max_tokens": 5 * 4096}) for entry in POOL]
    workflow, code = team("S", (2,)), make("gym/paper7", 40, 2, kinds=["code"])

    for task in code:
        done = await run(workflow, task.question, Pool(entries), sample_id="s")
        played = simulate(workflow, task.question, PRESET, sample_id="s", max_tokens=5 * 4096)

        assert read(done.answer or "", item_of(task)).state == played.states[-1]


async def test_a_conductors_node_can_put_a_subtask_behind_its_own() -> None:
    question = TASKS[0].question
    conversation: list[Message] = [{"role": "user", "content": f"{question}\n\nTake care of the hard part."}]

    done = await run(team("PS", (0, 1)), conversation, POOL, sample_id="n")

    assert all(step.response for step in done.steps)


async def test_sleep_takes_a_share_of_the_simulated_seconds_and_keeps_the_deadline() -> None:
    options = {"preset": "gym/paper7", "profile": "sim-gpt-5", "sleep": 1.0}
    slow = Pool([WorkerEntry(name="slow", provider="gym", options=options, retries=0)])

    with pytest.raises(RunFailed, match="timed out"):
        await run(team("S", (0,)), TASKS[0].question, slow, step_timeout_s=0.05)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, "needs options"),
        ({"preset": "gym/paper7"}, "needs options"),
        ({"preset": "gym/paper8", "profile": "sim-gpt-5"}, "it has gym/paper7"),
        ({"preset": "gym/open4", "profile": "sim-gpt-5"}, "has no profile"),
        ({"preset": "gym/open4", "profile": "sim-gemma-3-27b", "sleep": True}, "sleep is a factor"),
        ({"preset": "gym/open4", "profile": "sim-gemma-3-27b", "nap": 1}, 'no option "nap"'),
    ],
)
def test_a_wrong_entry_is_refused_with_what_would_be_right(options: Any, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        build(WorkerEntry(name="w", provider="gym", options=options), OpenWorkers())


def test_simulating_what_is_not_of_the_gym_is_refused() -> None:
    with pytest.raises(UsageError, match="does not know this question"):
        simulate(team("S", (0,)), "Why?", PRESET)
    with pytest.raises(UsageError, match="has no worker 7"):
        simulate(team("S", (7,)), TASKS[0].question, PRESET)


def test_a_pool_that_is_tried_out_answers(capsys: pytest.CaptureFixture[str]) -> None:
    code = wfdsl_command(["pools", "check", "gym/open4"])

    assert code == 0
    assert capsys.readouterr().out.count('"ok" in ') == 4
