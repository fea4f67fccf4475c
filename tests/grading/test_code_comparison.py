"""Which outputs and results are the expected ones: worked examples."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wfdsl.grading.code import output_difference, read_result, same_result, shown
from wfdsl.grading.sandbox.inside.values import pack, to_json


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("1\n", "1"), ("  1  \n2\t\n\n", "1\n2"), ("1.0 2", "1 2.00"), ("1e3", "1000"), ("-0", "0"), ("", "\n"),
        ("a b\r\nc", "a b\nc"), ("0.1", "0.10"), ("0.333333", "0.333333333333"),
    ],
)  # fmt: skip
def test_outputs_that_are_equal(output: str, expected: str) -> None:
    assert output_difference(output, expected) == ""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("1", "2"), ("1 2", "12"), ("a\nb", "a\nc"), ("a", "a\nb"), ("a\nb", "a"), ("YES", "Yes"), ("1.0000001", "1"),
        ("0.333334", "0.33333"), ("0.333335", "0.333333"), ("nan", "NaN"), ("inf", "1e999"), ("a  b", "a b c"),
        ("1.000000e9999999", "1.000000"),
    ],
)  # fmt: skip
def test_outputs_that_differ(output: str, expected: str) -> None:
    assert output_difference(output, expected)


def received(value: object) -> Any:
    """A result as it comes from a program."""
    return read_result(json.loads(to_json(pack(value, lambda _: []))))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (1, 1), (1.0, 1), (0.1 + 0.2, 0.3), ((1, [2, (3,)]), [1, [2, [3]]]), (True, True), (None, None),
        ({2: "a", None: 2, True: 3}, {"2": "a", "null": 2, "true": 3}), (float("nan"), float("nan")),
        (10**400, 10**400),
    ],
)  # fmt: skip
def test_results_that_are_equal(found: Any, expected: Any) -> None:
    assert same_result(received(found), expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (1, 2), (10**17, 10**17 + 1), (10**400, 1.5), (1.0001, 1.0), ("1", 1), (True, 1), (1, True), ([1], [1, 2]),
        ([1, 2], [2, 1]), ({"a": 1}, {"b": 1}), (float("nan"), 1.0), (None, 0),
        ("", None), ({10**5000: 1}, {"1": 1}),
    ],
)  # fmt: skip
def test_results_that_differ(found: Any, expected: Any) -> None:
    assert not same_result(received(found), expected)


def test_a_value_that_is_long_or_cannot_be_written_is_cut_in_a_reason() -> None:
    assert shown("x" * 1000) == "'" + "x" * 119 + "... (1,002 characters)"
    assert len(shown(10**5000)) < 100
