"""The command as a process of its own: pipes, signals, terminals, encodings."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import SEES_LATER
from tests.forked import Program

WFDSL = [sys.executable, "-m", "wfdsl"]
ESCAPE = "\x1b["
MORE_THAN_A_PIPE_HOLDS = 1 << 18
# A process that was started in the background may have been told to ignore Ctrl-C.
HEARS_CTRL_C = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from wfdsl.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def environment(**changes: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    return {**plain, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **changes}


def wfdsl(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WFDSL, *arguments],
        capture_output=True,
        encoding="utf-8",
        env=env or environment(),
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


def on_a_terminal(*arguments: str, env: dict[str, str] | None = None, module: str = "wfdsl") -> str:
    """What the command writes to a terminal, as text."""
    ours, its = pty.openpty()
    process = Program("-m", module, *arguments, stdin=its, stdout=its, stderr=its, env=env or environment())
    os.close(its)
    written = b""
    try:
        while piece := os.read(ours, 1 << 16):
            written += piece
    except OSError as error:
        if error.errno != errno.EIO:  # how Linux says that the other side is closed
            raise
    finally:
        os.close(ours)
        process.wait()
    return written.decode("utf-8")


def test_the_installed_script_is_the_command_whose_exit_codes_reach_the_shell(files: Path) -> None:
    script = os.path.join(os.path.dirname(sys.executable), "wfdsl")  # noqa: PTH118, PTH120  (no symlink resolved)

    done = [
        subprocess.run([script, "check", name], capture_output=True, text=True, timeout=60, check=False)
        for name in ("good.txt", "later.txt", "missing.txt")
    ]

    assert [each.returncode for each in done] == [0, 1, 2]
    assert done[0].stdout == "good.txt: ok, 2 steps\n"


@pytest.mark.parametrize("redirected", ["stdout", "both"])
def test_a_reader_who_has_seen_enough_gets_no_complaint(files: Path, redirected: str) -> None:
    to_stderr = subprocess.STDOUT if redirected == "both" else subprocess.PIPE

    with subprocess.Popen(
        [*WFDSL, "check", "--json", *["good.txt"] * 3000], stdout=subprocess.PIPE, stderr=to_stderr, env=environment()
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read() if process.stderr else b""
        code = process.wait(60)

    assert json.loads(first)["ok"] is True
    assert (code, complaint) == (0, b"")


def test_closed_streams_are_no_error(files: Path) -> None:
    line = f"{sys.executable} -m wfdsl check later.txt >&- 2>&- <&-; exit $?"

    assert subprocess.run(["bash", "-c", line], timeout=60, check=False).returncode == 1


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux whether the process waits")
def test_ctrl_c_while_reading_is_quiet_and_exit_code_130(files: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HEARS_CTRL_C, "check", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        # Writing more than the pipe holds comes back only once the command is reading.
        process.stdin.write(b" " * MORE_THAN_A_PIPE_HOLDS)
        process.stdin.flush()
        wait_until_asleep(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        complaint = process.stderr.read().decode()
        code = process.wait(60)

    assert code == 130
    assert complaint == "wfdsl check: interrupted\n"


def wait_until_asleep(pid: int) -> None:
    """Wait until a process that has read all there is waits for more."""
    for _ in range(6000):
        if "pipe_read" in Path(f"/proc/{pid}/wchan").read_text():
            return
        time.sleep(0.01)
    raise AssertionError("the process does not wait for its input")


def test_a_terminal_gets_colours_and_the_same_words(files: Path) -> None:
    coloured = on_a_terminal("check", "later.txt")

    assert f"{ESCAPE}1;31merror[access-not-earlier]{ESCAPE}0m" in coloured
    assert f"{ESCAPE}31m^ step 2 runs after step 1{ESCAPE}0m" in coloured
    assert without_colours(coloured) == wfdsl("check", "later.txt").stdout


@pytest.mark.parametrize(
    ("changes", "coloured"), [({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)]
)
def test_a_terminal_gets_no_colours_that_it_does_not_want(
    files: Path, changes: dict[str, str], *, coloured: bool
) -> None:
    written = on_a_terminal("check", "later.txt", env=environment(**changes))

    assert (ESCAPE in written) == coloured


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_an_encoding_that_lacks_a_character_stops_nothing(files: Path, encoding: str) -> None:
    (files / "greek.txt").write_text(SEES_LATER.replace('"all"', '"αλλ😀"'), "utf-8")
    env = environment(PYTHONIOENCODING=encoding)
    arguments = ["check", "greek.txt"]

    text, as_json = (
        subprocess.run([*WFDSL, *arguments, *more], capture_output=True, env=env, timeout=60, check=False)
        for more in ([], ["--json"])
    )

    assert text.returncode == as_json.returncode == 1
    assert "access-type" in text.stdout.decode(encoding)
    (found,) = (d for d in json.loads(as_json.stdout.decode(encoding))["diagnostics"] if d["code"] == "access-type")
    assert "αλλ😀" in found["message"]


def test_what_fmt_writes_can_be_read_whatever_the_encoding(files: Path) -> None:
    (files / "q.wf").write_text('step a by 0: "naïve – 漢"\n', "utf-8")
    env = environment(PYTHONIOENCODING="cp1252")

    done = subprocess.run([*WFDSL, "fmt", "q.wf"], capture_output=True, env=env, timeout=60, check=True)

    assert done.stdout == (files / "q.wf").read_bytes()


def test_a_file_name_that_is_no_text_is_shown_somehow(files: Path) -> None:
    name = os.fsdecode(b"\xff\xfe.txt")
    (files / name).write_text(SEES_LATER)

    done = wfdsl("check", name, "missing-" + name)
    (verdict,) = [json.loads(line) for line in wfdsl("check", "--json", name).stdout.splitlines()]

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "error[access-not-earlier]" in done.stdout
    assert verdict["file"] == name


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n")
