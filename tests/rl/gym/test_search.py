"""The search for the best workflows: its scores are those of the simulation, and hill climbing does not beat it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks import bench_optimum, gym_optimum
from tests.benchmarks.gym_climbing import hill_climbing
from tests.benchmarks.gym_optimum import best_of, difference
from tests.benchmarks.gym_search import Effort, Scores, Space, judged, search, vocabulary
from tests.benchmarks.gym_second_round import second_round
from tests.benchmarks.gym_teams import SUBTASKS, random_teams, structures, team
from wfdsl.graph import graph_of
from wfdsl_rl.gym.world import optimum as published
from wfdsl_rl.gym.world.accuracy import Exam, Questions, expected_accuracy, frozen_questions
from wfdsl_rl.gym.world.families import draw
from wfdsl_rl.gym.world.optimum import Found, Optimum, Team, live, optimum, pruned, workflow_of
from wfdsl_rl.gym.world.presets import Preset, preset_of

PRESETS = [preset_of("gym/paper7"), preset_of("gym/axes")]


def test_structures_solve_before_they_look_and_end_with_an_answer() -> None:
    assert structures(1) == ("S",)
    assert set(structures(2)) == {"PS", "SS", "SV", "SR"}
    assert all(one.lstrip("P").startswith("S") for one in structures(5))


def test_random_workflows_are_repeatable_and_well_formed() -> None:
    left, right = (list(random_teams(4, 7, 20, 3)) for _ in range(2))

    assert left == right
    assert all(len(workflow) == 4 for workflow in left)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_scores_are_those_of_a_simulation(preset: Preset) -> None:
    families = Exam(preset, 90).families
    space, chance = Space(7, vocabulary(preset)), random.Random(1)
    scores = Scores(list(families.values()), draws=2, stream="x")

    for length in [1, 2, 3, 4, 5] * 3:
        drawn = space.any_team(length, chance)
        workflow = workflow_of(drawn)
        expected = {name: expected_accuracy(workflow, one, draws=2, stream="x").value for name, one in families.items()}

        assert scores(drawn) == pytest.approx(Optimum.mean(expected))
        assert live(drawn) == tuple(sorted(graph_of(workflow).live))


def test_all_single_steps_are_tried_and_two_good_ones_beat_them() -> None:
    code = Exam(preset_of("gym/paper7"), 600).questions["code"]

    found = search(
        code, code, vocabulary(preset_of("gym/paper7")), effort=Effort(kept=1, tried=40, climbs=1), longest=2
    )

    assert found[1].team == ((2, "Solve the problem.", ()),)
    assert found[2].accuracy > found[1].accuracy + 0.05


def test_a_second_round_helps_where_a_worker_has_gone_bad() -> None:
    workflow = team("SR", (0, 1))
    plain = second_round(workflow, Exam(preset_of("gym/paper7"), 600).questions["math"], draws=2)
    shifted = second_round(workflow, Exam(preset_of("gym/shifted"), 600).questions["math"], draws=2)

    assert shifted.best > shifted.first + 0.05
    assert shifted.best - shifted.first > plain.best - plain.first
    assert plain.best > plain.first - 0.01
    assert 0 < plain.revised < 1


def test_what_the_answer_does_not_depend_on_is_pruned() -> None:
    chance, space = random.Random(2), Space(7, vocabulary(PRESETS[1]))
    solve, check = SUBTASKS["S"], SUBTASKS["V"]

    assert pruned(((3, solve, ()), (1, solve, ()), (2, check, (1,)))) == ((1, solve, ()), (2, check, (0,)))
    for drawn in (space.any_team(5, chance) for _ in range(50)):
        assert len(pruned(drawn)) == len(live(drawn))
        assert live(pruned(drawn)) == tuple(range(len(pruned(drawn))))


@pytest.mark.parametrize(
    ("name", "family", "size", "tries"),
    [
        ("gym/axes", "basket", 300, 1500),
        ("gym/axes", "chain", 300, 1500),
        pytest.param("gym/axes", "relay", 900, 6000, marks=pytest.mark.slow),
        ("gym/paper7", "algebra", 300, 1500),
        pytest.param("gym/paper7", "units", 900, 6000, marks=pytest.mark.slow),
    ],
)
def test_a_little_hill_climbing_does_not_beat_what_is_published(name: str, family: str, size: int, tries: int) -> None:
    preset, known = preset_of(name), optimum(name).families[family]
    domain = preset.domain_of(family)
    seen = Questions.of(preset, [draw(domain, 9001, index, families=(family,)) for index in range(size)])
    judges = [questions for questions in frozen_questions(preset, domain) if questions.family == family]

    found = hill_climbing([seen], judges, vocabulary(preset, family), lambda tried: tried < tries)

    assert found.accuracy < max(one.accuracy for one in known.values()) + 0.005


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_each_published_workflow_is_better_than_shorter_ones_and_runs_all_its_steps(preset: Preset) -> None:
    known = optimum(preset.name)

    for found in [*known.families.values(), known.constants]:
        assert all(one.steps == len(live(one.team)) <= most for most, one in found.items())
        accuracies = [one.accuracy for one in dict.fromkeys(found.values())]
        assert accuracies == sorted(accuracies)


def test_a_longer_workflow_is_published_only_if_it_is_better() -> None:
    questions = Exam(preset_of("gym/axes"), 300).families["sums"]
    single: Team = ((0, SUBTASKS["S"], ()),)
    useless: Team = (*single, (4, SUBTASKS["V"], (0,)))
    dead: Team = ((4, SUBTASKS["S"], ()), *single)

    best = best_of([dead, useless, single], [questions], [questions])

    assert {steps: one.team for steps, one in best.items()} == {1: single}
    assert difference(single, useless, [questions])[0] > 0


@pytest.fixture
def small_optimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of published workflows that may be changed, and searches that see few questions."""
    file = tmp_path / "optimum.json"
    file.write_bytes(published.FILE.read_bytes())
    for module in (published, gym_optimum):
        monkeypatch.setattr(module, "FILE", file)
    for name in ("SEEN", "FRESH", "JUDGED"):
        monkeypatch.setattr(bench_optimum, name, 60)
    yield file
    optimum.cache_clear()


def test_hill_climbing_publishes_only_if_told(small_optimum: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = Found(((4, SUBTASKS["S"], ()),), 0.1, 0.0)
    gym_optimum.publish("gym/axes", "relay", {1: bad})
    before, climb = small_optimum.read_bytes(), ["--preset", "gym/axes", "--family", "relay", "--climb", "0.1"]

    bench_optimum.main([*climb, "--seed", "3"])

    assert "IS BEATEN" in capsys.readouterr().out
    assert small_optimum.read_bytes() == before

    bench_optimum.main([*climb, "--publish"])

    assert optimum("gym/axes").families["relay"][5].team != bad.team
    assert optimum("gym/axes").families["chain"][5].accuracy > 0.9


def test_workflows_of_a_preset_are_published_one_family_after_the_other(small_optimum: Path) -> None:
    single = Found(((0, SUBTASKS["S"], ()),), 0.5, 0.001)
    longer = Found(((0, SUBTASKS["S"], ()), (1, SUBTASKS["V"], (0,))), 0.6, 0.001)

    gym_optimum.publish("gym/open4", "algebra", {1: single})
    gym_optimum.publish("gym/open4", "units", {2: longer})

    known = optimum("gym/open4")
    assert "gym/open4" in json.loads(small_optimum.read_text())
    assert set(known.families["algebra"].values()) == {single}
    assert known.families["units"] == dict.fromkeys((2, 3, 4, 5), longer)


def test_a_preset_that_was_not_searched_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench_optimum.main(["--preset", "gym/open4"])

    assert "no best workflows of gym/open4 were searched for" in capsys.readouterr().err


def test_the_published_optimum_is_what_its_workflows_have() -> None:
    known = optimum("gym/axes")

    for questions in frozen_questions(preset_of("gym/axes"), "text"):
        best = known.per_family()[questions.family]
        again = expected_accuracy(workflow_of(best.team), questions, draws=4, stream="other").value
        assert again == pytest.approx(best.accuracy, abs=0.012)
    assert {one.steps for one in known.per_family(price=100).values()} == {1}
    assert known.accuracy() > known.constant().accuracy + 0.04


def test_a_constant_workflow_of_paper7_that_was_missed_before_is_among_the_published() -> None:
    missed = (
        (1, SUBTASKS["P"], ()),
        (0, SUBTASKS["S"], (0,)),
        (2, SUBTASKS["R"], (0, 1)),
        (0, SUBTASKS["R"], (2,)),
        (2, SUBTASKS["V"], (3,)),
    )
    known = optimum("gym/paper7")

    assert known.constant().accuracy >= judged(missed, list(Exam(preset_of("gym/paper7")).families.values())).accuracy
    assert known.accuracy() >= 0.812
