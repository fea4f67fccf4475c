"""What choosing among policies for each question would give, in worlds whose best choice is known."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.evaluation.toys import trial, wfdsl_eval
from wfdsl.errors import UsageError
from wfdsl.evaluation.room import Room, room_among
from wfdsl.evaluation.trials import Trial

SPECIALISTS = {"all": (0.5, 0.5), "left": (0.8, 0.2), "right": (0.2, 0.8)}
EQUALS = {"one": (0.6, 0.6), "two": (0.6, 0.6), "three": (0.6, 0.6)}


def drawn(chances: dict[str, tuple[float, float]], seed: int, tasks: int, repeats: int = 2) -> list[Trial]:
    """Results of policies on tasks of two domains, by the chance that each is right in each."""
    chance = random.Random(seed)
    return [
        trial(
            policy,
            f"t{task}",
            "right" if chance.random() < shares[task % 2] else "wrong",
            repeat=repeat,
            domain=("left", "right")[task % 2],
        )
        for task in range(tasks)
        for repeat in range(repeats)
        for policy, shares in chances.items()
    ]


def room_of(chances: dict[str, tuple[float, float]], seed: int, tasks: int) -> Room:
    return room_among(drawn(chances, seed, tasks), list(chances), in_usd=True)


def test_the_interval_holds_what_the_best_choice_reaches() -> None:
    found = [room_of(SPECIALISTS, seed, 200) for seed in range(20)]

    assert sum(each.accuracy.low <= 0.8 <= each.accuracy.high for each in found) >= 18
    assert {each.verdict for each in found} == {"room"}


def test_equal_policies_leave_no_room() -> None:
    verdicts = [room_of(EQUALS, seed, 4000).verdict for seed in range(2)]

    assert set(verdicts) == {"no room"}


def test_few_tasks_leave_it_open() -> None:
    assert room_of(EQUALS, 0, 20).verdict == "not known"


def test_repeats_tell_questions_apart_where_domains_do_not() -> None:
    chance = random.Random(1)
    sides = [chance.random() < 0.5 for _ in range(200)]
    trials = [
        trial(policy, f"t{task}", "right" if (policy == "left") == side else "wrong", repeat=repeat)
        for task, side in enumerate(sides)
        for repeat in range(2)
        for policy in ("left", "right")
    ]

    assert room_among(trials, ["left", "right"], in_usd=True).accuracy.value > 0.9


@pytest.mark.parametrize(
    ("trials", "among"),
    [
        (drawn(SPECIALISTS, 0, 4), ["all"]),
        ([trial("a", "t0"), trial("b", "t1")], ["a", "b"]),
    ],
)
def test_what_cannot_be_compared_is_refused(trials: list[Trial], among: list[str]) -> None:
    with pytest.raises(UsageError):
        room_among(trials, among, in_usd=True)


def test_the_command_reads_the_folder_of_an_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "out")
    asked = ["--policy", "workers", "--tasks", "gym/seven", "--pool", "gym/seven", "--limit", "40", "--no-plots"]
    assert wfdsl_eval([*asked, "--quiet", "--out", folder]) == 0
    capsys.readouterr()

    assert wfdsl_eval(["room", folder, "--json"]) == 0

    found = json.loads(capsys.readouterr().out)["the workers"]
    assert found["tasks"] == 40
    assert found["calls"] == 1
    assert found["verdict"] == "room"
