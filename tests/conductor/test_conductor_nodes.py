"""Conductors as workers of the pool: steps that run workflows, through a real client."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import wfdsl
from wfdsl import Call, Conductor, Pool, Reply, RunFailed, Step, UsageError, Workflow, redo, run
from wfdsl.interpreter.events import CompletionStarted
from wfdsl.interpreter.journal_reading import run_of
from wfdsl.interpreter.redoing import prepare_redo

from .scripted_server import lists

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl.interpreter.events import Event

    from .scripted_server import Chat

NODE = {"max_rounds": 0}
BOSS = 2
DELEGATE = lists([BOSS], [[]], word="delegate")


@pytest.mark.parametrize("depth", [1, 2, 3])
async def test_a_node_at_each_depth_up_to_the_cap(chat: Chat, depth: int) -> None:
    solution = await chat.solve(
        *[DELEGATE] * depth, lists([1], [[]]), max_rounds=0, pool=chat.pool(2, node=NODE), run={"max_depth": depth}
    )

    listed = [f"Model {BOSS}" in messages[-1]["content"].partition("# The models")[2] for messages in chat.asked]
    assert listed == [*[True] * depth, False]
    assert solution.answer == "w1: task 0"
    (step,) = solution.rounds[0].steps
    for _ in range(depth - 1):
        (step,) = step.nested[0].steps
    assert step.nested[0].settings["conductor"][0]["result"] == "ran"


async def test_events_name_the_provider_of_a_node_s_model(chat: Chat) -> None:
    chat.script = [lists([0], [[]]), lists([1], [[]])]
    pool = chat.pool(2, node=NODE)
    plain = Conductor(chat.entry("conductor"), max_rounds=0).as_worker("boss")
    heard: list[Event] = []

    for each in (pool, Pool.from_workers([plain, (chat.entry("w"), echo)])):
        await run(Workflow((Step(each.conductors[0], "Delegate."),)), "Why?", each, on_event=heard.append)

    assert [event.provider for event in heard if isinstance(event, CompletionStarted)] == ["openai", "openai"]


async def echo(call: Call) -> Reply:
    return Reply("x")


async def test_at_the_cap_a_conductor_is_an_error_that_is_asked_about_again(chat: Chat) -> None:
    solution = await chat.solve(
        DELEGATE, DELEGATE, lists([0], [[]]), max_rounds=0, pool=chat.pool(2, node=NODE), run={"max_depth": 1}
    )

    assert "[worker-not-in-pool]" in chat.asked[2][-1]["content"]
    assert solution.answer == "w0: task 0"


async def test_a_node_s_question_is_its_own_messages(chat: Chat) -> None:
    await chat.solve(lists([0, BOSS], [[], [0]]), lists([1], [[]]), max_rounds=0, pool=chat.pool(2, node=NODE))

    shown = re.sub(r" \w{8}\]", "]", chat.asked[1][-1]["content"])
    assert "[user]\nWhy?\n\ntask 0\n\n[assistant]\nw0: task 0\n\n[user]\ntask 1" in shown
    assert [message["content"] for message in chat.called[1][1]] == ["Why?\n\ntask 0", "w0: task 0", "task 1\n\ntask 0"]


async def test_a_worker_that_fails_inside_a_nested_run_is_named(chat: Chat) -> None:
    chat.says = lambda name, messages: 400

    with pytest.raises(RunFailed, match=r"worker 2 \(boss\): step 0/0/0/0/0 failed, worker 1 \(w1\)"):
        await chat.solve(DELEGATE, lists([1], [[]]), max_rounds=0, pool=chat.pool(2, node=NODE))


async def test_a_conductor_made_in_python_can_be_a_member_of_a_pool(chat: Chat) -> None:
    conductor = chat.conductor(lists([0], [[]]), max_rounds=0)
    plain = chat.pool(1)
    pool = Pool.from_workers([(plain.entry(0), plain.worker(0)), conductor.as_worker("boss", description="Plans.")])

    async with plain.open():
        done = await run(Workflow((Step(1, "Delegate."),)), "Why?", pool)

    assert done.answer == "w0: task 0"


async def test_outside_of_a_run_the_model_behind_a_node_answers(chat: Chat) -> None:
    chat.script = ["ok"]
    async with chat.pool(1, node=NODE).open() as pool:
        reply = await pool.worker(1)(Call(({"role": "user", "content": "Reply with the word ok."},)))

    assert reply.text == "ok"


async def test_conductors_that_cannot_be_nodes_are_refused(chat: Chat) -> None:
    plain, subset, delegate = chat.pool(1), chat.conductor(without=("w0",)), Workflow((Step(1, "Delegate."),))
    boss = chat.entry("boss", provider="conductor")
    at_the_cap = chat.pool(1, node=NODE).subset([1])

    with pytest.raises(UsageError, match="offered the whole pool of its run"):
        subset.as_worker("boss")
    for member, message in (
        ((boss, subset), "offered the whole pool of its run"),
        ((chat.entry("boss", provider="function"), chat.conductor()), 'needs the provider "conductor"'),
    ):
        with pytest.raises(RunFailed, match=message):
            await run(delegate, "Why?", Pool.from_workers([(plain.entry(0), plain.worker(0)), member]))
    with pytest.raises(UsageError, match="has only Conductors, and the recursion depth is used up"):
        await run(delegate, "Why?", at_the_cap)
    assert chat.asked == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"provider": "conductor"}, "needs the provider of its model"),
        ({"max_rounds": "two"}, "options.max_rounds must be a whole number"),
        ({"profile": "loose"}, "options.profile must be "),
        ({"prompt": "nowhere.toml"}, "no template set 'nowhere.toml'"),
        ({"prompt": 3}, 'worker "boss": options.prompt must be a text'),
    ],
)
def test_options_that_cannot_be_used_are_refused(chat: Chat, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        chat.pool(1, node=options).worker(1)


async def test_a_node_is_asked_again_only_if_it_or_a_step_before_it_is_redone(chat: Chat, tmp_path: Path) -> None:
    pool, journal = chat.pool(2, node=NODE), tmp_path / "journal.db"
    chat.script = [lists([1], [[]], word="inner")] * 2
    first = await run(Workflow((Step(BOSS, "Lead."), Step(0, "Conclude.", (0,)))), "Why?", pool, journal=journal)
    chat.called.clear()

    prepared = prepare_redo(journal, first.id, 1).estimate(pool)
    again = await redo(first.id, 1, pool, journal=journal)
    asked = (list(chat.workers), len(chat.asked))
    await redo(first.id, 0, pool, journal=journal)

    assert [(step.step, step.messages[1]["content"]) for step in prepared.steps] == [(1, first.steps[0].response)]
    assert asked == (["w0"], 1)
    assert again.steps[0].response == first.steps[0].response
    assert (chat.workers, len(chat.asked)) == (["w0", "w1", "w0"], 2)


@pytest.mark.parametrize("has_node", [False, True])
async def test_the_rounds_of_a_killed_run_are_read_again_from_the_journal(
    chat: Chat, tmp_path: Path, *, has_node: bool
) -> None:
    path = tmp_path / "journal.db"
    plans = [lists([BOSS, 1], [[], [0]]), lists([0, 1], [[], [0]])] if has_node else [lists([0, 1], [[], [0]])]
    revision = lists([1, 0], ["all", [0]], word="improve")
    conductor = chat.conductor("no lists", *plans, revision, max_rounds=1)
    done = (
        await conductor.solve("Why?", chat.pool(2, node=NODE), journal=path, run_id="one", origin={"solve": "x"})
    ).run
    with closing(sqlite3.connect(path)) as journal, journal:
        journal.execute("UPDATE runs SET record = NULL, status = 'running', owner = NULL")
        journal.execute("UPDATE calls SET status = 'lost', reply = NULL WHERE id = (SELECT max(id) FROM calls)")

    rebuilt = run_of(path, "one")

    assert rebuilt.error.endswith("continue with: wfdsl runs resume one")
    (before,), (after,) = done.steps, rebuilt.steps
    assert (rebuilt.status, after.status, after.worker_name) == ("stopped", "stopped", before.worker_name)
    assert [each.workflow for each in after.nested] == [each.workflow for each in before.nested]
    assert [each.status for each in after.nested] == ["done", "stopped"]
    assert [step.status for step in after.nested[1].steps] == ["done", "stopped"]
    for old, new in zip(before.nested, after.nested, strict=True):
        known = [step for step in zip(old.steps, new.steps, strict=True) if step[1].status == "done"]
        assert [step.response for step, _ in known] == [step.response for _, step in known]
        assert [step.messages for step in old.steps] == [step.messages for step in new.steps]
    if has_node:
        (old,), (new,) = before.nested[0].steps[0].nested, after.nested[0].steps[0].nested
        assert [step.messages for step in old.steps] == [step.messages for step in new.steps]
    assert "improve 1" in wfdsl.to_svg(rebuilt)
