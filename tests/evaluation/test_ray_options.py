"""What `--engine ray` refuses."""

from __future__ import annotations

import pytest

from tests.evaluation.toys import wfdsl_eval as main

RAY = ["--policy", "workers", "--tasks", "gym/seven", "--limit", "2", "--pool", "gym/seven", "--engine", "ray"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*RAY[:-2], "--address", "auto"], "add --engine ray"),
        ([*RAY[:-2], "--nodes", "3"], "add --engine ray"),
        ([*RAY, "--budget-usd", "1"], "a budget holds on one machine"),
        ([*RAY, "--policy", "best-fixed"], "which every node would pay for"),
    ],
)
def test_what_nodes_cannot_keep_for_themselves_is_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options) == 2
    assert message in capsys.readouterr().err
