"""The pages of trainings and of the gym in a real browser: curves, filters, and what is logged while a page is open."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rl.viewer.training_folders import write_training

from .conftest import Viewer, Watched, in_thread, open_context

ROOT = Path(__file__).parents[2]
TRAINING = """
import sys
from pathlib import Path
from tests.rl.viewer.training_folders import TrainingWriter
from wfdsl.interpreter.journal_file import Owner
folder = Path(sys.argv[1])
writer, owner = TrainingWriter(folder, iterations=4), Owner(folder / "running")
writer.iteration(0)
print("begun", flush=True)
for line in sys.stdin:
    writer.iteration(int(line))
    print("done", flush=True)
"""
IS_DRAWN = (
    "() => [...document.querySelectorAll('.curves img')].every((each) => each.complete && each.naturalWidth > 100)"
)


@pytest.fixture
def training(home: Path) -> Path:
    """A training of some iterations."""
    return in_thread(lambda: write_training(home / "runs" / "first", iterations=3)).folder


def test_a_training_is_opened_its_curves_are_drawn_and_its_samples_filtered(training: Path, watched: Watched) -> None:
    page = watched.go("/trainings")
    page.get_by_role("link", name="first", exact=True).click()
    page.get_by_role("heading", name="first").wait_for()
    assert page.locator(".curves img").count() == 6
    page.wait_for_function(IS_DRAWN)
    assert page.get_by_role("img", name=re.compile("^mean reward over 3 iterations, from")).count() == 1

    page.get_by_role("link", name="Samples of base").click()
    samples = page.locator("li.step")
    samples.first.wait_for()
    everything = samples.count()
    page.get_by_label("Outcome").select_option("invalid")
    page.wait_for_function("(count) => document.querySelectorAll('li.step').length < count", arg=everything)
    assert page.locator("li.step .state").all_inner_texts() == ["invalid"] * samples.count()
    assert "outcome=invalid" in page.url
    page.get_by_label("Iteration").fill("1")
    page.wait_for_url("**iteration=1*")
    page.get_by_role("link", name=re.compile("^Iteration 1, sample")).first.wait_for()
    page.get_by_text(re.compile("^Iteration [02], ")).first.wait_for(state="detached")
    page.get_by_role("link", name=re.compile("^Iteration 1, sample")).first.click()
    page.get_by_role("heading", name="Completion").wait_for()


@pytest.fixture
def trainer(home: Path) -> Iterator[Any]:
    """A process that trains an iteration whenever it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-c", TRAINING, str(home / "runs" / "live")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    yield process
    process.kill()
    process.wait(60)
    process.stdin.close()
    process.stdout.close()


def test_what_is_logged_appears_without_a_reload_until_the_training_dies(trainer: Any, watched: Watched) -> None:
    page = watched.go("/trainings")
    page.get_by_role("link", name="live", exact=True).click()
    page.get_by_role("cell", name="1 of 4").wait_for()
    page.locator(".status .running").wait_for()
    page.wait_for_function(IS_DRAWN)
    page.evaluate("window.same = true")
    before = page.locator(".curves img").first.get_attribute("src")

    for step in (1, 2):
        trainer.stdin.write(f"{step}\n")
        trainer.stdin.flush()
        assert trainer.stdout.readline() == "done\n"
        page.get_by_role("cell", name=f"{step + 1} of 4").wait_for(timeout=60_000)
    page.wait_for_function(IS_DRAWN)
    assert page.locator(".curves img").first.get_attribute("src") != before
    trainer.kill()

    page.locator(".status .interrupted").wait_for(timeout=60_000)
    assert page.get_by_text("wfdsl-train --resume").count() == 1
    assert page.evaluate("window.same") is True


def test_a_workflow_of_the_gym_opens_in_the_playground(watched: Watched) -> None:
    page = watched.go("/gym")
    page.get_by_role("link", name="gym/axes").click()
    page.get_by_role("link", name="chain", exact=True).click()
    page.get_by_role("link", name="Open in the playground").first.click()

    page.get_by_text("3 steps", exact=True).wait_for()
    assert "Solve part 1" in page.get_by_label("Text").input_value()


def test_without_javascript_a_training_and_its_samples_are_read(training: Path, viewer: Viewer, chromium: Any) -> None:
    context = open_context(chromium, viewer, java_script_enabled=False)
    page = Watched(context, viewer.root).go("/trainings")
    page.get_by_role("link", name="first", exact=True).click()
    page.locator(".curves img").first.wait_for()
    page.get_by_role("link", name="Samples of base").click()
    page.get_by_label("Outcome").select_option("right")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**outcome=right*")
    assert set(page.locator("li.step .state").all_inner_texts()) <= {"right"}
    context.close()
