"""Your own Python in every command: `file.py:name` as workers, policy, grader; and what is wrong with one in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command, wfdsl  # noqa: F401  (a fixture)
from wfdsl import Evaluation, Pool, Task, evaluate
from wfdsl.errors import UsageError
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.own_code import load_function

pytestmark = pytest.mark.usefixtures("folder")

MINE = """
from wfdsl import Pool, Workflow, run
from wfdsl.conductor.policy import Solution, WorkflowPolicy
from wfdsl.language.workflow import Step
from words import ANSWER

async def ask(messages):
    return ANSWER

pool = Pool.from_functions([ask])
number = 3

class Once:
    async def solve(self, question, pool, **options):
        return await WorkflowPolicy(Workflow((Step(0, "Answer."),))).solve(question, pool, **options)

class Silent:
    async def solve(self, question, pool, **options):
        return "four"

class Stubborn:
    async def solve(self, question, pool): ...

def strict(task, text):
    return text == task.gold
"""
ONE = 'step answer by 0: "Answer."\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "words.py").write_text('ANSWER = "four"\n')
    (tmp_path / "broken.py").write_text("x = 1 / 0\n")
    (tmp_path / "one.wf").write_text(ONE)
    row = {"id": "t", "question": "2 + 2?", "gold": "four", "kind": "custom", "grader": "mine.py:strict"}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path


@pytest.mark.parametrize("pool", ["mine.py:pool", "mine.py:ask"])
def test_functions_are_workers_and_a_policy_of_ones_own_answers(wfdsl: Command, pool: str) -> None:  # noqa: F811
    commands = [
        ("run", "one.wf", "2 + 2?", "--pool", pool),
        ("solve", "2 + 2?", "--pool", pool, "--conductor", "mine.py:Once"),
    ]

    for command in commands:
        done = wfdsl(*command, "--quiet")
        assert (done.code, done.out) == (0, "four\n"), done.err


@pytest.mark.parametrize("command", [("solve", "?", "--conductor"), ("eval", "--tasks", "tasks.jsonl", "--policy")])
def test_a_policy_that_takes_no_options_or_gives_no_solution_is_named(wfdsl: Command, command: tuple[str, ...]) -> None:  # noqa: F811
    for name in ("Silent", "Stubborn"):
        done = wfdsl(*command, f"mine.py:{name}", "--pool", "mine.py:pool")
        assert (done.code, name in done.err) == (2, True)


def test_an_evaluation_has_workers_policy_and_grader_of_ones_own(wfdsl: Command) -> None:  # noqa: F811
    policies = ("--policy", "mine.py:Once", "--policy", "one.wf")
    out = ("--out", "results", "--no-plots", "--json")

    done = wfdsl("eval", *policies, "--pool", "mine.py:pool", "--tasks", "tasks.jsonl", *out)
    again = wfdsl("eval", "--resume", "results", "--no-plots", "--quiet")

    assert (done.code, again.code) == (0, 0), done.err + again.err
    found = {each["policy"]: each["overall"]["value"] for each in json.loads(done.out)["policies"]}
    assert found == {"mine.py:Once": 1.0, "one": 1.0}


async def test_an_evaluation_in_python_writes_the_folder_that_commands_read(wfdsl: Command) -> None:  # noqa: F811
    pool = Pool.load("mine.py:pool")
    with pytest.raises(UsageError, match="without arguments"):
        policies_of(["mine.py:Pool"], pool)
    tasks = [Task(id=name, question="2 + 2?", gold=gold, kind="text") for name, gold in {"a": "four", "b": "5"}.items()]
    what = Evaluation(policies=policies_of(["workers", "mine.py:Once"], pool), tasks=tasks, pool=pool)

    await evaluate(what, out="results")
    commands = (("report", "results"), ("compare", "results"), ("equal-cost", "results"))
    codes = [wfdsl("eval", *command, "--json").code for command in commands]

    assert codes == [0, 0, 0]
    with pytest.raises(UsageError, match="holds an evaluation"):
        await evaluate(what, out="results")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent.py:pool", "there is no file"),
        ("broken.py:pool", "ZeroDivisionError"),
        ("mine.py:absent", "has no 'absent'"),
        ("mine.py:number", "int"),
    ],
)
def test_what_is_wrong_with_ones_own_code_is_said_in_a_line(wfdsl: Command, name: str, said: str) -> None:  # noqa: F811
    commands = [
        ("run", "one.wf", "?", "--pool", name),
        ("solve", "?", "--pool", "mine.py:pool", "--conductor", name),
        ("eval", "--policy", name, "--pool", "mine.py:pool", "--tasks", "tasks.jsonl"),
        ("serve", "--pool", name, "--port", "0"),
    ]

    for command in commands:
        done = wfdsl(*command)
        assert (done.code, len(done.err.strip().splitlines())) == (2, 1)
        assert name in done.err
    with pytest.raises(UsageError, match=said):
        load_function(name)
