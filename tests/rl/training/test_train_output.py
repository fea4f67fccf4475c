"""What a training tells while it runs."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING

from wfdsl_rl.cli.train_output import Progress
from wfdsl_rl.training.config import GrpoConfig, SftConfig, TrainConfig

if TYPE_CHECKING:
    import pytest

TRAIN = TrainConfig(model="new", tasks="x", sft=SftConfig(steps=20), base=GrpoConfig(iterations=100))


def entry(step: int, **more: float) -> dict[str, object]:
    return {"stage": "base", "step": step, "reward": 0.5, "valid": 0.9, "accuracy": 0.25, "steps": 2.0, **more}


def test_plain_lines_say_how_it_goes_what_it_cost_and_how_long_it_will_take(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = count()

    with Progress(TRAIN, ("base",), as_json=False, clock=lambda: float(next(seconds)) * 3) as progress:
        for step in range(1, 12):
            progress.on_metrics(entry(step, usd=0.25))

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("base 10/100: reward 0.500  valid 0.900  accuracy 0.250  steps 2.000")
    assert "cost $2.50" in line
    # Entries are heard every 3 seconds, and the tenth asks the clock once more; 90 iterations are left.
    assert line.endswith("left 0:04:30")


def test_costs_that_are_not_known_are_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(TRAIN, ("base",), as_json=False) as progress:
        progress.on_metrics(entry(10))

    assert "$" not in capsys.readouterr().err


def test_an_evaluation_has_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(TRAIN, ("base",), as_json=False) as progress:
        progress.on_metrics({"stage": "base", "step": 7, "eval_accuracy": 0.625, "eval_reward": 0.75})

    assert capsys.readouterr().err == "base 7: held out: reward 0.750  accuracy 0.625\n"


def test_json_lines_are_entries_and_messages(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(TRAIN, ("base",), as_json=True) as progress:
        progress.say("hello")
        progress.on_metrics(entry(3))

    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told == [{"message": "hello"}, entry(3)]
