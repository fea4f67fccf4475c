"""The behaviour model: the same on numbers and arrays, and shaped as it says."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.benchmarks.gym_search import Space, vocabulary
from tests.benchmarks.gym_teams import team
from wfdsl import Step, Workflow
from wfdsl_rl.gym.world.accuracy import Arrays, Questions, states_of
from wfdsl_rl.gym.world.constants import Evidence
from wfdsl_rl.gym.world.families import draw
from wfdsl_rl.gym.world.families.form import Item
from wfdsl_rl.gym.world.making import items
from wfdsl_rl.gym.world.optimum import workflow_of
from wfdsl_rl.gym.world.presets import preset_of
from wfdsl_rl.gym.world.profiles import Domain
from wfdsl_rl.gym.world.randomness import Scalars, quantile, text_key
from wfdsl_rl.gym.world.simulate import simulate
from wfdsl_rl.gym.world.states import FAILS, NO_ANSWER, PASSES, RIGHT, Attempt

PRESET = preset_of("gym/paper7")


def some_questions(domain: Domain, size: int, seed: int = 8) -> list[Questions]:
    """Family by family."""
    some = items(PRESET.name, domain, size, seed)
    return [Questions.of(PRESET, [one for one in some if one.family == name]) for name in PRESET.ease[domain]]


def answers_of(workflow: Workflow, domain: Domain, size: int) -> list[NDArray[np.int64]]:
    """The answers of a workflow without plans, step by step."""
    found = [states_of(workflow, questions, "x") for questions in some_questions(domain, size)]
    return [
        np.concatenate([np.broadcast_to(state.answer, (len(state.hedged),)) for state in states])
        for states in zip(*found, strict=True)
    ]


def test_numbers_and_arrays_have_the_same_noise() -> None:
    keys = [text_key("key", number) for number in range(2000)]
    array, scalars, arrays = np.array(keys, dtype=np.uint64), Scalars(), Arrays()

    assert arrays.uniform(array, 3).tolist() == [scalars.uniform(key, 3) for key in keys]
    assert arrays.joined(array, 99).tolist() == [scalars.joined(key, 99) for key in keys]
    assert arrays.normal(array, 4) == pytest.approx([scalars.normal(key, 4) for key in keys], abs=1e-12)


def test_noise_is_standard_normal_and_uncorrelated_between_streams() -> None:
    keys = np.array([text_key(number) for number in range(20_000)], dtype=np.uint64)

    one, other = Arrays().normal(keys, 0), Arrays().normal(keys, 1)

    assert one.mean() == pytest.approx(0, abs=0.03)
    assert one.std() == pytest.approx(1, abs=0.03)
    assert np.corrcoef(one, other)[0, 1] == pytest.approx(0, abs=0.03)
    assert [quantile(share) for share in (0.001, 0.5, 0.975)] == pytest.approx([-3.0902, 0, 1.95996], abs=1e-4)


FAMILIES = [(name, family) for name in ("gym/paper7", "gym/axes") for family in preset_of(name).settings]


@pytest.mark.parametrize(("name", "family"), FAMILIES)
def test_many_questions_at_once_are_answered_as_each_alone(name: str, family: str) -> None:
    preset, chance = preset_of(name), random.Random(family)
    some = [draw(preset.domain_of(family), 4, index, families=(family,)) for index in range(8)]
    questions, space = Questions.of(preset, some), Space(7, vocabulary(preset))

    for length in [*range(1, 6)] * 2:
        workflow = workflow_of(space.any_team(length, chance))
        together = states_of(workflow, questions, "x")
        for at, item in enumerate(some):
            alone = simulate(workflow, item, preset, sample_id="x").states
            for left, right in zip(together, alone, strict=True):
                for each in right.__slots__:
                    assert np.broadcast_to(getattr(left, each), (8,))[at] == getattr(right, each)


@pytest.mark.parametrize(
    ("family", "same"), [("basket", "Do part 4."), ("chain", "Solve it."), ("tally", "Do part 1.")]
)
def test_the_last_part_is_the_one_that_the_question_ends_with(family: str, same: str) -> None:
    preset = preset_of("gym/axes")
    asked = [draw(preset.domain_of(family), 4, index, families=(family,)) for index in range(20)]

    last, named = (
        [simulate(Workflow((Step(0, text),)), item, preset).states for item in asked]
        for text in ("The last part.", same)
    )

    assert last == named


def test_evidence_has_the_published_likelihood_ratios() -> None:
    asked = items(PRESET.name, "text", 4500, 8)
    questions = Questions.of(PRESET, [item for item in asked if item.family == "units"])
    state = states_of(team("S", (0,)), questions, "evidence")[0]
    assert isinstance(state, Attempt)
    right, wrong = state.answer == RIGHT, state.answer > RIGHT
    rates = Evidence()

    for shows, rate in ((state.check == FAILS, rates.fails), (state.check == PASSES, rates.passes),
                        (state.hedged, rates.hedged), (state.slipped, rates.slipped)):  # fmt: skip
        assert shows[right].mean() == pytest.approx(rate.right, abs=0.04)
        assert shows[wrong].mean() == pytest.approx(rate.wrong, abs=0.04)
        assert not shows[state.answer == NO_ANSWER].any()
    assert rates.fails.ratio > 5
    assert rates.passes.ratio < 0.5


def test_relatives_share_more_mistakes_than_others() -> None:
    answers = {agent: answers_of(team("S", (agent,)), "math", 1200)[0] for agent in (1, 3, 5)}

    def agreement(one: int, other: int) -> float:
        both = (answers[one] > RIGHT) & (answers[other] > RIGHT)
        return float((answers[one] == answers[other])[both].mean())

    assert agreement(3, 5) > agreement(3, 1) + 0.05


def test_reflection_on_ones_own_work_finds_less_than_another_worker_does() -> None:
    def gain(second: int) -> float:
        first, final = answers_of(team("SV", (1, second)), "math", 1200)
        return float((final == RIGHT)[first > RIGHT].mean())

    assert gain(0) > gain(1) + 0.1


def test_an_aggregator_gives_an_answer_of_its_own_only_now_and_then() -> None:
    *attempts, last = answers_of(team("SSSA", (0, 1, 2, 3)), "code", 500)

    unheard = ~(np.stack(attempts) == last).any(axis=0)

    assert 0 < unheard.mean() < 0.3


def test_luck_differs_between_the_steps_of_one_worker() -> None:
    first, second = answers_of(team("SS", (0, 0)), "text", 800)

    differ = (first == RIGHT) != (second == RIGHT)

    assert 0.05 < differ.mean() < 0.4


def test_which_questions_are_hard_does_not_depend_on_the_order_in_which_they_are_asked() -> None:
    some = [item for item in items(PRESET.name, "math", 120, 4) if item.family == "algebra"]
    shuffled = random.Random(1).sample(some, len(some))

    def hardness(asked: list[Item]) -> dict[str, list[float]]:
        base = Questions.of(PRESET, asked).base[:, 0].T.tolist()
        return {item.question: each for item, each in zip(asked, base, strict=True)}

    assert hardness(some) == hardness(shuffled)
