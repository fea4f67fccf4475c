"""The corpus: completions with the verdict that they must get, each in both profiles.

`tests/corpus/completions.jsonl` and `more_completions.jsonl` hold a case a line: `text` (or `text_parts`: [[piece,
times], ...]), `pool_size` (or the workers' `names`), `max_steps`, and what is expected. Tier "core": both profiles give
`expected` (the lenient one `expected_lenient`, where there is one). Tier "lenient": strict rejects the text, lenient
gives `expected`, with warnings of exactly the codes in `repairs`, where they are listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wfdsl import Pool, WorkerEntry, analyze
from wfdsl.api import Checked
from wfdsl.language.codes import CODES

CORPUS = Path(__file__).parent.parent / "corpus"
REPAIRS = {name for name, code in CODES.items() if code.kind == "repair"}
PROFILES = ("strict", "lenient")
UNREADABLE = {"not-a-literal", "list-continued", "nested-too-deep"}
NUMBERS = {"number-as-string", "number-as-float", "number-too-large"}
CODES_OF = {
    "missing_list": {"list-missing", "list-split"},
    "ambiguous": {"lists-ambiguous"},
    "not_a_list": {"list-missing", "not-a-literal"},
    "not_a_literal": UNREADABLE,
    "changed": {"list-changed"},
    "truncated": {"list-truncated"},
    "unequal_lengths": {"lengths-differ"},
    "bad_model_id": {"worker-type", *NUMBERS, *UNREADABLE},
    "model_id_out_of_range": {"worker-not-in-pool"},
    "bad_subtask": {"subtask-type", *UNREADABLE},
    "empty_subtask": {"subtask-blank"},
    "bad_escape": {"bad-escape"},
    "bad_access_entry": {
        "access-type",
        "access-none",
        "access-bare-index",
        "access-all-and-more",
        "tuple-for-list",
        *NUMBERS,
        *UNREADABLE,
    },
    "bad_access_ref": {"access-not-earlier", "access-negative"},
    "too_many_steps": {"too-many-steps"},
    "text_too_long": {"text-too-long"},
}
"""The codes that fit each class of error."""
_TWO_STEPS = 'model_id = [0, 1]\nsubtasks = ["Plan it.", "Do it."]\n'
TYPOGRAPHIC = str.maketrans("“”‘’", "\"\"''")


def cases() -> Iterator[dict[str, Any]]:
    for file in ("completions.jsonl", "more_completions.jsonl"):
        with (CORPUS / file).open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def text_of(case: dict[str, Any]) -> str:
    text = case.get("text")
    return text if text is not None else "".join(piece * times for piece, times in case["text_parts"])


def expected_of(case: dict[str, Any], profile: str) -> dict[str, Any] | None:
    """What is expected in a profile; None if the text is to be rejected because it needs a repair."""
    if case["tier"] == "lenient" and profile == "strict":
        return None
    expected = case.get("expected_lenient", case["expected"]) if profile == "lenient" else case["expected"]
    assert isinstance(expected, dict)
    return expected


def pool_of(case: dict[str, Any]) -> Any:
    """The number of workers, or a pool of workers with names."""
    if "names" not in case:
        return case["pool_size"]
    return Pool([WorkerEntry(name=name, provider="scripted") for name in case["names"]])


def compared(subtasks: list[str], how: str) -> list[str]:
    if how == "collapse_ws":
        return [re.sub(r"\s+", " ", subtask).strip() for subtask in subtasks]
    if how == "normalize_quotes":
        return [subtask.translate(TYPOGRAPHIC) for subtask in subtasks]
    assert how == "exact"
    return subtasks


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case["id"])
def test_a_completion_gets_its_verdict(case: dict[str, Any]) -> None:
    for profile in PROFILES:
        assert_verdict(case, profile)


def assert_verdict(case: dict[str, Any], profile: Any) -> None:
    expected = expected_of(case, profile)
    limits = {"pool": pool_of(case), "max_steps": case["max_steps"]}

    text = text_of(case)
    first = analyze(text, profile=profile, **limits)
    is_long = len(text) > 100_000  # seconds
    later = first if is_long else analyze(text, profile=profile, recursion=True, **limits)

    if expected is None:
        assert_rejected(first, REPAIRS)
        assert_rejected(later, REPAIRS)
    elif expected["verdict"] == "accept":
        assert_accepted(first, expected)
        assert later.workflow == first.workflow
    elif expected["verdict"] == "passthrough":
        assert later.ok
        assert later.passthrough
        assert later.workflow is None
        assert_rejected(first, {"empty-workflow"})
        assert first.passthrough
    else:
        fitting = {code for reason in (expected["reason"], *expected["reason_alt"]) for code in CODES_OF[reason]}
        assert_rejected(first, fitting)
        assert_rejected(later, fitting)


def assert_rejected(checked: Checked, fitting: set[str]) -> None:
    codes = {found.code for found in checked.diagnostics if found.is_error}
    assert checked.workflow is None
    assert not checked.ok
    assert codes & fitting, f"{codes} hold none of {fitting}"


def assert_accepted(checked: Checked, expected: dict[str, Any]) -> None:
    workflow = checked.raise_for_errors().workflow
    assert workflow is not None
    lists = workflow.to_lists()
    how = expected["compare"]
    assert lists["model_id"] == expected["model_id"]
    assert compared(lists["subtasks"], how) == compared(expected["subtasks"], how)
    assert lists["access_list"] == expected["access_list"]
    assert [list(workflow.sees(step)) for step in range(len(workflow))] == expected["sees"]
    if "repairs" in expected:
        assert {found.code for found in checked.diagnostics} & REPAIRS == set(expected["repairs"])


def test_the_corpus_names_each_case_once() -> None:
    names = [case["id"] for case in cases()]

    assert len(names) == len(set(names))


def test_the_corpus_shows_every_repair() -> None:
    shown = {code for case in cases() for code in case["expected"].get("repairs", ())}

    assert shown == REPAIRS


@pytest.mark.parametrize("entry", ['"first"', '["x"]', "[1.5]", "[[]]", "[1111111111111111111]", "1111111111111111111"])
@pytest.mark.parametrize("profile", ["strict", "lenient"])
def test_what_cannot_be_read_of_an_access_entry_makes_no_step_dead(entry: str, profile: str) -> None:
    found = analyze(_TWO_STEPS + f"access_list = [[], {entry}]", profile=profile).diagnostics

    assert "dead-step" not in {each.code for each in found}
    assert any(each.is_error for each in found)


def test_a_number_with_too_many_digits_breaks_no_other_rule() -> None:
    text = f"model_id = [{'9' * 20}, 1]\nsubtasks = ['a', 'b']\naccess_list = [[{'9' * 20}], [0]]"

    assert [found.code for found in analyze(text, pool=2).diagnostics] == ["number-too-large"] * 2
