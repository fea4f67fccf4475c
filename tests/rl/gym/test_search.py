"""The search for good workflows: sensible structures, and figures on luck that it has not seen."""

from __future__ import annotations

import pytest

from tests.benchmarks.gym_search import best_extension, best_team, random_teams, second_round, structures, team
from wfdsl_rl.gym.world.accuracy import Exam, Questions, expected_accuracy
from wfdsl_rl.gym.world.presets import preset_of
from wfdsl_rl.gym.world.profiles import DOMAINS, Domain


@pytest.fixture(scope="module")
def code() -> Questions:
    return Exam(preset_of("gym/paper7"), 600).questions["code"]


def test_structures_solve_before_they_look_and_end_with_an_answer() -> None:
    assert structures(1) == ("S",)
    assert set(structures(2)) == {"PS", "SS", "SV", "SR"}
    assert all(one.lstrip("P").startswith("S") for one in structures(5))


def test_solvers_see_plans_only_and_looks_see_everything() -> None:
    workflow = team("PSSA", (0, 1, 2, 3))

    assert [step.access for step in workflow] == [(), (0,), (0,), "all"]


def test_the_best_single_call_on_code_is_the_specialists(code: Questions) -> None:
    assert best_team([code], 1).workers == (2,)


def test_two_good_steps_beat_one_at_once(code: Questions) -> None:
    one, two = best_team([code], 1), best_team([code], 2, kept=2)

    assert two.mean > one.mean + 0.05
    assert two.mean == pytest.approx(expected_accuracy(two.workflow, code, stream="other").value, abs=0.02)


@pytest.mark.parametrize("domain", DOMAINS)
def test_one_call_is_no_trap_in_any_family(domain: Domain) -> None:
    questions = Exam(preset_of("gym/paper7"), 1200).questions[domain]

    for family in sorted(set(questions.families.tolist())):
        part = questions.only(questions.families == family)
        one = best_team([part], 1)
        assert best_extension(one, part) > one.mean


def test_random_workflows_are_repeatable_and_well_formed() -> None:
    left, right = (list(random_teams(4, 7, 20, 3)) for _ in range(2))

    assert left == right
    assert all(len(workflow) == 4 for workflow in left)


def test_a_second_round_mends_what_a_worker_that_went_bad_has_spoilt() -> None:
    workflow = team("SR", (0, 1))
    plain = second_round(workflow, Exam(preset_of("gym/paper7"), 600).questions["math"], draws=2)
    shifted = second_round(workflow, Exam(preset_of("gym/shifted"), 600).questions["math"], draws=2)

    assert shifted.best > shifted.first + 0.05
    assert shifted.best - shifted.first > plain.best - plain.first
    assert plain.best > plain.first - 0.01
    assert 0 < plain.revised < 1
