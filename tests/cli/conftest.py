"""The command line inside this process: arguments and standard input go in, exit code and both outputs come out."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pytest

from wfdsl.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

GOOD = 'model_id = [0, 1]\nsubtasks = ["Plan it.", "Do it."]\naccess_list = [[], [0]]\n'
SEES_LATER = 'model_id = [0, 1, 0]\nsubtasks = ["a", "b", "c"]\naccess_list = [[], [2], "all"]\n'
REPAIRED = 'model_id = ["0", 1]\nsubtasks = ["Plan it.", "Do it."]\naccess_list = [[], [0]]\n'
EMPTY_LISTS = "model_id = []\nsubtasks = []\naccess_list = []\n"
WORKFLOW_FILE = 'param n = 2\n\nstep try by 0 copies {n}: "Solve it."\nstep choose by 1 sees try: "Choose the best."\n'


class Result(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


class Command(Protocol):
    """Runs `wfdsl` with these arguments."""

    def __call__(self, *arguments: str | Path, stdin: bytes = b"") -> Result: ...


@pytest.fixture
def wfdsl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.delenv("NO_COLOR", raising=False)

    def run(*arguments: str | Path, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as leaving:  # how argparse ends
            code = leaving.code if isinstance(leaving.code, int) else 1
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return run


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a few files."""
    texts = {
        "good.txt": GOOD,
        "later.txt": SEES_LATER,
        "repaired.txt": REPAIRED,
        "empty-lists.txt": EMPTY_LISTS,
        "vote.wf": WORKFLOW_FILE,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
