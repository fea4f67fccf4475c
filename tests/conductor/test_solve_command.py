"""`wfdsl solve`, as a user calls it, with the scripted server as pool and Conductor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl import Run
from wfdsl.cli.main import main
from wfdsl.interpreter.journal_file import default_path
from wfdsl.interpreter.journal_reading import full_id, run_of

from .scripted_server import EMPTY, lists

if TYPE_CHECKING:
    from .scripted_server import Chat

PLAN = lists([0, 1], [[], [0]])


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat: Chat) -> None:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    free = "retries = 0\nprices = { input = 0, output = 0 }"
    Path("pool.toml").write_text(chat.pool_file("w0", "w1", "w2", more=free))
    Path("boss.toml").write_text(chat.pool_file("conductor", more=free))


def solve(*more: str) -> int:
    return main(["solve", "--conductor", "boss.toml", "--pool", "pool.toml", *more])


def rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_the_answer_goes_to_standard_output_and_what_happened_to_standard_error(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.script = ["no", PLAN, EMPTY]

    code = solve("-q", "Why?")

    out, err = capsys.readouterr()
    assert (code, out) == (0, "w1: task 1\n")
    assert "round 0: asked again 1 time\n" in err
    assert "round 1: the previous answer was kept\n" in err


def test_the_whole_solution_can_be_had_as_json(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    chat.script = [PLAN]

    solve("-q", "Why?", "--json", "--max-rounds", "0")

    found = json.loads(capsys.readouterr().out)
    assert found["answer"] == "w1: task 1"
    assert found["rounds"][0]["completions"][0]["text"] == PLAN
    assert Run.from_json(json.dumps(found["run"])).answer == "w1: task 1"


def test_the_trace_shows_completions_and_what_was_out_of_the_ordinary(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.script = ["no", PLAN, EMPTY]
    solve("-q", "Why?")
    capsys.readouterr()

    main(["runs", "show", "last"])

    out = capsys.readouterr().out
    told = ["## round 0: done", "asked again 1 time", "model_id = [0, 1]", "w1: task 1", "## round 1: answer kept"]
    places = [out.index(text) for text in told]
    assert places == sorted(places), "rounds in order, each with what was written before its replies"


def test_dollars_of_simulated_workers_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("one.wf").write_text('step answer by 0: "Solve it."\n')

    main(["run", "one.wf", "--pool", "gym/seven", "-q", "Today is Friday. Which day of the week is it in 100 days?"])

    err = capsys.readouterr().err
    assert "$" in err
    assert all(line.endswith("simulated") for line in err.splitlines() if "$" in line)


def test_the_default_workflow_is_a_wf_file(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    Path("default.wf").write_text('step answer by w2: "Just answer."\n')
    chat.script = ["no"]

    code = solve(
        "-q", "Why?", "--set", "conductor.reasks=0", "--max-rounds", "0", "--set", "conductor.default=default.wf"
    )

    assert (code, capsys.readouterr().out) == (0, "w2: Just answer.\n")


def test_a_spent_budget_ends_with_code_4_and_the_run_can_be_gone_on_with(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.script = [PLAN]

    first = solve("-q", "Why?", "--max-rounds", "0", "--effort", "high", "--budget-calls", "2")
    advice = capsys.readouterr().err.split()[-4:]
    again = main(["runs", "resume", "last", "--pool", "pool.toml"])
    second = main([*advice[1:], "--budget-calls", "9"])

    assert (first, again, advice[:3], second) == (4, 4, ["wfdsl", "runs", "resume"], 0)
    assert chat.workers == ["w0", "w1"]
    assert len(chat.asked) == 1  # its options are the run's: no round after the first


def test_a_run_of_a_policy_of_ones_own_is_resumed_with_it(chat: Chat) -> None:
    Path("mine.py").write_text(
        "from wfdsl.conductor.config import ConductorConfig\n"
        "from wfdsl.conductor.named import named_conductor\n\n\n"
        "class Mine:\n"
        "    async def solve(self, question, pool, **options):\n"
        "        config = ConductorConfig(model='boss.toml', max_rounds=0)\n"
        "        return await named_conductor(config).solve(question, pool, **options)\n"
    )
    chat.script = [PLAN]
    asked = ["solve", "Why?", "--conductor", "mine.py:Mine", "--pool", "pool.toml"]

    codes = [main([*asked, "--budget-calls", "2"]), main(["runs", "resume", "last", "--budget-calls", "9"])]

    assert codes == [4, 0]
    assert (len(chat.asked), chat.workers) == (1, ["w0", "w1"])


def test_a_conductor_that_wrote_nothing_valid_is_asked_anew_and_not_from_the_journal(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.script = ["no", PLAN]

    first = solve("-q", "Why?", "--max-rounds", "0", "--set", "conductor.reasks=0")
    said = capsys.readouterr().err
    second = solve("-q", "Why?", "--max-rounds", "0", "--set", "conductor.reasks=0")

    assert (first, second) == (3, 0)
    assert "no valid workflow in 1 completion" in said
    assert said.splitlines()[-1].endswith("or run the same command again for other completions")


def test_a_dry_run_prints_what_is_then_sent(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    chat.script = [PLAN]

    solve("-q", "Why?", "--dry-run", "--json")
    shown = json.loads(capsys.readouterr().out)["messages"]
    solve("-q", "Why?", "--max-rounds", "0")

    assert shown == chat.asked[0]


def test_a_budget_covers_all_questions_together(chat: Chat) -> None:
    Path("in.jsonl").write_text('{"question": "a"}\n{"question": "b"}\n')
    chat.script += [lists([0], [[]])] * 2
    arguments = ["--from", "in.jsonl", "--out", "out.jsonl", "--max-rounds", "0", "--parallel", "1"]

    first = solve(*arguments, "--budget-calls", "3")
    second = solve(*arguments)

    assert (first, second) == (4, 0)
    assert [row["answer"] for row in rows("out.jsonl")] == ["w0: task 0"] * 2
    assert rows("out.jsonl")[1]["rounds"][0]["result"] == "ran"
    assert (len(chat.asked), len(chat.called)) == (2, 2)


def test_options_that_cannot_be_used_end_with_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["solve", "--pool", "pool.toml", "-q", "Why?", "--conductor", "gpt"])

    assert code == 2
    assert "no Conductor 'gpt': write local, openai:MODEL" in capsys.readouterr().err


def test_a_step_of_a_round_is_asked_again_and_the_conductor_after_it(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.script = [PLAN, lists([2, 0], [[], [0]], word="better"), EMPTY]
    solve("-q", "Why?")
    first = _last_run()
    chat.says = lambda name, messages: f"{name}, again"
    chat.script = [EMPTY]
    chat.called.clear()
    chat.asked.clear()
    capsys.readouterr()
    monkeypatch.chdir("/")  # Conductor and pool are found again from another folder

    code = main(["runs", "redo", "last", "--round", "0", "--step", "1"])

    out, err = capsys.readouterr()
    again = _last_run()
    assert (code, out) == (0, "w1, again\n")
    assert chat.workers == ["w1"]
    assert len(chat.asked) == 1
    assert "w1, again" in chat.asked[0][-1]["content"]
    assert err.splitlines()[0].startswith("asked again: step 1 (cost: at most $0.00), and the Conductor's later rounds")
    assert [step.replayed for step in again.steps[0].nested[0].steps] == [True, False]
    assert again.settings["origin"]["from"] == first.id
    assert run_of(default_path(), first.id) == first


def test_a_step_of_a_later_round_keeps_the_rounds_before_it(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    chat.script = [PLAN, lists([2, 0], [[], [0]], word="better"), EMPTY]
    solve("-q", "Why?")
    chat.script = [EMPTY]
    chat.called.clear()
    chat.asked.clear()
    capsys.readouterr()
    first = _last_run()

    code = main(["runs", "redo", "last", "--round", "1", "--step", "0"])

    assert (code, chat.workers, len(chat.asked)) == (0, ["w2", "w0"], 0)  # it was the last round
    assert "later rounds" not in capsys.readouterr().err
    main(["runs", "show", "last"])
    assert capsys.readouterr().out.count(f"From run {first.id}, with round 1, step 0 asked again.") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--step", "0"], "say in which round the step is"),
        (["--step", "0", "--round", "3"], "has no round 3: it has 1, from round 0"),
        (["--step", "7", "--round", "0"], "has no step '7': its steps are 0 to 1"),
        (["--step", "0", "--round", "0", "--subtask", "Other."], "leave subtask and worker out"),
    ],
)
def test_what_cannot_be_redone_is_said_in_one_line(
    chat: Chat, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.script = [PLAN, EMPTY]
    solve("-q", "Why?")
    capsys.readouterr()

    code = main(["runs", "redo", "last", *arguments])

    assert code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def _last_run() -> Run:
    return run_of(default_path(), full_id(default_path(), "last"))


def test_a_redo_that_failed_is_continued_by_the_command_that_it_names(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.script = [lists([0, 1, 2], [[], [0], [1]]), EMPTY]
    solve("-q", "Why?")
    first, works = _last_run(), chat.says
    chat.says = lambda name, messages: 400 if name == "w2" else works(name, messages)
    chat.called.clear()

    failed = main(["runs", "redo", first.id, "--round", "0", "--step", "1"])
    advice = capsys.readouterr().err.split()[-4:]
    chat.says, chat.script = works, [EMPTY]
    continued = main(advice[1:])

    assert (failed, continued) == (3, 0)
    assert chat.workers == ["w1", "w2", "w2"]
    assert _last_run().settings["origin"]["from"] == first.id
