"""Batches of trials on processes that die, without a cluster; and what `--engine ray` refuses."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

from tests.evaluation.toys import evaluation, pool_of, trial
from tests.evaluation.toys import wfdsl_eval as main
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.evaluation.placing import Batch, Finished, NodeLost, Placement, batches
from wfdsl.evaluation.trials import Evaluation, Trial, TrialKey

RAY = ["--policy", "workers", "--tasks", "gym/seven", "--limit", "2", "--pool", "gym/seven", "--engine", "ray"]
Answer = Callable[[Batch], Finished]


class FakeNode:
    """A process that answers with a function, and remembers how it was used."""

    def __init__(self, answer: Answer, start: Callable[[], None] = lambda: None) -> None:
        self._answer = answer
        self._start = start
        self.closed = 0

    async def start(self) -> None:
        await asyncio.sleep(0)
        self._start()

    async def run(self, batch: Batch) -> Finished:
        await asyncio.sleep(0)
        return self._answer(batch)

    async def close(self) -> None:
        self.closed += 1


def right(batch: Batch) -> Finished:
    return Finished(trials=[trial(**key._asdict()) for key in batch.keys])


def die(*_: Any) -> Any:
    raise NodeLost("the machine is gone")


def one_of_many(count: int) -> Evaluation:
    pool, _ = pool_of(["42"])
    workflow = next(iter(evaluation(pool).policies.values()))
    assert isinstance(workflow, WorkflowPolicy)
    return evaluation(pool, count=count, policies={"one": workflow, "two": workflow}, repeats=2)


async def placed(left: list[Batch], started: list[FakeNode], **options: int) -> tuple[list[Trial], list[str], str]:
    """What landed, what was said and why it stopped; processes are `started` one after the other."""
    found, said, waiting = list[Trial](), list[str](), iter(started)
    placement = Placement(left, keep=found.append, say=said.append)
    how = {"nodes": 1, "ahead": 2, **options}
    async with asyncio.timeout(60):
        stopped = await placement.work(lambda: next(waiting), **how)
    return found, said, stopped


def test_batches_hold_each_trial_that_is_left_once_with_its_task() -> None:
    what = one_of_many(5)
    done = what.trials()[:3]

    found = batches(what, done, 4)

    assert [key for batch in found for key in batch.keys] == what.trials()[3:]
    assert [len(batch.keys) for batch in found] == [4, 4, 4, 4, 1]
    for batch in found:
        assert {f"{task.source}/{task.id}" for task in batch.tasks} == {key.task for key in batch.keys}
        assert len(batch.tasks) == len({task.id for task in batch.tasks})


async def test_what_was_on_a_process_that_died_is_placed_again_and_lands_once() -> None:
    what, count = one_of_many(6), 0

    def dies_at_third(batch: Batch) -> Finished:
        nonlocal count
        count += 1
        return right(batch) if count != 3 else die()

    nodes = [FakeNode(dies_at_third), FakeNode(right)]
    found, said, stopped = await placed(batches(what, (), 4), nodes)

    assert sorted(each.key for each in found) == sorted(what.trials())
    assert said == ["a process died, and its trials are placed again: the machine is gone"]
    assert (stopped, [node.closed for node in nodes]) == ("", [1, 1])


async def test_a_result_that_comes_twice_lands_once() -> None:
    what = one_of_many(2)
    first, *others = what.trials()

    def with_first(batch: Batch) -> Finished:
        return Finished(trials=[trial(**first._asdict()), *right(batch).trials])

    found, _, _ = await placed(batches(what, (), 1), [FakeNode(with_first), FakeNode(with_first)], nodes=2)

    assert sorted(each.key for each in found) == sorted([first, *others])


async def test_trials_that_every_process_dies_of_fail_and_the_others_land() -> None:
    what = one_of_many(4)
    deadly: TrialKey = what.trials()[5]

    def answer(batch: Batch) -> Finished:
        return die() if deadly in batch.keys else right(batch)

    found, said, _ = await placed(batches(what, (), 1), [FakeNode(answer) for _ in range(9)])

    assert sorted(each.key for each in found) == sorted(what.trials())
    failed = {each.key: each.reason for each in found if each.outcome == "failed"}
    assert failed[deadly].endswith("the last one: the machine is gone")
    assert set(failed) <= {deadly, *what.trials()[4:7]}
    assert len(said) <= 5


def refuse() -> None:
    raise UsageError("the node b has other packages")


async def test_a_replacement_that_cannot_run_the_evaluation_is_left_out_and_the_others_go_on() -> None:
    what, count = one_of_many(6), 0

    def dies_at_once(batch: Batch) -> Finished:
        nonlocal count
        count += 1
        return right(batch) if count != 1 else die()

    nodes = [FakeNode(dies_at_once), FakeNode(right), FakeNode(right, start=refuse)]
    found, said, stopped = await placed(batches(what, (), 1), nodes, nodes=2, ahead=1)

    assert sorted(each.key for each in found) == sorted(what.trials())
    assert said[1:] == ["a process is left out: the node b has other packages"]
    assert (stopped, [node.closed for node in nodes]) == ("", [1, 1, 1])


async def test_where_no_process_can_run_the_evaluation_that_is_an_error() -> None:
    with pytest.raises(UsageError, match="the node b has other packages"):
        await placed(batches(one_of_many(2), (), 4), [FakeNode(right, start=refuse) for _ in range(2)], nodes=2)


async def test_processes_that_die_as_they_start_are_an_error() -> None:
    with pytest.raises(UsageError, match="5 processes died without a result; the last one: the machine is gone"):
        await placed(batches(one_of_many(2), (), 4), [FakeNode(right, start=die) for _ in range(5)])


async def test_a_spent_budget_stops_new_batches_and_those_that_run_still_land() -> None:
    what, open_batches, ended = one_of_many(6), list[Batch](), asyncio.Event()

    class Slow(FakeNode):
        async def run(self, batch: Batch) -> Finished:
            open_batches.append(batch)
            if len(open_batches) == 1:
                await ended.wait()
                return right(batch)
            ended.set()
            return Finished(stopped="the budget is spent")

    found, _, stopped = await placed(batches(what, (), 4), [Slow(right)])

    assert stopped == "the budget is spent"
    assert [each.key for each in found] == list(open_batches[0].keys)
    assert len(open_batches) == 2


async def test_a_refusal_ends_everything_after_what_has_landed() -> None:
    what, found = one_of_many(3), list[Trial]()
    node = FakeNode(lambda batch: Finished(trials=right(batch).trials[:1], refused="there is no such worker"))
    placement = Placement(batches(what, (), 4), keep=found.append, say=print)

    with pytest.raises(UsageError, match="there is no such worker"):
        await placement.work(lambda: node, nodes=1, ahead=1)

    assert ([each.key for each in found], node.closed) == (what.trials()[:1], 1)


async def test_nothing_is_started_where_nothing_is_left() -> None:
    assert await placed([], [FakeNode(right)]) == ([], [], "")


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is installed")
def test_without_ray_the_command_says_how_to_install_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RAY) == 2

    said = capsys.readouterr().err
    assert "--engine ray needs ray: pip install" in said
    assert "[ray]" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*RAY[:-2], "--address", "auto"], "add --engine ray"),
        ([*RAY[:-2], "--nodes", "3"], "add --engine ray"),
        ([*RAY, "--budget-usd", "1"], "a budget holds on one machine"),
        ([*RAY, "--policy", "best-fixed"], "which every node would pay for"),
    ],
)
def test_what_nodes_cannot_keep_for_themselves_is_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options) == 2
    assert message in capsys.readouterr().err
