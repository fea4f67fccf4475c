"""A training mix has the asked counts, no repeats, nothing like a test task, and is the same for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wfdsl.errors import UsageError
from wfdsl.tasks.loading import load_tasks
from wfdsl.tasks.selection import (
    ALIKE,
    CONTAINED,
    QUOTED,
    Mix,
    difficulty,
    farthest_first,
    likes,
    manifest,
    parse_counts,
    select,
    tasks_hash,
)
from wfdsl.tasks.task import Kind, Task

WORDS = (
    "how", "many", "red", "green", "old", "new", "apples", "boats", "cars", "does", "she", "sell",
    "buy", "find", "before", "after", "the", "sum", "of", "prime", "even", "odd",
)  # fmt: skip
DUPLICATED = "A farmer has twelve sheep and buys nine more at the market on Monday. How many sheep does he have now?"


def question(random: Random, length: int = 14) -> str:
    return " ".join(random.choice(WORDS) for _ in range(length)) + f" {random.randrange(10**6)}?"


def made(count: int, kind: Kind = "math", *, seed: int = 0) -> list[Task]:
    random = Random(f"{kind}{seed}")
    return [
        Task(
            id=f"{kind}-{seed}-{number}",
            question=question(random),
            gold="A" if kind == "choice" else "1",
            kind=kind,
            source=f"made-{kind}",
            metadata={"level": number % 5 + 1},
        )
        for number in range(count)
    ]


def ids(mix: Mix) -> list[str]:
    return [task.id for task in mix.tasks]


# Similarity against every pair, written down once more without the index.


def shares(one: str, other: str) -> bool:
    import re

    def windows(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+|[^\w\s]", text.lower())
        return {tuple(words[at : at + 3]) for at in range(max(1, len(words) - 2))}

    first, second = windows(one), windows(other)
    both, shorter = len(first & second), min(len(first), len(second))
    return both / len(first | second) >= ALIKE or (shorter >= QUOTED and both / shorter >= CONTAINED)


near_texts = st.lists(
    st.integers(0, 2).flatmap(
        lambda base: st.lists(st.integers(0, 29), max_size=4).map(
            lambda changed: " ".join(
                f"{WORDS[place % len(WORDS)]}{'x' if place in changed else base}" for place in range(30)
            )
        )
    ),
    min_size=1,
    max_size=12,
)


@given(near_texts, near_texts | st.just([]))
@settings(max_examples=60, deadline=None)
def test_texts_that_are_alike_are_those_that_comparing_every_pair_finds(texts: list[str], others: list[str]) -> None:
    every = [*others, *texts]
    expected: dict[int, int] = {}
    for number in range(len(others), len(every)):
        kept = (one for one in range(number) if one - len(others) not in expected)
        like = next((one for one in kept if shares(every[one], every[number])), None)
        if like is not None:
            expected[number - len(others)] = like

    assert likes(texts, others) == expected


def test_case_and_spaces_make_no_difference_but_numbers_do_and_a_text_is_like_one_that_quotes_it() -> None:
    texts = ["Compute 3 + 4, please.", "compute  3+4, please.", "Compute 3 - 4, please.", "Compute 8 + 9, please."]

    assert likes(texts) == {1: 0}
    assert likes([f"{DUPLICATED} {question(Random(1), 60)}", DUPLICATED]) == {1: 0}


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 15))
@settings(max_examples=12, deadline=None)
def test_a_mix_has_the_asked_counts_and_no_task_twice(seed: int, maths: int, choices: int) -> None:
    candidates = [*made(60), *made(20, "choice"), *made(20, "text")]

    mix = select(candidates, {"math": maths, "choice": choices}, seed=seed)

    kinds = [task.kind for task in mix.tasks]
    assert (kinds.count("math"), kinds.count("choice"), len(kinds)) == (maths, choices, maths + choices)
    assert len(set(ids(mix))) == len(kinds)


@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
@settings(max_examples=8, deadline=None)
def test_a_mix_depends_on_the_seed_but_not_on_the_order_of_the_input(seed: int, random: Random) -> None:
    candidates = made(60)
    shuffled = list(candidates)
    random.shuffle(shuffled)

    mixes = [select(tasks, 20, seed=seed) for tasks in (candidates, shuffled)]

    assert mixes[0] == mixes[1]
    assert ids(mixes[0]) != ids(select(candidates, 20, seed=seed + 1))


def test_a_number_is_shared_equally_and_the_rest_goes_to_the_first_domains() -> None:
    candidates = [*made(20), *made(20, "choice"), *made(20, "text")]

    assert Counter(task.kind for task in select(candidates, 20).tasks) == {"choice": 7, "math": 7, "text": 6}
    assert len(select(candidates).tasks) == 60
    assert select(candidates, {"math": 0, "code": 0}).tasks == ()


def test_near_duplicates_and_test_tasks_are_left_out_and_recorded() -> None:
    first = Task(id="a", question=DUPLICATED, gold="21")
    again = Task(id="b", question=DUPLICATED.replace("Monday", "Friday"), gold="21")
    leaked = Task(id="c", question=made(1, seed=9)[0].question.upper(), gold="1")

    mix = select([*made(10), first, again, leaked], 11, against=made(5, seed=9))

    assert {(one.id, one.reason, one.because_of) for one in mix.dropped} == {
        ("b", "near-duplicate", "a"),
        ("c", "contaminated", "math-9-0"),
    }
    assert not {"b", "c"} & set(ids(mix))


def test_the_most_difficult_are_considered_by_pass_rates_before_levels() -> None:
    candidates = made(50)
    hard = [task.model_copy(update={"metadata": {"pass_rate": 0.1, "level": 1}}) for task in candidates[:15]]
    easy = [task.model_copy(update={"metadata": {"pass_rate": 1.0, "level": 5}}) for task in candidates[15:]]

    mix = select([*hard, *easy], 5)

    assert set(ids(mix)) <= {task.id for task in hard}


def spread(texts: Sequence[str]) -> float:
    """The mean share of words that two of the texts have in common, from 0 (all apart) to 1."""
    found = [set(text.split()) for text in texts]
    return sum(len(one & other) / len(one | other) for one, other in combinations(found, 2)) / (
        len(texts) * (len(texts) - 1) / 2
    )


def test_chosen_texts_are_farther_apart_than_a_random_choice() -> None:
    random = Random(3)
    topics = [
        [f"{topic}{number}" for number in range(12)] for topic in ("bird", "star", "coin", "leaf", "rope", "king")
    ]
    # Nearly all are of the first topic.
    texts = [" ".join(random.sample(topics[0 if number % 20 else number // 20 % 6], 8)) for number in range(120)]

    chosen = [texts[number] for number in farthest_first(texts, 12)]

    assert sorted(farthest_first(["same text"] * 5, 4)) == [0, 1, 2, 3]
    assert spread(chosen) < 0.7 * spread(random.sample(texts, 12))
    assert {text[:4] for text in chosen} == {"bird", "star", "coin", "leaf", "rope", "king"}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"level": 1}, 0.0),
        ({"level": 5}, 1.0),
        ({"level": "medium"}, 0.5),
        ({"level": "Hard graduate level (could be a question on a hard graduate exam)"}, 0.85),
        ({"level": "Hard undergraduate level"}, 0.7),
        ({"level": "Senior High School"}, 0.5),
        ({"difficulty": 0.0}, 0.5),
        ({"pass_rate": 0.25}, 0.75),
        ({"level": "strange"}, 0.5),
        ({"level": True}, 0.5),
        ({}, 0.5),
    ],
)
def test_difficulty_is_read_from_what_data_sets_say(metadata: dict[str, object], expected: float) -> None:
    assert difficulty(Task(id="a", question="?", gold="1", metadata=metadata)) == expected


@pytest.mark.parametrize("counts", [{"math": 11}, {"code": 1}, {"math": -1}, 0, 11])
def test_a_mix_that_cannot_be_made_is_refused(counts: dict[str, int] | int) -> None:
    with pytest.raises(UsageError):
        select(made(10), counts)


def test_one_id_in_two_files_is_an_error() -> None:
    with pytest.raises(UsageError, match="math-0-0"):
        select([*made(3), *made(3)], 2)


@pytest.mark.parametrize(("text", "counts"), [("960", 960), ("math=2,code=1", {"math": 2, "code": 1})])
def test_counts_are_a_number_or_one_for_each_domain(text: str, counts: dict[str, int] | int) -> None:
    assert parse_counts(text) == counts


@pytest.mark.parametrize("text", ["", "many", "math", "math=", "math=x", "=3", "math=1,math=2", "-5"])
def test_counts_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="-n"):
        parse_counts(text)


def test_a_manifest_says_what_the_mix_was_made_of() -> None:
    candidates, tested = [*made(30), *made(30, "choice")], made(5, seed=9)
    leaked = Task(id="leaked", question=tested[2].question, gold="1")
    mix = select([*candidates, leaked], 10, against=tested, seed=4)

    said = manifest(mix, seed=4, inputs={"a.jsonl": [*candidates, leaked]}, against={"t.jsonl": tested})

    assert (said["tasks"], said["seed"], said["chosen"]) == (10, 4, {"choice": 5, "math": 5})
    assert said["sources"] == {"made-choice": 5, "made-math": 5}
    assert (said["left_out"], said["dropped"][0]["because_of"]) == ({"contaminated": 1}, "math-9-2")
    named = [(one["name"], one["tasks"]) for one in (*said["inputs"], *said["against"])]
    assert named == [("a.jsonl", 61), ("t.jsonl", 5)]
    assert said["sha256"] == tasks_hash(mix.tasks)


def test_real_tasks_of_four_data_sets_make_a_mix() -> None:
    data = Path(__file__).parent / "data"
    files = ("gsm8k_test.jsonl", "mmlu_stem_test.jsonl", "mbpp.jsonl", "livecodebench.jsonl", "webinstruct.jsonl")
    candidates = [task for file in files for task in load_tasks(data / file)]

    mix = select(candidates, {"math": 2, "choice": 2, "code": 3, "text": 1})

    assert sorted(task.domain for task in mix.tasks) == ["choice"] * 2 + ["code"] * 3 + ["math"] * 2 + ["text"]
