"""What has been answered can be read where nothing can be written: on a full disk, and on one that is read-only."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.interpreter.toy_workers import always, pool_of

from wfdsl import Step, Workflow
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.running import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ONE = Workflow((Step(0, "a"),))
IN_NAMESPACE = ["unshare", "--map-root-user", "--mount"]
"""Runs a command with mounts of its own, which need no root where the system allows it."""
FULL, READ_ONLY = "dd if=/dev/zero of=$home/fill bs=1k 2>/dev/null", "mount -o remount,ro $home"
MOUNTED = """
home=$1 kept=$2; shift 2
mount -t tmpfs -o size=1m tmpfs $home && cp -r $kept/. $home || exit 9
{state}
exec "$@"
"""
COMMANDS = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from wfdsl.cli.main import main
for command in json.loads(sys.argv[1]):
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(command)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""
READING = [["runs"], ["runs", "show", "last"], ["runs", "export"], ["show", "--run", "last"]]


def can_mount(folder: Path) -> bool:
    command = [*IN_NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    return (
        shutil.which("unshare") is not None and not subprocess.run(command, capture_output=True, check=False).returncode
    )


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with a journal in which a run is done."""
    asyncio.run(run(ONE, "Q", pool_of(always("the answer")), journal=tmp_path / "kept" / "journal.db"))
    return tmp_path / "kept"


@pytest.fixture
def commands(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[int, str, str]]]:
    """Runs commands where a copy of the folder has come into a state: code, output and errors of each."""
    home = tmp_path / "home"
    home.mkdir()
    if not can_mount(home):
        pytest.skip("needs `unshare`, and leave to mount a file system")
    monkeypatch.setenv("WFDSL_HOME", str(home))

    def at(state: str, *asked: list[str]) -> list[tuple[int, str, str]]:
        script = ["sh", "-c", MOUNTED.format(state=state), "sh", str(home), str(kept)]
        python = [sys.executable, "-c", COMMANDS, json.dumps(asked)]
        done = subprocess.run([*IN_NAMESPACE, *script, *python], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [tuple(json.loads(line)) for line in done.stdout.splitlines()]

    return at


@pytest.mark.parametrize("state", [FULL, READ_ONLY])
def test_a_run_that_is_done_can_be_read(commands: Any, state: str) -> None:
    listed, traced, exported, shown, resumed = commands(state, *READING, ["runs", "resume", "last"])

    assert [code for code, _, _ in (listed, traced, exported, shown, resumed)] == [0] * 5
    assert "  done  " in listed[1]
    assert "the answer" in traced[1]
    assert json.loads(exported[1])["answer"] == "the answer"
    assert resumed[1] == "the answer\n"


def test_what_has_to_write_says_that_it_cannot(commands: Any) -> None:
    ((code, _, err),) = commands(FULL, ["runs", "rm", "last"])

    assert code == 2
    assert "free some space there" in err


@pytest.fixture
def killed(kept: Path) -> Path:
    """The journal as a process leaves it that is killed during a second run: not all of it is in the one file."""
    path = kept / "journal.db"
    with Journal(path) as journal:
        asyncio.run(run(ONE, "Second?", pool_of(always("the second")), journal=journal))
        asyncio.run(journal.do(lambda connection: None))
        for end in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{end}", f"{path}{end}.copy")
    for end in ("", "-wal", "-shm"):
        shutil.move(f"{path}{end}.copy", f"{path}{end}")
    return kept


def test_what_a_killed_process_has_written_last_is_read_too(killed: Path, commands: Any) -> None:
    results = commands(FULL, *READING)

    assert [code for code, _, _ in results] == [0] * len(READING)
    assert "Second?" in results[0][1]
    assert "the second" in results[1][1]


def test_what_cannot_be_read_where_it_lies_says_to_copy_it(killed: Path, commands: Any) -> None:
    (killed / "journal.db-shm").unlink()

    results = commands(READ_ONLY, *READING)

    for code, _, err in results:
        assert code == 2
        assert "WFDSL_HOME" in err


def test_a_run_whose_process_has_left_its_mark_is_read_too(kept: Path, commands: Any) -> None:
    with sqlite3.connect(kept / "journal.db") as connection:
        connection.execute("UPDATE runs SET status = 'running', owner = '7-gone', record = NULL")
    connection.close()
    (kept / "journal.db.owners").mkdir(exist_ok=True)
    (kept / "journal.db.owners" / "7-gone").touch()

    results = commands(READ_ONLY, *READING)

    assert [code for code, _, _ in results] == [0] * len(READING)
    assert "  interrupted  " in results[0][1]
