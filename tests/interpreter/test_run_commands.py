"""`wfdsl run`, `resume`, `runs` and `trace`, as a user calls them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from tests.interpreter.toy_workers import always, in_turn, pool_of

from wfdsl import Conductor, Pool, Step, Workflow
from wfdsl.cli.display.progress import Progress
from wfdsl.cli.main import main
from wfdsl.interpreter.record import Run
from wfdsl.interpreter.running import run
from wfdsl.protocols import Usage, WorkerFailure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.interpreter.events import Listener

LISTS = (
    'model_id = [0, 1, 0, 0]\nsubtasks = ["Plan.", "Solve.", "Dead.", "Check."]\naccess_list = [[], [0], [], [0, 1]]'
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("plan.txt").write_text(LISTS)
    write_pool(["one", "two", "three"], ["bee"])
    return tmp_path


def write_pool(first: Sequence[str], second: Sequence[str]) -> None:
    """A pool of two scripted workers, `a` and `b`."""
    workers = "".join(
        f'[[pool.workers]]\nname = "{name}"\nprovider = "scripted"\nretries = 0\n'
        f"prices = {{ input = 1.0, output = 2.0 }}\noptions = {{ replies = {json.dumps(list(replies))} }}\n"
        for name, replies in (("a", first), ("b", second))
    )
    Path("pool.toml").write_text(f'[pool]\nname = "toy"\n{workers}')


def run_plan(*more: str) -> int:
    return main(["run", "plan.txt", "-q", "What is 2+2?", "--pool", "pool.toml", *more])


def test_the_answer_is_all_that_goes_to_standard_output(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run_plan()

    out, err = capsys.readouterr()
    assert (code, out) == (0, "two\n")
    assert "step 1 done" in err
    assert "1 left out because they cannot change the answer" in err


@pytest.mark.usefixtures("home")
def test_spans_have_the_name_of_the_workflow_file_also_when_it_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str] = []

    def listener(*, workflow: str) -> Listener:
        named.append(workflow)
        return lambda event: None

    monkeypatch.setattr("wfdsl.interpreter.telemetry.SpanListener", listener)
    monkeypatch.setattr("wfdsl.interpreter.telemetry.require_provider", lambda: None)
    write_pool(["one"], ["bee"])

    run_plan("--otel", "--quiet")
    main(["runs", "resume", "last", "--otel", "--quiet"])

    assert named == ["plan", "plan"]


@pytest.mark.usefixtures("home")
def test_spans_that_no_one_would_get_are_refused_before_anything_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    code = run_plan("--otel")

    assert code == 2
    assert "opentelemetry-instrument" in capsys.readouterr().err


def test_json_prints_the_whole_trace(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_plan("--json")

    done = Run.from_json(capsys.readouterr().out)
    assert done.answer == "two"
    assert [step.status for step in done.steps] == ["done", "done", "pruned", "done"]
    assert done.settings["origin"] == {"file": str(home / "plan.txt"), "pool": str(home / "pool.toml")}
    assert done.paid_usd is not None
    assert done.paid_usd > 0


def test_a_dry_run_asks_nobody_and_says_what_it_would_cost_at_most(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_plan("--dry-run")

    out = capsys.readouterr().out
    assert code == 0
    assert "user: Solve." in out
    assert "assistant: {response of step 0}" in out
    assert "calls: 3\n" in out
    # Three replies of 4096 tokens at $2, read again at $1 by two steps and then one; prompts of 19, 25 and 31 bytes.
    expected = (3 * 4096 * 2 + 3 * 4096 + 19 + 25 + 31) / 1e6
    assert f"cost at most: ${expected:.4f}\n" in out
    assert not (home / "home").exists()


def test_a_spent_budget_exits_4_and_a_larger_one_goes_on_from_another_folder_on_the_same_pool(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_plan("--budget-calls", "2") == 4
    assert "the budget of 2 calls is spent" in capsys.readouterr().err.splitlines()[-1]
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    write_pool(["wrong"] * 3, ["wrong"] * 3)

    resumed = main(["runs", "resume", "last", "--budget-calls", "3"])

    assert (resumed, capsys.readouterr().out) == (0, "one\n")  # the script of a new process begins again


def test_a_journal_that_cannot_be_written_says_how_to_go_on(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("taken").touch()
    monkeypatch.setenv("WFDSL_HOME", "taken")

    code = run_plan()
    message = capsys.readouterr().err.splitlines()[-1]
    without = run_plan("--set", "run.journal=false")

    assert code == 2
    assert not (home / "home").exists()
    assert "set WFDSL_HOME to a folder that can be written" in message
    assert "Errno" not in message
    assert (without, capsys.readouterr().out) == (0, "two\n")


def test_a_failed_run_exits_3_with_step_worker_cause_and_cure(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pool(["one"], [""])

    code = run_plan("--json")

    out, err = capsys.readouterr()
    assert code == 3
    assert (
        "step 1 failed, worker 1 (b): the reply was empty; fix the cause, then continue with: wfdsl runs resume" in err
    )
    partial = Run.from_json(out)
    assert (partial.answer, partial.status) == (None, "failed")
    assert [step.response for step in partial.steps] == ["one", None, None, None]


def test_runs_are_listed_traced_exported_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["runs"])
    nothing = capsys.readouterr().out
    run_plan()
    capsys.readouterr()

    main(["runs", "--json"])
    listed = json.loads(capsys.readouterr().out)
    main(["runs"])
    line = capsys.readouterr().out
    main(["runs", "show", listed["id"][:20]])
    traced = capsys.readouterr().out
    main(["runs", "export"])
    exported = capsys.readouterr().out
    code = main(["runs", "rm", "last"])
    run_plan("--quiet")
    for days in ("1", "0"):
        main(["runs", "rm", "--days", days])
    removed = capsys.readouterr().err
    gone = main(["runs", "show", "last"])

    assert nothing == ""
    assert (listed["status"], listed["calls"], listed["title"]) == ("done", 3, "What is 2+2?")
    assert line.splitlines()[1].startswith(listed["id"])
    assert "### step 1: b, done" in traced
    assert "\nbee\n" in traced
    assert Run.from_json(exported.strip()).answer == "two"
    assert code == 0
    assert [line for line in removed.splitlines() if "removed" in line] == ["1 removed", "0 removed", "1 removed"]
    assert gone == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs", "resume", "nothing"], "there is no journal at"),
        (["runs", "show", "nothing"], "there is no journal at"),
        (
            ["run", "plan.txt", "-q", "Q", "--pool", "pool.toml", "--set", "budget.calls=-1"],
            "--set budget.calls must be at least 0 (got -1)",
        ),
    ],
)
def test_what_cannot_be_used_exits_2_with_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code = main(arguments)

    problem = [line for line in capsys.readouterr().err.splitlines() if line.startswith("wfdsl ")]
    assert code == 2
    assert len(problem) == 1
    assert message in problem[0]


BRANCHES = Workflow((Step(0, "a"), Step(1, "b"), Step(0, "dead"), Step(0, "c", (0, 1))))


async def test_plain_lines_tell_the_whole_story() -> None:
    page = io.StringIO()
    broken = in_turn(WorkerFailure("HTTP 503", retryable=True), WorkerFailure("HTTP 404", retryable=False))
    pool = pool_of(always("x", usage=Usage(5, 5), list_usd=0.5), broken, entries=[{}, {"retries": 1, "fallback": "w0"}])

    with Progress(Console(file=page, width=100), live=False) as display:
        await run(BRANCHES, "Q", pool, names=["first", "second", "third", "fourth"], on_event=display)

    text = page.getvalue()
    assert "3 steps, 1 left out because they cannot change the answer" in text
    assert "second tries again in " in text
    assert "second goes to w0: HTTP 404" in text
    assert "fourth done: " in text
    assert "10 tokens, $0.50" in text
    assert ": done in " in text


NODE = """[pool]
[[pool.workers]]
name = "ann"
provider = "scripted"
options = { replies = ["fine"], repeat = true }
[[pool.workers]]
name = "boss"
provider = "conductor"
options = { provider = "scripted", replies = ["I do not know."], repeat = true, reasks = REASKS }
"""


def test_a_conductor_node_without_a_workflow_says_how_to_continue_the_run(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("node.wf").write_text('step core by 0: "Say."\nstep sol by conductor sees core: "Solve."\n')
    Path("node.toml").write_text(NODE.replace("REASKS", "0"))
    assert main(["run", "node.wf", "-q", "Q", "--pool", "node.toml", "--dry-run"]) == 0
    assert "calls: 1 and those of a Conductor\n" in capsys.readouterr().out
    assert main(["run", "node.wf", "-q", "Q", "--pool", "node.toml", "--quiet"]) == 3
    command = capsys.readouterr().err.partition("then continue with: wfdsl ")[2].split(" (")[0]

    written = r"model_id = [0]\nsubtasks = [\"Say.\"]\naccess_list = [[]]"
    Path("node.toml").write_text(NODE.replace("REASKS", "1").replace("I do not know.", written))

    assert main([*command.split(), "--quiet"]) == 0
    assert capsys.readouterr().out == "fine\n"


def test_a_run_on_the_small_model_says_that_no_pool_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def notes(*more: str) -> str:
        assert main(["run", "plan.txt", "-q", "Q", "--dry-run", "--set", "run.max_depth=0", *more]) == 0
        return capsys.readouterr().err

    Path("plan.txt").write_text('model_id = [0]\nsubtasks = ["Say."]\naccess_list = [[]]')
    assert "no pool is named, so a very small model on this machine (135 million parameters) answers" in notes()
    assert "no pool is named" not in notes("--quiet") + notes("--pool", "local")


async def test_what_a_conductor_wrote_is_drawn_above_the_table() -> None:
    page = io.StringIO()
    console = Console(file=page, force_terminal=True, width=100, color_system=None)
    wrote = 'model_id = [0]\nsubtasks = ["Say it."]\naccess_list = [[]]'
    pool = Pool.from_functions([in_words("boss"), in_words("42")], names=["boss", "ann"])

    with Progress(console, {0: "boss (simulated)"}, live=True) as display:
        await Conductor(always(wrote), max_rounds=0).solve("Q", pool, on_event=display)

    told = page.getvalue()
    assert told.index("round 0") < told.index("◉ step 0  boss (simulated)  answer") < told.rindex("round 0, step 0")


def in_words(text: str) -> Any:
    async def answer(messages: list[dict[str, Any]]) -> str:
        return text

    return answer
