"""One class holds the options of a run: `wfdsl.run` takes them by name or as a whole, and the journal keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interpreter.toy_workers import always, pool_of

from wfdsl import Step, UsageError, Workflow, run
from wfdsl.interpreter.config import RunConfig, RunRequest, configured
from wfdsl.interpreter.journal_reading import request_of

ONE = Workflow((Step(0, "a"),))


def test_an_option_that_does_not_exist_is_refused_with_a_guess() -> None:
    with pytest.raises(UsageError, match=r"no option 'concurency'. Did you mean concurrency\?"):
        configured(None, {"concurency": 3})


async def test_the_journal_keeps_the_configuration(tmp_path: Path) -> None:
    config = RunConfig(seed=7, step_timeout_s=60.0, max_depth=2)

    done = await run(ONE, "Q", pool_of(always()), config, journal=tmp_path / "journal.db", concurrency=2)

    kept = request_of(tmp_path / "journal.db", done.id)
    assert kept.config == RunConfig(seed=7, step_timeout_s=60.0, max_depth=2, concurrency=2)
    assert RunRequest.from_json(kept.to_json()) == kept
    assert (done.settings["seed"], done.settings["max_depth"]) == (7, 2)
