"""Which lists of a completion are the answer, where it holds a draft, mentions of single lists, and the answer."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfdsl import Workflow, analyze
from wfdsl.api import Checked
from wfdsl.language.completion_groups import LABELS, choose, label_of
from wfdsl.language.completion_scanner import scanner

PLAIN_LISTS = 'model_id = [0, 1]\nsubtasks = ["Plan it.", "Do it."]\naccess_list = [[], [0]]\n'
VALUES = {
    "model_id": ("[0, 1]", "[1, 0]", "[2, 2]"),
    "subtasks": ('["a", "b"]', '["c", "d"]', "['e', 'f']"),
    "access_list": ("[[], []]", "[[], [0]]", '[[], "all"]'),
}


def drawn(rng: Random) -> tuple[str, Workflow]:
    """A draft and an answer in any orders, with up to two mentions before, between and after; the answer's meaning."""
    answer = _three(rng)
    written = [*_mentions(rng), *_three(rng), *_mentions(rng), *answer, *_mentions(rng)]
    in_order = dict(answer)
    plain = "\n".join(f"{label} = {in_order[label]}" for label in LABELS)
    workflow = analyze(plain).raise_for_errors().workflow
    assert workflow is not None
    return "\n".join(f"So {label} = {value} it is." for label, value in written), workflow


def _three(rng: Random) -> list[tuple[str, str]]:
    return [(label, rng.choice(VALUES[label])) for label in rng.sample(LABELS, 3)]


def _mentions(rng: Random) -> list[tuple[str, str]]:
    labels = [rng.choice(LABELS) for _ in range(rng.randint(0, 2))]
    return [(label, rng.choice(VALUES[label])) for label in labels]


def assert_no_silent_mixture(checked: Checked, answer: Workflow) -> None:
    assert checked.workflow == answer or any(found.code.startswith("list") for found in checked.diagnostics)


@given(st.randoms(use_true_random=False))
def test_lists_of_a_draft_and_of_mentions_never_get_into_the_answer_silently(rng: Random) -> None:
    text, answer = drawn(rng)

    assert_no_silent_mixture(analyze(text), answer)


def groups_of(labels: list[str]) -> list[tuple[int, ...]]:
    """Every cut into groups that leaves as few lists over as possible, as the indices at which its groups begin."""
    starts = [at for at in range(len(labels) - 2) if set(labels[at : at + 3]) == set(LABELS)]
    for count in range(len(labels) // 3, 0, -1):
        found = [cut for cut in combinations(starts, count) if all(b - a >= 3 for a, b in pairwise(cut))]
        if found:
            return found
    return []


@given(st.lists(st.sampled_from(LABELS), max_size=11))
def test_the_answer_is_the_last_group_of_a_cut_that_leaves_as_few_lists_over_as_possible(labels: list[str]) -> None:
    text = "\n".join(f"{label} = []" for label in labels)
    lasts = {cut[-1] for cut in groups_of(labels)}
    in_order = {at for at in lasts if tuple(labels[at : at + 3]) == LABELS}

    answer = choose(scanner().scan(text).parts).answer

    if not lasts:
        assert answer is None
    else:
        assert answer is not None
        starts = {label: listed.start for label, listed in answer.items()}
        order = sorted(starts, key=lambda label: starts[label])
        at = text.count("\n", 0, min(starts.values()))
        assert at in (in_order or lasts)
        assert order == labels[at : at + 3]
        assert all(label_of(listed) == label for label, listed in answer.items())


def codes(text: str) -> list[tuple[str, str]]:
    return [(found.severity, found.code) for found in analyze(text).diagnostics]


def test_a_draft_and_an_answer_in_another_order_are_not_mixed() -> None:
    text = (
        '{"access_list": [[], []], "model_id": [5, 5], "subtasks": ["draft a", "draft b"]}\nBetter:\n'
        '{"access_list": [[], [0]], "model_id": [0, 1], "subtasks": ["final a", "final b"]}'
    )

    workflow = analyze(text).raise_for_errors().workflow

    assert workflow is not None
    assert workflow.to_lists() == {
        "model_id": [0, 1],
        "subtasks": ["final a", "final b"],
        "access_list": [[], [0]],
    }
    assert codes(text) == []


def test_a_list_after_the_answer_with_another_value_is_a_warning() -> None:
    assert codes(PLAIN_LISTS + "As said, model_id = [0, 1].") == []
    assert codes(PLAIN_LISTS + "As said, access_list = [(), (0,)].") == []
    assert codes(PLAIN_LISTS + "Or model_id = [0, 2].") == [("warning", "list-differs")]
    assert codes(PLAIN_LISTS + "Or model_id = [a, b].") == [("warning", "list-differs")]


@pytest.mark.parametrize(
    ("last", "found"),
    [("[[]]", []), ("[[],]", []), ('["all"]', [("error", "lists-ambiguous")]), ("[x]", [("error", "lists-ambiguous")])],
)
def test_lists_that_can_be_grouped_in_two_ways_are_rejected_if_their_values_differ(
    last: str, found: list[tuple[str, str]]
) -> None:
    text = f'access_list = [[]]\nsubtasks = ["Solve it."]\nmodel_id = [0]\naccess_list = {last}'

    assert codes(text) == found
    assert [(each.severity, each.code) for each in analyze(text, profile="lenient").diagnostics] == found


ALL_THREE = "the lists `model_id`, `subtasks`, `access_list` are"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"<think>\n{PLAIN_LISTS}", f"{ALL_THREE} part of the reasoning, because this `<think>` is not closed"),
        (
            f"<think>{PLAIN_LISTS}</think>Done.",
            f"{ALL_THREE} only in the reasoning before this `</think>`, where lists do not count",
        ),
        (
            PLAIN_LISTS.replace("model_id", "因此model_id"),
            "`因此model_id` is one name, and not the label `model_id`",
        ),
        (
            PLAIN_LISTS.replace("model_id", "my_model_id"),
            "`my_model_id` is one name, and not the label `model_id`",
        ),
        (
            PLAIN_LISTS.replace("subtasks", "subtasks = ['x']\nsubtasks"),
            "the three lists are not next to each other: `subtasks` is written more than once",
        ),
        (PLAIN_LISTS.replace("model_id = ", "model_id == "), "`model_id` is not followed by its list"),
        ('subtasks = ["Say model_id = x."]\naccess_list = [[]]', "the list `model_id` is missing"),
    ],
)
def test_the_message_says_why_there_is_no_answer(text: str, message: str) -> None:
    assert [found.message for found in analyze(text).diagnostics] == [message]
