"""The whole loop over HTTP: question, completion, workflow, answer, revision."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from tests.interpreter.toy_workers import always, on_test_clock, pool_of
from wfdsl import Budget, BudgetExhausted, Pool, Run, RunFailed, Step, UsageError, Workflow
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.listing import list_workers
from wfdsl.conductor.policy import Policy, Solution, WorkflowPolicy
from wfdsl.testing import ScriptedWorker

from .scripted_server import EMPTY, lists

if TYPE_CHECKING:
    from .scripted_server import Chat

PLAN = lists([0, 1], [[], [0]])
JUST = Workflow((Step(2, "Just answer."),))


async def test_a_valid_completion_is_run_and_its_last_response_is_the_answer(chat: Chat) -> None:
    solution = await chat.solve(f"Two steps.\n{PLAN}", max_rounds=0)

    assert solution.answer == "w1: task 1"
    assert chat.called == [
        ("w0", [{"role": "user", "content": "Why?\n\ntask 0"}]),
        (
            "w1",
            [
                {"role": "user", "content": "Why?\n\ntask 0"},
                {"role": "assistant", "content": "w0: task 0"},
                {"role": "user", "content": "task 1"},
            ],
        ),
    ]
    assert [note.result for note in solution.log] == ["ran"]
    assert solution.events == ()


async def test_a_repaired_completion_runs_and_says_what_was_repaired_unless_the_profile_is_strict(chat: Chat) -> None:
    odd = PLAN.replace("[[], [0]]", "[None, 0]")
    solution = await chat.solve(odd, max_rounds=0)
    strict = await chat.solve(odd, PLAN, max_rounds=0, profile="strict")

    (note,) = solution.log
    assert note.completions[0].reading == "repaired"
    assert [each.reading for each in strict.log[0].completions] == ["invalid", "valid"]
    assert solution.events[0].startswith("round 0: the completion was repaired: line 3")
    assert "[access-none]" in solution.events[0]


async def test_an_invalid_completion_is_asked_for_again_with_its_diagnostics(chat: Chat) -> None:
    wrong = lists([0, 9], [[], [1]])
    solution = await chat.solve(wrong, PLAN, max_rounds=0)

    first, second = chat.asked
    assert second[: len(first)] == first
    assert second[len(first)] == {"role": "assistant", "content": wrong}
    assert second[-1]["role"] == "user"
    assert "- line 1: " in second[-1]["content"]
    assert "[worker-not-in-pool]" in second[-1]["content"]
    assert "[access-not-earlier]" in second[-1]["content"]
    assert solution.events == ("round 0: asked again 1 time",)


@pytest.mark.parametrize(
    ("second", "texts", "why"),
    [("still no", ["no", "still no"], "no valid workflow in 2 completions; .*list-missing"), (401, ["no"], "401")],
)
async def test_a_conductor_that_gives_no_workflow_fails_with_every_completion_in_the_record(
    chat: Chat, second: Any, texts: list[str], why: str
) -> None:
    with pytest.raises(RunFailed, match=why) as caught:
        await chat.solve("no", second, reasks=1)

    (note,) = Solution(caught.value.run).log
    assert (note.result, [each.text for each in note.completions]) == ("failed", texts)
    assert chat.called == []


async def test_a_default_that_the_pool_cannot_run_is_refused_before_anything_is_paid_for(chat: Chat) -> None:
    with pytest.raises(UsageError, match="asks worker 9"):
        await chat.solve(PLAN, default=Workflow((Step(9, "Just answer."),)))

    assert chat.asked == []


REVISIONS: dict[str, tuple[list[Any], dict[str, Any], str, str, str]] = {
    "kept": ([EMPTY], {"max_rounds": 3}, "w1: task 1", "kept", "the previous answer was kept"),
    "never valid": (["no", "no"], {"default": JUST}, "w1: task 1", "kept-invalid", "the previous answer is kept"),
    "empty": (["", ""], {}, "w1: task 1", "kept-invalid", "the previous answer is kept"),
    "refused": ([400], {}, "w1: task 1", "kept-failed", "the previous answer is kept: "),
    "refused re-ask": (["no", 400], {}, "w1: task 1", "kept-failed", "the previous answer is kept: "),
    "a worker failed": (
        [lists([9], [[]]), lists([3], [[]])],
        {},
        "w1: task 1",
        "kept-failed",
        "the previous answer is kept: step 0/1/0 failed, worker 3 (broken)",
    ),
    "too many calls": (
        [lists([0, 0, 0], [[], [0], [1]])],
        {"call_factor": 1.0},
        "w1: task 1",
        "kept-over-limit",
        "the revision makes 3 calls, more than 1 times the 2 of round 0",
    ),
    "dead steps do not count": ([lists([0, 0, 2], [[], [], [0]])], {"call_factor": 1.0}, "w2: task 2", "ran", ""),
}


@pytest.mark.parametrize("case", REVISIONS)
async def test_a_revision_that_is_not_run_or_fails_keeps_the_answer_before_and_says_so(chat: Chat, case: str) -> None:
    script, settings, answer, result, said = REVISIONS[case]
    pool = Pool([*chat.pool(), chat.entry("broken")])
    usual = chat.says
    chat.says = lambda name, messages: 400 if name == "broken" else usual(name, messages)

    solution = await chat.solve(PLAN, *script, pool=pool, **{"reasks": 1, **settings})

    assert (solution.answer, chat.script) == (answer, [])
    assert [note.result for note in solution.log] == ["ran", result]
    assert said in " ".join(solution.events)
    assert Run.from_json(solution.run.to_json()) == solution.run


async def test_a_revision_continues_the_conversation_and_all_shows_the_answer_before(chat: Chat) -> None:
    solution = await chat.solve(PLAN, lists([2, 0], ["all", [0]], word="mend"), max_rounds=1)

    first, second = chat.asked
    assert second[: len(first)] == first
    assert second[-2] == {"role": "assistant", "content": PLAN}
    assert "w1: task 1" in second[-1]["content"]
    assert chat.called[2] == (
        "w2",
        [
            {"role": "user", "content": "Why?\n\ntask 1"},
            {"role": "assistant", "content": "w1: task 1"},
            {"role": "user", "content": "mend 0"},
        ],
    )
    assert [message["content"] for message in chat.called[3][1]] == ["Why?\n\nmend 0", "w2: mend 0", "mend 1"]
    assert solution.answer == "w0: mend 1"
    assert len(solution.rounds) == 2


@pytest.mark.parametrize(
    ("calls", "script", "statuses", "results"),
    [(5, [PLAN, PLAN], ["done", "budget"], ["ran", "ran"]), (4, [PLAN, "no", PLAN], ["done"], ["ran", "failed"])],
    ids=["by a worker", "by a re-ask"],
)
async def test_the_budget_covers_completions_and_workers_and_keeps_the_rounds_so_far(
    chat: Chat, calls: int, script: list[str], statuses: list[str], results: list[str]
) -> None:
    with pytest.raises(BudgetExhausted) as caught:
        await chat.solve(*script, max_rounds=1, run={"budget": Budget(calls=calls)})

    stopped = Solution(caught.value.run)
    assert [run.status for run in stopped.rounds] == statuses
    assert stopped.rounds[0].answer == "w1: task 1"
    assert [note.result for note in stopped.log] == results
    assert stopped.log[1].completions[0].text == script[1]
    assert len(chat.asked) + len(chat.called) == calls
    assert results[1] == "ran" or f"the budget of {calls} calls is spent" in " ".join(stopped.events)


async def test_a_dollar_budget_needs_the_price_of_the_conductor_s_model(chat: Chat) -> None:
    conductor = Conductor(chat.entry("conductor", prices=None))

    with pytest.raises(UsageError, match=r"worker 0 \(conductor\) has no known price"):
        await conductor.solve("Why?", chat.pool(), budget=Budget(usd=1.0))


async def test_an_empty_completion_is_asked_for_again(chat: Chat) -> None:
    solution = await chat.solve("", PLAN, max_rounds=0)

    assert solution.answer == "w1: task 1"
    assert [each.reading for each in solution.log[0].completions] == ["invalid", "valid"]
    assert solution.log[0].completions[0].finish == "empty"
    assert "the reply was empty" in chat.asked[1][-1]["content"]
    assert all(message["content"] for message in chat.asked[1]), "some providers refuse empty messages"


async def test_a_revision_shows_a_long_answer_abridged_in_the_middle(chat: Chat) -> None:
    chat.says = lambda name, messages: f"begin {'x' * 5000} end"

    solution = await chat.solve(lists([0], [[]]), EMPTY, max_response_chars=100)

    shown = chat.asked[1][-1]["content"]
    assert "begin xx" in shown
    assert "xx end" in shown
    assert "[4,910 of 5,010 characters are left out here]" in shown
    assert len(shown) < 1500
    assert solution.answer is not None
    assert len(solution.answer) == 5010


async def test_the_record_tells_the_whole_story_and_survives_json(chat: Chat) -> None:
    conductor = chat.conductor("no", PLAN, EMPTY)

    solution = await conductor.solve("Why?", chat.pool())

    again = Solution(Run.from_json(solution.run.to_json()))
    assert again == solution
    assert again.log == solution.log
    assert [note.prompt["hash"] for note in again.log] == [conductor.settings.prompt.hash] * 2
    assert json.loads(solution.to_json())["answer"] == solution.answer
    assert solution.usage.total_tokens == 12 * (len(chat.asked) + len(chat.called))


@pytest.mark.parametrize(("limit_s", "done"), [(9.0, True), (3.0, False)])
def test_the_time_limit_of_steps_is_for_each_step_of_a_workflow_and_not_for_all_of_it(
    limit_s: float, *, done: bool
) -> None:
    conductor = Conductor(ScriptedWorker([lists([0, 0, 0], [[], [0], [1]])]), max_rounds=0)
    solving = conductor.solve("Why?", pool_of(always("done", delay_s=4)), step_timeout_s=limit_s)

    with nullcontext() if done else pytest.raises(RunFailed, match=r"step 0/0/0 failed.* timed out"):
        assert on_test_clock(solving).answer == "done"


async def test_a_seed_makes_the_conductor_repeatable_too(chat: Chat) -> None:
    conductor = chat.conductor("no", PLAN, PLAN, "no", PLAN, PLAN)

    for seed in (7, 8):
        await conductor.solve("Why?", chat.pool(), seed=seed)

    seeds = [body["seed"] for body in chat.bodies]
    assert seeds[0] == seeds[1], "a re-ask is the same step"
    assert len(set(seeds)) == 4, "rounds and runs differ"


async def test_a_conversation_is_the_question_of_conductor_and_workers(chat: Chat) -> None:
    conductor = chat.conductor(lists([0], [[]]), max_rounds=0)

    await conductor.solve(
        [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": "Why?"},
        ],
        chat.pool(),
    )

    shown = chat.asked[0][-1]["content"]
    assert re.search(r"\[user (\w{8})\]\nHello\.\n\n\[assistant \1\]\nHi\.\n\n\[user \1\]\nWhy\?", shown)
    assert [message["content"] for message in chat.called[0][1]] == ["Hello.", "Hi.", "Why?\n\ntask 0"]


async def test_the_conductor_is_told_who_is_shown_the_question(chat: Chat) -> None:
    await chat.solve(PLAN, max_rounds=0, run={"question_for": "first"})

    assert "Only the model of step 0 sees the question" in chat.asked[0][-1]["content"]
    assert [messages[-1]["content"] for _, messages in chat.called] == ["Why?\n\ntask 0", "task 1"]


async def test_opted_out_workers_are_not_shown_and_never_called(chat: Chat) -> None:
    solution = await chat.solve(
        lists([0], [[]]), lists([2], [[]]), max_rounds=0, without=("w0", "odd"), pool=chat.pool(4)
    )

    shown = chat.asked[0][-1]["content"]
    examples = shown.partition("# Examples")[2]
    assert "model_id = [2, 2, 2]" in examples
    assert not re.search(r"model_id = \[[^\]]*[013-9]", examples)
    assert "Model 2" in shown
    assert not any(f"Model {index}" in shown.partition("# The models")[2] for index in (0, 1, 3))
    assert chat.workers == ["w2"]
    assert [each.reading for each in solution.log[0].completions] == ["invalid", "valid"]


async def test_a_worker_without_its_key_is_noticed_before_the_conductor_is_asked(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KEY_FOR_TEST", raising=False)
    pool = Pool([chat.entry("w0"), chat.entry("w1", api_key_env="KEY_FOR_TEST")])
    conductor = chat.conductor(lists([0], [[]]), max_rounds=0)
    without = chat.conductor(lists([0], [[]]), max_rounds=0, without=("w1",))

    with pytest.raises(UsageError, match=r"environment variable KEY_FOR_TEST.*or leave it out \(conductor.without"):
        await conductor.solve("Why?", pool)

    assert chat.asked == []
    assert (await without.solve("Why?", pool)).answer == "w0: task 0"


async def test_shuffled_indices_are_mapped_back_in_calls_and_trace(chat: Chat) -> None:
    conductor = chat.conductor(lists([0, 1, 2], [[], [], "all"]), max_rounds=0, shuffle=True, seed=4)
    pool = chat.pool()
    true = list_workers(conductor.config, pool, "Why?").pool_indices

    solution = await conductor.solve("Why?", pool)

    assert dict(true) != {0: 0, 1: 1, 2: 2}
    assert [step.worker for step in solution.rounds[0].workflow] == [true[0], true[1], true[2]]
    assert solution.log[0].numbering == tuple(sorted(true.items()))


async def test_a_default_workflow_stands_in_the_conversation_in_the_conductor_s_own_numbering(chat: Chat) -> None:
    default = Workflow((Step(0, "Just answer."),))
    conductor = chat.conductor("no", EMPTY, reasks=0, default=default, shuffle=True, seed=4)
    pool = chat.pool()
    (shown,) = (shown for shown, true in list_workers(conductor.config, pool, "Why?").pool_indices.items() if true == 0)

    solution = await conductor.solve("Why?", pool)

    assert shown != 0
    assert chat.workers == ["w0"]
    assert chat.asked[1][-2]["role"] == "assistant"
    assert chat.asked[1][-2]["content"].startswith(f"model_id = [{shown}]")
    assert [note.result for note in solution.log] == ["ran-default", "kept"]
    assert (solution.answer, "the default workflow ran" in solution.events[0]) == ("w0: Just answer.", True)


async def test_conductor_and_workflow_are_policies(chat: Chat) -> None:
    fixed = WorkflowPolicy(Workflow((Step(1, "Answer."),)))

    solution = await fixed.solve("Why?", chat.pool())

    assert isinstance(fixed, Policy)
    assert isinstance(chat.conductor(), Policy)
    assert (solution.answer, len(solution.rounds), solution.log) == ("w1: Answer.", 1, ())
