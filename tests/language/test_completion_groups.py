"""Which lists of a completion are the answer, where it holds a draft, mentions of single lists, and the answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, pairwise, permutations, product

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


MENTION, DRAFT, FINAL = range(3)
Sequence = list[tuple[str, int]]


def sequences() -> Iterator[Sequence]:
    """All of up to eight lists: an answer, perhaps a draft before it, and mentions anywhere outside of both."""
    for answer in permutations(LABELS):
        final = [(label, FINAL) for label in answer]
        for before, after in ((b, a) for b in range(6) for a in range(6 - b)):
            for labels in product(LABELS, repeat=before + after):
                mentions = [(label, MENTION) for label in labels]
                yield [*mentions[:before], *final, *mentions[before:]]
        for order in permutations(LABELS):
            draft = [(label, DRAFT) for label in order]
            for count in range(3):
                for labels, at in product(
                    product(LABELS, repeat=count), combinations_with_replacement(range(3), count)
                ):
                    slots: list[Sequence] = [[], [], []]
                    for label, slot in zip(labels, at, strict=True):
                        slots[slot].append((label, MENTION))
                    yield [*slots[0], *draft, *slots[1], *final, *slots[2]]


@pytest.mark.parametrize(("line", "most"), [("{} = {}", 6), ("So {} = {} it is.", 8)])
def test_no_list_of_a_draft_or_a_mention_gets_into_the_answer_silently(line: str, most: int) -> None:
    answer = Workflow.from_lists([2, 2], ["e", "f"], [[], "all"])
    for lists in filter(lambda lists: len(lists) <= most, sequences()):
        checked = analyze("\n".join(line.format(label, VALUES[label][kind]) for label, kind in lists))

        told = any(found.severity != "note" for found in checked.diagnostics)
        later_group = {label for label, _ in lists[-3:]} == set(LABELS) and codes_of(checked) == ["lists-replaced"]
        assert told or later_group or checked.workflow == answer, lists


def codes_of(checked: Checked) -> list[str]:
    return [found.code for found in checked.diagnostics]


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

    answer = choose(text, scanner().scan(text).parts).answer

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
    assert workflow.to_lists() == {"model_id": [0, 1], "subtasks": ["final a", "final b"], "access_list": [[], [0]]}
    assert codes(text) == [("note", "lists-replaced")]


@pytest.mark.parametrize(
    "later",
    [
        "Do not write:\n{}",
        "".join(f"# {line}\n" for line in ("model_id = [2, 2]", "subtasks = ['e', 'f']", "access_list = [[], []]")),
        "~~model_id = [2, 2]\nsubtasks = ['e', 'f']\naccess_list = [[], []]~~",
        "Better:\n{}",
    ],
)
def test_three_later_lists_replace_the_answer_with_a_diagnostic(later: str) -> None:
    checked = analyze(PLAIN_LISTS + later.format(PLAIN_LISTS.replace("[0, 1]", "[2, 2]")))

    assert checked.workflow is not None
    assert [step.worker for step in checked.workflow] == [2, 2]
    assert {"lists-replaced", "list-differs"} & set(codes_of(checked))


def test_three_lists_between_prose_are_one_group_whatever_is_next_to_them() -> None:
    text = f"Maybe subtasks = ['x'] and access_list = [[]]? I take:\n{PLAIN_LISTS}So model_id = [5] was wrong."

    assert analyze(text).workflow == analyze(PLAIN_LISTS).workflow
    assert codes(text) == [("warning", "list-differs")]


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
