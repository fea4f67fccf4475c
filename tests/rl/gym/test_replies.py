"""Replies: states become texts, texts become states, and graders find in them what is meant."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfdsl.grading.extraction import final_answer
from wfdsl.grading.grade import grade
from wfdsl_rl.gym.world import wording
from wfdsl_rl.gym.world.families.form import Item
from wfdsl_rl.gym.world.making import items, task_of
from wfdsl_rl.gym.world.profiles import DOMAINS, PROFILES, Domain
from wfdsl_rl.gym.world.replies import answers_of, read, render
from wfdsl_rl.gym.world.roles import Role
from wfdsl_rl.gym.world.states import MISLEADING, NO_ANSWER, OTHER, RIGHT, SOUND, STRANGER, WRONG, Attempt, Plan

ITEMS = [item for domain in DOMAINS for item in items("gym/paper7", domain, 12, 7)]
ROLES = ["solve", "none", "verify", "refine", "aggregate"]

agents = st.integers(0, len(PROFILES) - 1)
plans = st.builds(Plan, agents, st.integers(MISLEADING, SOUND))
answered = st.builds(
    Attempt, agents, st.integers(RIGHT, WRONG), st.integers(0, 2), st.booleans(), st.booleans(), st.just(False)
)
cut = st.builds(Attempt, agents, st.just(NO_ANSWER), cut=st.just(True))
keys = st.integers(0, 2**64 - 1)


@given(plans | answered | cut, st.sampled_from(ITEMS), st.sampled_from(ROLES), keys, st.booleans())
def test_what_is_written_is_read_back(
    state: Attempt, item: Item, role: Role, key: int, something_in_view: bool
) -> None:
    text = render(state, item, role, key, something_in_view=something_in_view)

    assert read(text, item).state == state


@given(answered, st.sampled_from(ITEMS), st.sampled_from(ROLES), keys)
def test_graders_find_the_answer_that_is_meant(state: Attempt, item: Item, role: Role, key: int) -> None:
    text = render(state, item, role, key, something_in_view=True)

    found = final_answer(text, item.kind, choices=item.choices)

    assert found is not None
    assert found.strip() == answers_of(item)[state.answer].strip()


@pytest.mark.parametrize("domain", ["math", "choice", "text"])
async def test_plans_and_cut_replies_are_never_right(domain: Domain) -> None:
    for item, key in itertools.product(items("gym/paper7", domain, 30, 3), range(3)):
        task = task_of(item, "one", "gym/paper7", "test")
        for state in (Plan(key, SOUND), Plan(key, MISLEADING), Attempt(key, NO_ANSWER, cut=True)):
            text = render(state, item, "solve", key * 7919, something_in_view=False)

            assert (await grade(task, text)).outcome == "wrong"


def test_nothing_but_the_answer_itself_differs_between_right_and_wrong() -> None:
    item = ITEMS[0]

    right = render(Attempt(2, RIGHT), item, "solve", 5, something_in_view=False)
    wrong = render(Attempt(2, 1), item, "solve", 5, something_in_view=False)

    assert right.replace(item.gold, "X") == wrong.replace(item.wrong[0], "X")


def test_every_sentence_has_one_meaning() -> None:
    sentences = [
        *itertools.chain.from_iterable(wording.OPENINGS),
        *itertools.chain.from_iterable(wording.CHECKS.values()),
        *wording.HEDGES,
        *itertools.chain.from_iterable(wording.SLIPS.values()),
        *itertools.chain.from_iterable(wording.WORKING.values()),
        *(text for by_quality in wording.PLANS.values() for texts in by_quality.values() for text in texts),
        *wording.CUT,
    ]

    assert len(sentences) == len(set(sentences))
    assert not any(character.isdigit() for sentence in sentences for character in sentence)


def test_a_strangers_answer_counts_as_graders_take_it() -> None:
    item = next(item for item in ITEMS if item.kind == "math")

    right = read(f"I did it in my head.\n\nSo the answer is {item.gold}.", item)
    other = read("It is simple: the answer is 123456789.", item)
    talk = read("No idea, sorry", next(item for item in ITEMS if item.kind == "code"))

    assert right.state == Attempt(STRANGER, RIGHT)
    assert other.state == Attempt(STRANGER, OTHER)
    assert other.given == "123456789"
    assert isinstance(talk.state, Plan)


def test_an_edited_reply_of_the_gym_is_read_like_a_strangers() -> None:
    item = next(item for item in ITEMS if item.kind == "math")
    text = render(Attempt(1, RIGHT), item, "solve", 1, something_in_view=False)

    edited = read(text.rsplit("\n", 1)[0] + f"\nTherefore the answer is {item.wrong[0]}, I believe.", item)

    assert edited.state == Attempt(STRANGER, 1)


def test_an_answer_of_a_stranger_is_passed_on_in_its_own_words() -> None:
    item = next(item for item in ITEMS if item.kind == "text")

    text = render(Attempt(0, OTHER), item, "verify", 3, something_in_view=True, other="forty-two llamas")

    assert final_answer(text, "text") == "forty-two llamas"
