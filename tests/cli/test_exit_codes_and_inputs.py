"""What is read, what cannot be, and the exit code of each."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import GOOD, SEES_LATER, Command
from wfdsl.cli.main import COMMANDS
from wfdsl.language.check import MAX_CHARS

READING = ["check", "fmt", "show"]

# Runs the command line with little more memory than the process has by then, and shows that the limit would bite.
BOUNDED = """
import resource, sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from wfdsl.cli.main import main

small, big, room, *arguments = sys.argv[1:]
main([word.replace("FILE", small) for word in arguments])
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + int(room), resource.RLIM_INFINITY))
try:
    Path(big).read_bytes()
except MemoryError:
    sys.exit(10 + main([word.replace("FILE", big) for word in arguments]))
sys.exit("the limit does not bite")
"""


@pytest.mark.parametrize("command", READING)
def test_a_good_file_is_fine_and_an_invalid_one_gives_diagnostics_and_exit_code_1(
    wfdsl: Command, files: Path, command: str
) -> None:
    good, result = wfdsl(command, "good.txt"), wfdsl(command, "later.txt")

    assert (good.code, good.err, result.code) == (0, "", 1)
    assert "error[access-not-earlier]: step 1 cannot see step 2\n  --> later.txt:3:21\n" in result.out + result.err


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing.txt", "cannot be read: no such file or directory"),
        ("folder", "cannot be read: is a directory"),
        ("good.txt/below", "cannot be read: not a directory"),
        ("loop", "cannot be read: too many levels of symbolic links"),
        ("binary", "UTF-8 text: byte 1 cannot be"),
        ("latin1.txt", "UTF-8 text: byte 3 cannot be"),
        ("cut.txt", "UTF-8 text: byte 2 cannot be"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exit_code_2(
    wfdsl: Command, files: Path, command: str, name: str, why: str
) -> None:
    (files / "folder").mkdir()
    (files / "loop").symlink_to("loop")
    (files / "binary").write_bytes(b"\x7f\xffELF")
    (files / "latin1.txt").write_bytes("caf\u00e9 au lait".encode("latin-1"))
    (files / "cut.txt").write_bytes("ab\u20ac".encode()[:-1])

    result = wfdsl(command, name)

    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith(f"wfdsl {command}: {name}: ")
    assert why in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "name", "code"),
    [
        *((command, "empty.txt", "list-missing") for command in READING),
        ("check", "empty.wf", "no-steps"),
        ("show", "empty.wf", "no-steps"),
    ],
)
def test_an_empty_file_is_an_invalid_workflow(wfdsl: Command, files: Path, command: str, name: str, code: str) -> None:
    (files / name).touch()

    result = wfdsl(command, name)

    assert result.code == 1
    assert f"error[{code}]" in result.out + result.err
    assert f"--> {name}:1:1\n" in result.out + result.err


def test_a_byte_order_mark_is_not_part_of_the_text(wfdsl: Command, files: Path) -> None:
    (files / "bom.txt").write_bytes(b"\xef\xbb\xbf" + GOOD.replace("[0, 1]", "[-1, 1]", 1).encode())
    (files / "bom.wf").write_bytes(b"\xef\xbb\xbf" + b'step solve by 0: "Solve it."\n')

    completion, workflow_file = wfdsl("check", "bom.txt"), wfdsl("check", "bom.wf")

    assert "--> bom.txt:1:13\n" in completion.out
    assert workflow_file.out == "bom.wf: ok, 1 step\n"


@pytest.mark.parametrize("line_break", ["\r\n", "\r"])
def test_every_kind_of_line_break_counts_as_one(wfdsl: Command, files: Path, line_break: str) -> None:
    (files / "later.txt").write_bytes(SEES_LATER.replace("\n", line_break).encode())

    result = wfdsl("check", "later.txt")

    assert "--> later.txt:3:21\n" in result.out
    assert '\n3 | access_list = [[], [2], "all"]\n  |                     ^ step 2' in result.out


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("name", ["good.txt", "vote.wf"])
def test_a_text_over_the_limit_gets_a_diagnostic(wfdsl: Command, files: Path, command: str, name: str) -> None:
    (files / name).write_text("\U0001f600" * (MAX_CHARS + 1), "utf-8")

    result = wfdsl(command, name)

    assert result.code == 1
    assert "error[text-too-long]" in result.out + result.err


@pytest.mark.parametrize("arguments", [["check"], ["fmt"], ["fmt", "--form", "wf"], ["show"]])
def test_a_file_of_100_mb_is_never_read_whole(tmp_path: Path, arguments: list[str]) -> None:
    small, big = tmp_path / "small", tmp_path / "big"
    small.write_text(GOOD)
    with big.open("wb") as file:
        file.truncate(100 << 20)

    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, small, big, str(30 << 20), *arguments, "FILE"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr if "Traceback" in done.stderr else "") == (11, "")
    assert "text-too-long" in done.stdout + done.stderr


def test_standard_input_is_read_for_a_dash(wfdsl: Command) -> None:
    assert wfdsl("check", "-", stdin=GOOD.encode()).out == "standard input: ok, 2 steps\n"
    assert "--> standard input:3:21\n" in wfdsl("check", "-", stdin=SEES_LATER.encode()).out


@pytest.mark.parametrize("arguments", [["check", "-"], ["fmt", "-"], ["fmt", "--form", "wf", "-"], ["show", "-"]])
def test_standard_input_has_the_same_bounds_as_files(wfdsl: Command, arguments: list[str]) -> None:
    long = wfdsl(*arguments, stdin=b"x" * (MAX_CHARS + 1))
    binary = wfdsl(*arguments, stdin=b"\xff\xfe")

    assert long.code == 1
    assert "error[text-too-long]" in long.out + long.err
    assert binary.code == 2
    assert "standard input: " in binary.err
    assert "UTF-8 text: byte 0 cannot be" in binary.err


@pytest.mark.parametrize("command", ["check", "fmt"])
def test_the_worst_of_several_files_decides_the_exit_code_and_all_are_read(
    wfdsl: Command, files: Path, command: str
) -> None:
    result = wfdsl(command, "missing.txt", "later.txt", "good.txt")

    assert wfdsl(command, "good.txt", "vote.wf").code == 0
    assert wfdsl(command, "later.txt", "good.txt").code == 1
    assert result.code == 2
    assert "missing.txt: cannot be read" in result.err
    assert "access-not-earlier" in result.out + result.err
    assert "good.txt: ok" in result.out or "model_id = [0, 1]" in result.out


def test_a_name_decides_the_form_and_an_option_overrides_it(wfdsl: Command, files: Path) -> None:
    (files / "named.wf").write_text(GOOD)

    by_name = wfdsl("check", "named.wf")
    by_option = wfdsl("check", "--form", "completion", "named.wf")

    assert by_name.code == 1
    assert "this is a completion with three lists, not a workflow file" in by_name.out
    assert by_option.out == "named.wf: ok, 2 steps\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["chekc", "good.txt"], "there is no command 'chekc'. Did you mean check?"),
        (["check"], "give a FILE"),
        (["check", "--nonsense", "good.txt"], "unrecognized arguments: --nonsense"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["data", "select", "t.jsonl", "--cuont", "1", "-o", "x"], "did you mean `--count`?"),
        (["check", "--pool-size", "two", "good.txt"], "--pool-size: "),
        (["check", "--max-steps", "9" * 5000, "good.txt"], "--max-steps: "),
        (["check", "--profile", "loose", "good.txt"], "invalid choice: 'loose'"),
        (["check", "--set", "n", "vote.wf"], "--set 'n': write NAME=VALUE"),
        (["check", "--set", "=3", "vote.wf"], "--set '=3': write NAME=VALUE"),
        (["check", "--set", "n=1", "--set", "n=2", "vote.wf"], "--set n is given twice"),
        (["check", "--set", "n=1", "good.txt"], "good.txt is a completion, which has no parameters: leave out n"),
        (["check", "--set", "n=many", "vote.wf"], "cannot be set to 'many'"),
        (["check", "--pool", "local", "--pool-size", "2", "good.txt"], "--pool and --pool-size exclude each other"),
        (["check", "--pool", "nobody", "good.txt"], 'there is no pool "nobody"'),
        (["fmt", "--write", "--to", "wf", "good.txt"], "--write with --to"),
        (["fmt", "--write", "--check", "good.txt"], "not allowed with argument"),
        (["fmt", "--write", "-"], "standard input cannot be written"),
        (["check", "--explain", "dead-stp"], "there is no code 'dead-stp'. Did you mean dead-step?"),
        ([], "usage: wfdsl"),
    ],
)
def test_wrong_usage_says_what_is_wrong_with_exit_code_2(
    wfdsl: Command, files: Path, arguments: list[str], why: str
) -> None:
    result = wfdsl(*arguments, stdin=GOOD.encode())

    assert result.code == 2
    assert why in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_there_is_a_version(wfdsl: Command, command: str) -> None:
    top, own, version = wfdsl("--help"), wfdsl(command, "--help"), wfdsl("--version")

    assert (version.code, version.out[:6]) == (0, "wfdsl ")
    assert top.code == own.code == 0
    assert "exit codes: 0 fine, 1 invalid workflow, 2 usage" in " ".join(top.out.split())
    assert own.out.startswith(f"usage: wfdsl {command}")
    assert f"\n    {command} " in top.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "LONG"],
        ["check", "good.txt", "--pool", "LONG"],
        ["check", "good.txt", "--config", "LONG"],
        ["show", "--run", "LONG"],
        ["show", "good.txt", "--format", "svg", "--out", "LONG"],
        ["run", "good.txt", "Q", "--pool", "LONG"],
        ["solve", "Q", "--conductor", "LONG"],
        ["solve", "--quiet", "--from", "LONG", "--out", "out.jsonl"],
        ["data", "examples", "show", "LONG"],
        ["solve", "--dry-run", "Q", "--set", "conductor.prompt=LONG"],
    ],
)
def test_a_name_that_the_file_system_refuses_is_one_line(wfdsl: Command, files: Path, arguments: list[str]) -> None:
    result = wfdsl(*(word.replace("LONG", "x" * 300) for word in arguments))

    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert "file name too long" in result.err.lower() or "there is no" in result.err


def test_a_file_that_is_no_run_record_is_named(wfdsl: Command, files: Path) -> None:
    assert "good.txt: not a run record" in wfdsl("show", "--run", "good.txt").err


@pytest.mark.usefixtures("files")
def test_a_port_that_is_taken_is_answered_with_the_options_that_the_command_has(wfdsl: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = wfdsl("view", "--port", str(taken.getsockname()[1]))

    assert result.code == 2
    assert result.err.endswith("choose another --port\n")
