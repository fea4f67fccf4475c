"""The fuzz target itself: it runs, it is right about the seeds, and it notices a broken promise."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz import fuzz_completion
from tests.fuzz.fuzz_completion import check_text, keeps_promises, random_text, seeds
from wfdsl.language import literals


@pytest.mark.slow
def test_a_thousand_random_texts_break_no_promise() -> None:
    starts = seeds()

    verdicts = {check_text(random_text(number, starts)) for number in range(1000)}

    assert verdicts == {"strict", "repaired", "rejected", "passthrough", "file"}


@pytest.mark.parametrize("path", sorted(fuzz_completion.SEEDS.iterdir()), ids=lambda path: path.name)
def test_a_seed_breaks_no_promise(path: Path) -> None:
    verdict = check_text(path.read_bytes().decode("utf-8", "surrogateescape"))

    assert verdict in {"strict", "repaired", "rejected", "passthrough", "file"}


def test_a_number_always_makes_the_same_text() -> None:
    starts = seeds()

    texts = [random_text(number, starts) for number in range(50)]

    assert texts == [random_text(number, starts) for number in range(50)]
    assert len(set(texts)) > 40


def test_a_text_that_breaks_a_promise_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz_completion, "KEPT", tmp_path)
    monkeypatch.setattr(literals, "_SIMPLE", {})  # the reader now fails to read `\n`
    text = 'model_id = [0]\nsubtasks = ["a\\nb"]\naccess_list = [[]]'

    assert not keeps_promises(text, Counter())

    assert [path.read_text("utf-8") for path in tmp_path.iterdir()] == [text]
    assert "print and parse" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_runs_as_many_texts_as_asked_and_says_what_it_saw() -> None:
    command = [sys.executable, "-m", "tests.fuzz.fuzz_completion", "--runs", "50", "--first", "7"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("50 texts in ")
    assert " 0 failures " in done.stdout
