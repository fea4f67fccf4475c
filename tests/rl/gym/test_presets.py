"""Presets: frozen, as accurate as the paper's workers, and with baselines near the paper's figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.benchmarks.gym_calibration import fitted_levels
from tests.benchmarks.gym_teams import team
from wfdsl import Pool, Workflow
from wfdsl.workers.pool import pool_names
from wfdsl_rl.gym.world import presets, roles
from wfdsl_rl.gym.world.accuracy import Exam, frozen_fingerprint
from wfdsl_rl.gym.world.families import FAMILIES, domain_of
from wfdsl_rl.gym.world.presets import PRESETS, preset_of
from wfdsl_rl.gym.world.profiles import DOMAINS, PROFILES

FROZEN = {
    "gym/paper7": "c631c9ab90253559",
    "gym/open4": "340fdf219ce1d01f",
    "gym/shifted": "61682622107b52cd",
    "gym/axes": "b94a89907bf8ab79",
}
"""Content hashes of version 1. They change when rules read more sentences; any other change is a new version."""
VOCABULARY_NAMES = ("RULES", "NOT_ASKED", "KIND_WORDS", "METHODS", "CHECKS", "NUMBERS", "PARTS", "GIVEN")
BRANDS = ["gemini", "claude", "gpt", "deepseek", "r1", "qwen", "gemma"]


@pytest.fixture(scope="module")
def exam() -> Exam:
    return Exam(preset_of("gym/paper7"))


def mean(exam: Exam, workflow: Workflow, **options: Any) -> float:
    return 100 * sum(one.value for one in exam.accuracies(workflow, draws=4, **options)) / len(DOMAINS)


@pytest.mark.parametrize("name", FROZEN)
def test_presets_are_frozen(name: str) -> None:
    assert preset_of(name).content_hash == FROZEN[name]


def test_the_questions_that_figures_are_for_are_frozen() -> None:
    assert frozen_fingerprint() == "3e35b13b674b27eb"
    assert frozen_fingerprint("gym/axes") == "df267b1130c114c8"


def test_the_hash_covers_the_numbers_that_behaviour_depends_on() -> None:
    preset = preset_of("gym/paper7")

    bolder = replace(preset, behaviour=replace(preset.behaviour, agree=0.26))
    easier = replace(preset, ease={**preset.ease, "math": {**preset.ease["math"], "algebra": 0.1}})

    assert len({preset.content_hash, bolder.content_hash, easier.content_hash}) == 3


@pytest.mark.parametrize("changed", ["ALIKE", "LEVELS", *VOCABULARY_NAMES])
def test_the_hash_covers_what_all_presets_share(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = preset_of("gym/axes")
    if changed in VOCABULARY_NAMES:
        less = tuple(each for name, each in zip(VOCABULARY_NAMES, roles.VOCABULARY, strict=True) if name != changed)
        monkeypatch.setattr(presets, "VOCABULARY", less)
    else:
        monkeypatch.setattr(presets, changed, 0.5)

    assert replace(preset).content_hash != preset.content_hash


def test_every_family_is_asked_in_its_domain() -> None:
    eases = [preset.ease for preset in PRESETS.values()]
    asked = {family: domain for ease in eases for domain, families in ease.items() for family in families}

    assert asked == {family: domain_of(family) for family in FAMILIES}


@pytest.mark.parametrize("name", ["gym/paper7", "gym/axes"])
def test_levels_are_what_the_calibration_fits(name: str) -> None:
    preset = preset_of(name)

    assert fitted_levels(preset, 2) == pytest.approx(preset.levels[2], abs=0.0011)


@pytest.mark.parametrize("agent", range(7))
def test_single_calls_are_as_accurate_as_in_the_paper(exam: Exam, agent: int) -> None:
    found = exam.accuracies(team("S", (agent,)), draws=8)

    for one, domain in zip(found, DOMAINS, strict=True):
        assert one.value == pytest.approx(PROFILES[agent].accuracy[domain], abs=0.01)


def test_baselines_come_out_near_the_papers_averages(exam: Exam) -> None:
    context = max(mean(exam, team("S", (w,)), max_tokens=5 * 4096) for w in range(3))
    reflection = max(mean(exam, team("SVVVV", (w,) * 5)) for w in range(3))
    mixture = mean(exam, team("SSSSSSSA", (0, 1, 2, 3, 4, 5, 6, 0)))

    assert context == pytest.approx(67.60, abs=3)
    assert reflection == pytest.approx(64.52, abs=3)
    assert mixture == pytest.approx(62.13, abs=3)


def test_weak_workers_mislead_the_aggregator_on_code(exam: Exam) -> None:
    mixture = exam.accuracies(team("SSSSSSSA", (0, 1, 2, 3, 4, 5, 6, 0)), draws=4)[3].value

    assert mixture < PROFILES[2].accuracy["code"] - 0.1


def test_routing_topology_and_a_second_step_pay(exam: Exam) -> None:
    one = mean(exam, team("S", (0,)))
    two = mean(exam, team("SR", (0, 2)))
    best = [team("SR", (0, 1)), team("SR", (1, 0)), team("PSRR", (3, 0, 5, 2)), team("PSRR", (1, 2, 0, 2))]
    routed = [exam.accuracies(workflow, draws=4)[at].value for at, workflow in enumerate(best)]

    assert two > one + 3
    assert 100 * sum(routed) / len(routed) > max(two + 4, 72.35)


def test_a_needless_step_spoils_easy_answers(exam: Exam) -> None:
    single = exam.accuracies(team("S", (0,)), draws=4)[1].value
    chain = exam.accuracies(team("PSRR", (6, 0, 3, 5)), draws=4)[1].value

    assert chain < single - 0.01


def test_instructions_that_ask_for_what_is_not_there_cost(exam: Exam) -> None:
    plain = mean(exam, team("S", (0,)))

    for letter in "VRA":
        assert mean(exam, team(letter, (0,))) < plain - 5
    assert mean(exam, team("SP", (0, 1))) == 0


def test_a_plan_of_a_poor_planner_helps_less(exam: Exam) -> None:
    strong, weak = (exam.accuracies(team("PS", (planner, 2)), draws=4)[3].value for planner in (1, 4))

    assert strong > weak + 0.05


def test_open4_has_the_same_workers_as_paper7() -> None:
    large, small = preset_of("gym/paper7"), preset_of("gym/open4")

    assert [small.profile(at) for at in range(4)] == [large.profile(at) for at in range(3, 7)]
    assert small.abilities == large.abilities


def test_nothing_shows_that_a_worker_of_shifted_is_bad() -> None:
    plain, shifted = Pool.load("gym/paper7"), Pool.load("gym/shifted")

    assert [entry.description for entry in shifted] == [entry.description for entry in plain]
    assert [entry.name for entry in shifted] == [entry.name for entry in plain]
    assert preset_of("gym/shifted").accuracy(0, "math") < 0.5 < preset_of("gym/paper7").accuracy(0, "math")


@pytest.mark.parametrize("name", PRESETS)
def test_pools_say_that_they_are_simulated_and_name_no_brand_to_a_conductor(name: str) -> None:
    pool = Pool.load(name)

    assert "Simulated" in pool.settings.description
    assert preset_of(name).content_hash in pool.settings.description
    for entry in pool:
        assert not any(brand in entry.description for brand in BRANDS)
        assert [word for word in entry.description.split() if word.isalpha()] == list(DOMAINS)
    assert pool.tagged("open")


def test_every_preset_is_listed_among_the_pools() -> None:
    assert {name for name in pool_names() if name.startswith("gym")} == set(PRESETS)
