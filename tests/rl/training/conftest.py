"""The small world as fixtures, and a training in it that several files of tests look at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.rl.training.toy import TASKS, a_pool, a_prompt, a_setup

if TYPE_CHECKING:
    from wfdsl.conductor.prompt import Prompt
    from wfdsl.tasks.task import Task
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.training.plan import Setup


@pytest.fixture(scope="session")
def pool() -> Pool:
    return a_pool()


@pytest.fixture(scope="session")
def tasks() -> tuple[Task, ...]:
    return TASKS


@pytest.fixture(scope="session")
def prompt() -> Prompt:
    return a_prompt()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """A warm-up and a base stage of six iterations, with what they leave behind. Processes that test share it."""
    from filelock import FileLock

    from wfdsl_rl.training.pipeline import run_pipeline

    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "trained"
    with FileLock(f"{folder}.lock"):
        folder.mkdir(exist_ok=True)
        setup = a_setup(folder)
        run_pipeline(setup, ("sft", "base"), resume=True)
    return setup
