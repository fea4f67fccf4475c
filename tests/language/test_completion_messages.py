"""What messages about completions say is wrong, where, and what to write instead."""

from __future__ import annotations

import pytest

from wfdsl import analyze

WORKERS = "model_id = [0, 1]\n"
SUBTASKS = 'subtasks = ["Plan it.", "Do it."]\n'
ACCESS = "access_list = [[], [0]]\n"


@pytest.mark.parametrize(
    ("text", "at", "label"),
    [
        ("model_id = [0, 1\n" + SUBTASKS + ACCESS, "subtasks", "model_id"),
        (WORKERS + SUBTASKS.replace("]", "") + ACCESS, "access_list", "subtasks"),
        ("**model_id** = [0, 1\n**subtasks** = ['x']\n" + ACCESS, "subtasks", "model_id"),
        ('{"model_id": [0], "subtasks": ["a", "b", "access_list": [[]]}', "access_list", "subtasks"),
        (WORKERS + '"access_list": [[], [0], "subtasks": ["a", "b"]', "subtasks", "access_list"),
    ],
)
def test_a_list_that_is_not_closed_before_the_next_label_is_said_to_be_so(text: str, at: str, label: str) -> None:
    (found,) = analyze(text).diagnostics

    assert found.message == f"the list of `{label}` is not closed"
    assert text[found.span.start : found.span.end] == at
    assert found.help == f"write `]` at the end of the list of `{label}`"


def test_prose_after_a_list_that_is_not_closed_is_no_item() -> None:
    (found,) = analyze(WORKERS + SUBTASKS + "access_list = [[], [0]\n\nThat is all.").diagnostics

    assert found.message == "the list of `access_list` is not a literal: `That` is not an item"
    assert found.help == "write `]` at the end of the list"


def test_strings_without_a_comma_between_them_are_shown_where_the_lengths_differ() -> None:
    text = WORKERS + 'subtasks = ["Plan it." "Do it."]\n' + ACCESS

    (found,) = analyze(text).diagnostics

    assert found.code == "lengths-differ"
    assert text[found.span.start : found.span.end] == '"Plan it." "Do it."'
    assert found.help == "put a comma between the strings"


@pytest.mark.parametrize("entry", ['"first"', '["x"]', "[1.5]", "[[]]", "[1111111111111111111]", "1111111111111111111"])
@pytest.mark.parametrize("profile", ["strict", "lenient"])
def test_what_cannot_be_read_of_an_access_entry_makes_no_step_dead(entry: str, profile: str) -> None:
    found = analyze(WORKERS + SUBTASKS + f"access_list = [[], {entry}]", profile=profile).diagnostics  # type: ignore[arg-type]

    assert "dead-step" not in {each.code for each in found}
    assert any(each.is_error for each in found)


def test_a_number_with_too_many_digits_breaks_no_other_rule() -> None:
    text = f"model_id = [{'9' * 20}, 1]\n{SUBTASKS}access_list = [[{'9' * 20}], [0]]"

    assert [found.code for found in analyze(text, pool=2).diagnostics] == ["number-too-large"] * 2
