"""`wfdsl solve --from --out`: whatever stops it, continue with: the same command, and nothing is paid for twice."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conductor.scripted_server import Chat, lists
from tests.forked import Program
from wfdsl.cli.main import main
from wfdsl.interpreter.events import Listener, RunStarted

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("place")

ONE = lists([0], [[]])


@pytest.fixture
def chat() -> Iterator[Chat]:
    with Chat() as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat: Chat) -> Path:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for file, name in (("pool.toml", "w0"), ("boss.toml", "conductor")):
        Path(file).write_text(chat.pool_file(name, more="retries = 0\nprices = { input = 1, output = 1 }"))
    Path("vote.wf").write_text(
        'param n = 2\nstep try by w0 copies {n}: "Try."\nstep choose by w0 sees try: "Choose."\n'
    )
    return tmp_path


def ask(*rows: Any) -> None:
    Path("in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def solve(*more: str, conductor: str = "boss.toml") -> int:
    rounds = ["--max-rounds", "0"] if conductor == "boss.toml" else []
    arguments = ["--from", "in.jsonl", "--out", "out.jsonl", "--conductor", conductor, "--pool", "pool.toml", *rounds]
    return main(["solve", *arguments, *more])


def answers() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]


def test_a_workflow_file_answers_every_question(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    ask({"question": "a"}, {"question": "b"})
    assert solve("--set", "n=1", "--dry-run", conductor="vote.wf") == 0
    assert "2 trials, 4 calls, at most $" in capsys.readouterr().out
    assert solve("--set", "n=1", conductor="vote.wf") == 0
    assert sorted((row["id"], row["answer"]) for row in answers()) == [(1, "w0: Choose."), (2, "w0: Choose.")]
    assert len(chat.called) == 4


def test_each_question_has_spans_of_its_own(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[list[str]] = []

    def listener(*, workflow: str) -> Listener:
        runs: list[str] = []
        heard.append(runs)
        assert workflow == "solve"
        return lambda event: runs.extend([event.run_id] if isinstance(event, RunStarted) and not event.path else [])

    monkeypatch.setattr("wfdsl.interpreter.telemetry.SpanListener", listener)
    monkeypatch.setattr("wfdsl.interpreter.telemetry.require_provider", lambda: None)
    ask({"question": "a"}, {"question": "b"})
    chat.script = [ONE, ONE]

    code = solve("--otel")

    assert (code, [len(runs) for runs in heard]) == (0, [1, 1])
    assert {run for runs in heard for run in runs} == {row["run"]["id"] for row in answers()}


def test_ids_keep_their_type_and_json_prints_each_line_as_it_is_written(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    ask({"id": 7, "question": talk}, {"id": "x", "question": "Why?"})
    chat.script = [ONE, ONE]

    first = solve("--json")
    second = solve()

    assert (first, second) == (0, 0)
    assert capsys.readouterr().out == Path("out.jsonl").read_text()
    assert sorted([row["id"] for row in answers()], key=str) == [7, "x"]
    assert len(chat.asked) == 2


def test_a_failure_is_told_with_its_question_and_asked_again_the_next_time(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    ask({"question": "a"}, {"question": "b"})
    chat.script = ["no", ONE]

    first = solve("--set", "conductor.reasks=0", "--parallel", "1")
    told = capsys.readouterr().err
    chat.script = [ONE]
    second = solve("--set", "conductor.reasks=0")

    assert (first, second) == (3, 0)
    assert "1: step 0 (conductor) failed" in told
    assert "no valid workflow in 1 completion" in told
    assert "fix the cause, then continue with: the same command" in told
    assert "wfdsl runs resume" not in told
    assert [(row["id"], row["answer"] is None) for row in answers()] == [(1, True), (2, False), (1, False)]


def test_a_worker_that_failed_is_asked_again_and_the_conductor_is_not(chat: Chat) -> None:
    ask({"question": "a"})
    chat.script = [ONE]
    chat.says = lambda name, messages: 400

    first = solve()
    chat.says = lambda name, messages: "fine"
    second = solve()

    assert (first, second) == (3, 0)
    assert (len(chat.asked), len(chat.called)) == (1, 2)
    assert [row["answer"] for row in answers()] == [None, "fine"]


def test_what_stops_all_questions_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ask(*({"question": f"Q{number}"} for number in range(9)))

    code = solve("--max-rounds", "0", conductor="openai:gpt-5")

    assert code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith('wfdsl solve: worker "conductor" needs a key')


def test_the_most_calls_in_flight_hold_for_all_questions_together(chat: Chat) -> None:
    ask(*({"question": f"Q{number}"} for number in range(4)))
    chat.script = [ONE] * 4
    busy, most, lock = [0], [0], threading.Lock()

    def answer(name: str, messages: list[dict[str, str]]) -> str:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        with lock:
            busy[0] -= 1
        return "fine"

    chat.says = answer

    code = solve("--set", "run.concurrency=1", "--parallel", "4")

    assert (code, most[0]) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 130), (signal.SIGINT, 130)])
def test_the_same_command_goes_on_after_its_process_ended(chat: Chat, ending: signal.Signals, code: int) -> None:
    ask(*({"question": f"Q{number}"} for number in range(6)))
    chat.script = [ONE] * 9
    third, go_on = threading.Event(), threading.Event()

    def answer(name: str, messages: list[dict[str, str]]) -> str:
        if len(chat.called) == 3:
            third.set()
            go_on.wait(20)
        return "fine"

    chat.says = answer
    command = ["-m", "wfdsl", "solve", "--from", "in.jsonl", "--out", "out.jsonl", "--max-rounds", "0"]

    process = Program(*command, "--conductor", "boss.toml", "--pool", "pool.toml", "--parallel", "1")
    assert third.wait(60)
    process.send_signal(ending)
    process.wait()
    before = len(answers())
    go_on.set()
    finished = solve("--parallel", "1")

    assert (process.returncode, before, finished) == (code, 2, 0)
    assert "Traceback" not in process.stderr
    assert code == -9 or "continue with: the same command" in process.stderr
    assert [row["question"] for row in answers()] == [f"Q{number}" for number in range(6)]
    assert len(chat.asked) == 6  # no completion was paid for twice
    assert len(chat.called) == 7  # nor a worker, but for the call that was in flight


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"questoin": "a"}\n', "in.jsonl:1: question must be a text"),
        ('{"question": "a"}\n\n{"question": ""}\n', "in.jsonl:3: "),
        ('{"question": "a"}\n{"question": "x\\ud800"}\n', "in.jsonl:2: the question is not valid Unicode"),
        ('{"question": "a", "id": 1}\n{"question": "b", "id": "1"}\n', "in.jsonl:2: has the id '1'"),
        ('{"question": "a"}\nnope\n', "in.jsonl:2: is not JSON"),
        ("[1]\n", "in.jsonl:1: is not a JSON object"),
        ("\n", "in.jsonl: holds no question"),
        ('{"question": "' + "a" * (1 << 24) + '"}', "in.jsonl:1: is longer than 16 MiB"),
    ],
)
def test_a_file_of_questions_that_cannot_be_used_says_where(
    text: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("in.jsonl").write_text(text)

    assert solve(conductor="vote.wf") == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("in.jsonl", "in.jsonl"),
        ("in.jsonl", "./in.jsonl"),
        ("in.jsonl", "."),
        ("in.jsonl", "in.jsonl/x"),
        ("in.jsonl", "pool.toml"),
        ("in.jsonl", "/dev/full"),
        ("in.jsonl", "odd.jsonl"),
        ("missing.jsonl", "out.jsonl"),
        (".", "out.jsonl"),
        ("pool.toml.gz", "out.jsonl"),
    ],
)
def test_files_that_cannot_be_used_are_named(source: str, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask({"question": "a"})
    Path("pool.toml.gz").write_text("no")
    Path("odd.jsonl").write_text("[1]\n")

    code = main(["solve", "--from", source, "--out", target, "--conductor", "vote.wf", "--pool", "pool.toml"])

    said = capsys.readouterr().err
    assert code == 2
    assert said.count("\n") == 1
    assert source in said or target in said


def test_an_answer_that_was_cut_off_counts_for_nothing() -> None:
    ask({"question": "a", "id": "x1"}, {"question": "b"}, {"question": "c", "id": 9})
    Path("out.jsonl").write_bytes(
        b'{"id": "x1", "question": "a", "answer": "x"}\n{"id": 2, "question": "b", "answer": null}\n{"id'
    )

    assert solve(conductor="vote.wf") == 0
    lines = Path("out.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["id"] for line in (*lines[:2], *sorted(lines[3:]))] == ["x1", 2, 2, 9]
