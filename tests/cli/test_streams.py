"""What is printed cannot harm the terminal, and what cannot be printed does not stop paid work: real processes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import sys
import threading
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from tests.cli.test_as_a_process import environment, on_a_terminal
from tests.forked import Program, ended
from wfdsl.cli.main import main
from wfdsl_rl.cli.train import main as train

ONE_STEP = 'model_id = [0]\nsubtasks = ["Say it."]\naccess_list = [[]]'
LINES = {
    "run": "wfdsl run a.wf -q Q --pool pool.toml",
    "solve": "wfdsl solve -q Q --pool pool.toml --conductor boss.toml --max-rounds 0",
    "from": "wfdsl solve --from in.jsonl --out out.jsonl --pool pool.toml --conductor a.wf",
    "eval": "wfdsl eval --policy a.wf --tasks tasks.jsonl --pool pool.toml --no-plots",
}
COMMANDS = {name: line.split() for name, line in LINES.items()}


def write_pool(path: Path, reply: str) -> None:
    replies = json.dumps([reply])
    path.write_text(
        '[pool]\n[[pool.workers]]\nname = "w"\nprovider = "scripted"\nretries = 0\n'
        f"options = {{ replies = {replies}, repeat = true }}\n"
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write_pool(tmp_path / "pool.toml", "the answer is 4")
    write_pool(tmp_path / "boss.toml", ONE_STEP)
    with (tmp_path / "pool.toml").open("a") as file:
        file.write("[budget]\ncalls = 9\n")
    (tmp_path / "a.wf").write_text('step z by w: "?"\nstep a by w: "Say it."\nstep b by w sees a: "Again."\n')
    (tmp_path / "in.jsonl").write_text("".join(f'{{"question": "Q{number}"}}\n' for number in range(20)))
    (tmp_path / "tasks.jsonl").write_text('{"question": "2 + 2?", "gold": "4", "kind": "math"}\n' * 20)
    return tmp_path


def done(command: list[str], **streams: int) -> Program:
    return ended("-m", *command, env=environment(), **streams)


def with_broken_stderr(command: list[str], broken: str) -> Program:
    """The command, whose standard error is a pipe that no one reads, or a full disk."""
    if broken == "full":
        with Path("/dev/full").open("wb") as full:
            return done(command, stderr=full.fileno())
    read, write = os.pipe()
    os.close(read)
    try:
        return done(command, stderr=write)
    finally:
        os.close(write)


@pytest.mark.parametrize("broken", ["pipe", "full"])
@pytest.mark.parametrize("name", COMMANDS)
def test_progress_that_cannot_be_written_does_not_stop_the_work(place: Path, name: str, broken: str) -> None:
    result = with_broken_stderr(COMMANDS[name], broken)

    assert result.returncode == 0
    if name == "from":
        assert len((place / "out.jsonl").read_text().splitlines()) == 20
    elif name == "eval":
        assert "100.0" in result.stdout
    else:
        assert result.stdout == "the answer is 4\n"


def test_a_resumed_run_ends_without_a_reader_of_its_progress(place: Path) -> None:
    stopped = done([*COMMANDS["run"], "--budget-calls", "1"])
    assert stopped.returncode == 4

    result = with_broken_stderr(["wfdsl", "runs", "resume", "last", "--budget-calls", "5"], "pipe")

    assert (result.returncode, result.stdout) == (0, "the answer is 4\n")


@pytest.mark.parametrize("name", ["run", "solve"])
def test_an_answer_that_no_one_takes_is_kept(place: Path, name: str) -> None:
    read, write = os.pipe()
    os.close(read)

    left = done(COMMANDS[name], stdout=write)
    os.close(write)
    again = done(["wfdsl", "runs", "resume", "last"])

    assert left.returncode == 0
    assert again.stdout == "the answer is 4\n"


def test_an_answer_that_the_disk_has_no_room_for_is_kept(place: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        left = done(COMMANDS["run"], stdout=full.fileno())

    assert left.returncode == 2
    assert "wfdsl: the output cannot be written: the disk is full; `wfdsl runs resume " in left.stderr
    assert "Traceback" not in left.stderr


def test_a_terminal_gets_the_answer_once_below_the_progress(place: Path) -> None:
    shown = on_a_terminal(*COMMANDS["run"][1:])

    assert shown.endswith("the answer is 4\r\n")


@pytest.mark.parametrize("name", ["run", "solve"])
def test_quiet_prints_the_answer_and_nothing_else(place: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    for command in (COMMANDS[name][1:], ["runs", "resume", "last"]):
        assert main([*command, "--quiet"]) == 0
        assert capfd.readouterr() == ("the answer is 4\n", "")
    assert on_a_terminal(*COMMANDS[name][1:], "--quiet") == "the answer is 4\r\n"


@pytest.mark.parametrize("name", ["from", "eval"])
def test_quiet_prints_no_progress_of_many_questions(place: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMANDS[name][1:], "--quiet"]) == 0
    err = capfd.readouterr().err

    assert " of 20" not in err
    assert len(err.splitlines()) == (1 if name == "eval" else 0)  # where the results are


def test_an_error_is_printed_even_if_quiet(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMANDS["run"][1:], "--quiet", "--budget-calls", "1"]) == 4
    assert "the budget of 1 call" in capfd.readouterr().err


# Sets the clipboard, clears the screen (twice), rings, hides what came before it, reorders the line, ends it.
HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b2J\x00\x7fkept\rhidden\u202eback\u2066\u2028\u2029"
OBEYED = ("\x1b]", "\x1b[2J", "\x07", "\x00", "\x7f", "\x9b", "\u202e", "\u2066", "\u2028", "\u2029", "\rhidden")
OF_FILES = HOSTILE.replace("\x00", "")
SUBTASKS = f"model_id = [0, 0]\nsubtasks = [{HOSTILE!r}, 'b']\naccess_list = [[], [0]]"


@pytest.fixture
def hostile(place: Path, httpserver: HTTPServer) -> Path:
    """A folder where every text is hostile."""
    write_pool(place / "echo.toml", f"said {HOSTILE}")
    httpserver.expect_request("/v1/chat/completions").respond_with_json({"error": {"message": HOSTILE}}, status=401)
    (place / "fails.toml").write_text(
        '[pool]\n[[pool.workers]]\nname = "w"\nprovider = "openai"\nmodel = "m"\nretries = 0\n'
        f'base_url = "{httpserver.url_for("/v1")}"\n'
    )
    write_pool(place / "boss.toml", SUBTASKS)
    (place / "lists.txt").write_text(SUBTASKS)
    (place / OF_FILES).write_text("[0]\n")
    (place / "in.jsonl").write_text(json.dumps({"question": HOSTILE, "id": HOSTILE}) + "\n")
    (place / "tasks.jsonl").write_text(json.dumps({"question": HOSTILE, "gold": "4", "kind": "math", "id": HOSTILE}))
    write_pool(place / "named.toml", "x")
    with (place / "named.toml").open("a") as file:
        file.write(f"description = {json.dumps(HOSTILE)}\n".replace("\x7f", "\\u007f"))
    return place


ON_A_TERMINAL = """\
wfdsl run lists.txt -q BAD --pool echo.toml
wfdsl run lists.txt -q BAD --pool echo.toml --json
wfdsl run lists.txt -q BAD --pool echo.toml --dry-run
wfdsl run lists.txt -q BAD --pool fails.toml
wfdsl run a.wf -q BAD --pool BAD
wfdsl run BAD -q BAD --pool echo.toml
wfdsl solve -q BAD --pool echo.toml --conductor boss.toml --max-rounds 0
wfdsl solve -q BAD --pool fails.toml --conductor boss.toml --max-rounds 0
wfdsl solve -q BAD --pool echo.toml --conductor boss.toml --dry-run
wfdsl solve --from in.jsonl --out out.jsonl --pool echo.toml --conductor a.wf
wfdsl solve --from in.jsonl --out o.jsonl --pool fails.toml --conductor a.wf --json
wfdsl solve --from BAD --out out.jsonl --pool echo.toml --conductor a.wf
wfdsl solve --dry-run -q BAD --pool named.toml
wfdsl solve --dry-run -q BAD --pool named.toml --json
wfdsl runs resume last
wfdsl runs resume BAD
wfdsl runs
wfdsl runs export
wfdsl runs show last
wfdsl runs show last --json
wfdsl show --run last
wfdsl show --run last --format json
wfdsl show lists.txt --format svg
wfdsl show lists.txt --format png
wfdsl show --run last --format html
wfdsl show lists.txt --format mermaid
wfdsl check lists.txt BAD missing-BAD
wfdsl check --json BAD
wfdsl fmt lists.txt BAD
wfdsl fmt --check BAD
wfdsl data examples show BAD
wfdsl data examples extract BAD
wfdsl pools show named.toml
wfdsl pools show --json named.toml
wfdsl pools check fails.toml
wfdsl pools check echo.toml
wfdsl check --explain BAD
wfdsl BAD
wfdsl run --BAD
wfdsl eval --policy a.wf --tasks tasks.jsonl --pool fails.toml --no-plots
wfdsl eval --policy BAD --tasks tasks.jsonl --pool echo.toml
wfdsl data show tasks.jsonl
wfdsl data show --json tasks.jsonl
wfdsl data show BAD
wfdsl-train BAD
"""
"""Commands; BAD stands for a hostile name or question."""


def in_a_terminal(command: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command writes to a terminal, without a process of its own."""
    ours, its = pty.openpty()
    written = bytearray()

    def read() -> None:
        with contextlib.suppress(OSError):  # how Linux says that the other side is closed
            while piece := os.read(ours, 1 << 16):
                written.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    with open(its, "w", encoding="utf-8") as terminal, monkeypatch.context() as patch:  # noqa: PTH123  (no path)
        patch.setattr(sys, "stdout", terminal)
        patch.setattr(sys, "stderr", terminal)
        with contextlib.suppress(SystemExit):
            (train if command[0] == "wfdsl-train" else main)(command[1:])
    reader.join(60)
    os.close(ours)
    return written.decode()


def test_no_command_lets_a_text_control_the_terminal(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_the_text = 0
    commands = [[word.replace("BAD", OF_FILES) for word in line.split()] for line in ON_A_TERMINAL.splitlines()]
    for command in commands:
        shown = in_a_terminal(command, monkeypatch)

        assert shown, command
        assert "Traceback" not in shown, shown
        with_the_text += "kept" in shown
        assert [sign for sign in OBEYED if sign in shown.replace("\r\n", "\n")] == [], (command, shown)
    assert with_the_text > 0.8 * len(commands)


def test_json_is_the_same_text_with_escapes(hostile: Path) -> None:
    shown = done(["wfdsl", "run", "lists.txt", "-q", OF_FILES, "--pool", "echo.toml", "--json"]).stdout

    assert not [sign for sign in OBEYED if sign in shown]
    assert json.loads(shown)["steps"][0]["messages"][-1]["content"].endswith("kept\rhidden\u202eback\u2066\u2028\u2029")


def test_an_answer_that_goes_to_a_file_is_exact(hostile: Path) -> None:
    write_pool(hostile / "echo.toml", "a\u202eb\u2028c")

    shown = done(["wfdsl", "run", "a.wf", "-q", "Q", "--pool", "echo.toml"]).stdout

    assert shown == "a\u202eb\u2028c\n"
