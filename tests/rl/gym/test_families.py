"""What is drawn is recognised, wordings are held out, and wrong answers are wrong."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import count, islice
from statistics import fmean, pstdev
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfdsl.errors import UsageError
from wfdsl.grading.grade import grade_sync
from wfdsl.tasks.task import Kind, Task
from wfdsl_rl.gym.world.families import FAMILIES, SPLITS, domain_of, draw, recognise, summary_of
from wfdsl_rl.gym.world.families.catalogue import CATALOGUE
from wfdsl_rl.gym.world.families.choice_options import LETTERS
from wfdsl_rl.gym.world.families.form import Item, Split, bare
from wfdsl_rl.gym.world.families.knowledge import CAPITALS, ELEMENTS, POLYGONS, QUANTITIES, SUN

KINDS: tuple[Kind, ...] = ("math", "choice", "text", "code")
SPLIT_NAMES: tuple[Split, ...] = get_args(Split)
INSTRUCTIONS = re.compile(
    r"plan|verif|check|aggregat|combin|merg|compar|review|improv|refin|revis|critic|correct|fix|debug|solution|solv|answer",
    re.IGNORECASE,
)


def drawn(kind: Kind, number: int, *, seed: int = 3) -> list[Item]:
    return [draw(kind, seed, index, split=split) for index in range(number // 2) for split in SPLIT_NAMES]


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return [item for kind in KINDS for item in drawn(kind, 2000)]


@given(st.sampled_from(KINDS), st.integers(), st.integers(0, 10**9), st.sampled_from(SPLIT_NAMES))
def test_a_drawn_question_is_recognised_as_the_same_item(kind: Kind, seed: int, index: int, split: Split) -> None:
    item = draw(kind, seed, index, split=split)

    found = recognise(item.question)

    assert found == item


def test_thousands_of_questions_are_recognised(items: list[Item]) -> None:
    assert [recognise(item.question) for item in items] == items


@pytest.mark.parametrize("kind", KINDS)
def test_a_draw_depends_on_its_arguments_alone(kind: Kind) -> None:
    first = [draw(kind, 1, index) for index in range(50)]
    again = [draw(kind, 1, index) for index in reversed(range(50))][::-1]
    other = [draw(kind, 2, index) for index in range(50)]

    assert first == again
    assert first != other


def test_questions_of_a_kind_hardly_repeat() -> None:
    shares = {kind: len({item.question for item in drawn(kind, 2000)}) / 2000 for kind in KINDS}

    assert min(shares.values()) > 0.85


def test_every_wording_is_drawn_in_its_own_split_only() -> None:
    seen = {
        split: {draw(kind, 0, index, split=split).template for kind in KINDS for index in range(2500)}
        for split in SPLIT_NAMES
    }

    assert seen == {split: set(names) for split, names in SPLITS.items()}
    assert not seen["train"] & seen["test"]


def test_every_family_has_four_wordings_to_train_on_and_two_held_out() -> None:
    forms: dict[str, dict[Split, int]] = defaultdict(lambda: {"train": 0, "test": 0})
    for split, names in SPLITS.items():
        for name in names:
            forms[name.rsplit(".", 2)[0]][split] += 1

    assert {form.split(".")[0] for form in forms} == set(FAMILIES)
    assert all(counts["train"] >= 4 and counts["test"] >= 2 for counts in forms.values())


def test_no_wording_stands_twice_or_in_both_splits() -> None:
    texts = [text.lower() for family in CATALOGUE for form in family.forms for text in (*form.train, *form.test)]

    assert len(texts) == sum(map(len, SPLITS.values()))
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_is_drawn_within_its_kind(family: str) -> None:
    kind = domain_of(family)

    found = next(draw(kind, 5, index, families=(family,)) for index in count())

    assert found.kind == kind
    assert summary_of(family)


def test_questions_are_short_plain_and_give_no_instructions(items: list[Item]) -> None:
    for item in items:
        longest = {"math": 160, "text": 160, "choice": 220, "code": 200}[item.kind]
        assert len(item.question) <= longest
        assert item.question.isascii()
        assert item.question == item.question.strip()
        assert "\n\n" not in item.question
        assert not INSTRUCTIONS.search(item.question), item.question


def test_words_are_few() -> None:
    plain = [item.question for kind in KINDS for item in drawn(kind, 3000) if item.family != "knowledge"]

    words = {word.lower() for question in plain for word in re.findall(r"[A-Za-z]+", question)}

    assert len(words) < 450


def test_wrong_answers_differ_from_the_gold_and_from_each_other(items: list[Item]) -> None:
    for item in items:
        answers = (item.gold, *item.wrong)
        assert len(item.wrong) >= (4 if item.kind == "math" else 3)
        assert len({answer if item.kind in ("math", "code") else bare(answer) for answer in answers}) == len(answers)


def test_wrong_letters_are_the_other_letters(items: list[Item]) -> None:
    for item in items:
        if item.kind == "choice":
            assert sorted((item.gold, *item.wrong)) == list(LETTERS)
            assert len(set(item.choices)) == len(LETTERS)
            assert all(choice in item.question for choice in item.choices)


@pytest.mark.parametrize("kind", ["math", "choice", "text"])
def test_graders_tell_the_gold_from_the_wrong_answers(kind: Kind) -> None:
    for item in drawn(kind, 40, seed=8):
        task = Task(id="1", question=item.question, gold=item.gold, kind=item.kind, choices=item.choices)
        outcomes = [grade_sync(task, f"The answer is {answer}.").outcome for answer in (item.gold, *item.wrong)]

        assert outcomes == ["right", *["wrong"] * len(item.wrong)], item


@pytest.mark.parametrize("family", FAMILIES)
def test_difficulty_is_about_standard_normal_within_a_family(family: str) -> None:
    found = (draw(domain_of(family), 6, index, families=(family,)) for index in count())

    values = [item.difficulty for item in islice(found, 800)]

    assert fmean(values) == pytest.approx(0, abs=0.12)
    assert pstdev(values) == pytest.approx(1, abs=0.12)
    assert all(-3 <= value <= 3 for value in values)


@pytest.mark.parametrize(
    ("question", "family", "gold"),
    [
        ("What is 17 * 23?", "arithmetic", "391"),
        ("  What is 2 + 3 * 4?\n", "arithmetic", "14"),
        ("Compute (1 + 2) / 9.", "arithmetic", "1/3"),
        ("What is -3 - 4?", "arithmetic", "-7"),
        ("Find x if 3x + 5 = 20.", "algebra", "5"),
        ("How many divisors does 360 have?", "counting", "24"),
        ("What is the capital of Peru? A) Lima B) Oslo C) Rome D) Paris", "knowledge", "A"),
        ("What is the capital of Peru? A) Oslo B) Rome C) Nowhere D) Lima", "knowledge", "D"),
        ("Which of these numbers is prime?\nA) 4\nB) 6\nC) 7\nD) 9", "numbers", "C"),
        ("Write hello backwards.", "strings", "olleh"),
        ("What is the 1st letter of hello?", "strings", "h"),
        ("What day of the week is 2024-02-29?", "dates", "Thursday"),
        ("Convert 7 km to m.", "units", "7000 m"),
    ],
)
def test_a_user_can_put_in_numbers_of_their_own(question: str, family: str, gold: str) -> None:
    item = recognise(question)

    assert item is not None
    assert (item.family, item.gold) == (family, gold)


@pytest.mark.parametrize(
    "question",
    [
        "",
        " ",
        "What is love?",
        "What is 17 * 23",
        "What is 1 / 0?",
        "What is 1 / (2 - 2)?",
        "What is (1 + 2?",
        "What is 1 2?",
        "What is 3 +?",
        "What is 2 ** 9999999?",
        "Find x if 0x + 5 = 20.",
        "Find x if 2x + 5 = 2x + 7.",
        "Find x if 1x + 2y = 3 and 2x + 4y = 6.",
        "In how many ways can 5 people be chosen from 3 people?",
        "How many divisors does 0 have?",
        "What is the capital of Atlantis? A) Lima B) Oslo C) Rome D) Paris",
        "What is the capital of Peru? A) Quito B) Oslo C) Rome D) Paris",
        "What is the capital of Peru? A) Lima B) Lima C) Rome D) Paris",
        "What is the capital of Peru? A) Lima B) Oslo C) Rome",
        "Which of these numbers is prime? A) 3 B) 6 C) 7 D) 9",
        "Which of these numbers is prime? A) 4 B) 6 C) one D) 9",
        "Which of these fractions is the largest? A) 1/2 B) 2/4 C) 1/3 D) 1/4",
        "What is the 9th letter of hello?",
        "What is the 2th letter of hello?",
        "What day of the week is 2023-02-29?",
        "How many days are there from 2023-02-10 to 2023-02-09?",
        "Convert 7 km to kg.",
        "Convert 1 seconds to days.",
        "Find the time from 25:00 to 26:00 in minutes.",
        "Which date is 9999 days after 9999-12-31?",
        "What is \u0663 + 4?",
        "Find x if \u0663x + 5 = 20.",
        "What is " + "1 + " * 200 + "1?",
    ],
)
def test_what_is_no_question_of_a_family_is_not_recognised(question: str) -> None:
    assert recognise(question) is None


@given(st.text(max_size=120))
def test_any_text_may_be_asked_about(text: str) -> None:
    item = recognise(text)

    assert item is None or item.question == text.strip()


@given(st.sampled_from(KINDS), st.integers(0, 300), st.data())
def test_a_changed_question_is_never_taken_for_the_old_one(kind: Kind, index: int, data: st.DataObject) -> None:
    question = draw(kind, 4, index).question
    at = data.draw(st.integers(0, len(question) - 1))
    put = data.draw(st.characters(min_codepoint=32, max_codepoint=126))
    changed = question[:at] + put + question[at + 1 :]

    item = recognise(changed)

    assert item is None or item.question == changed.strip()


def test_options_may_hold_any_characters() -> None:
    item = recognise("What is the capital of Peru? A) Lima B) \ud800 C) {} D) \\")

    assert item is not None
    assert (item.gold, item.choices) == ("A", ("Lima", "\ud800", "{}", "\\"))


def test_facts_are_one_to_one_and_many() -> None:
    tables = [
        CAPITALS,
        {name: symbol for name, symbol, _ in ELEMENTS},
        {name: str(number) for name, _, number in ELEMENTS},
        QUANTITIES,
        POLYGONS,
        SUN,
    ]

    assert sum(map(len, tables)) >= 150
    assert all(len(set(one.values())) == len(one) for one in tables)
    assert [number for _, _, number in ELEMENTS] == sorted(number for _, _, number in ELEMENTS)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no questions of the kind 'custom'; the kinds are math, choice, text, code"):
        draw("custom", 0, 0)
    with pytest.raises(UsageError, match="no split 'dev'; the splits are 'train', 'test'"):
        draw("math", 0, 0, split="dev")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no family 'geometry'; the families are arithmetic, algebra"):
        domain_of("geometry")
