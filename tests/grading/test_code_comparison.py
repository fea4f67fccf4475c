"""Which outputs and results are the expected ones: worked examples."""

from __future__ import annotations

from typing import Any

import pytest

from wfdsl.grading.code import output_difference, same_result, shown


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("1\n", "1"),
        ("  1  \n2\t\n\n", "1\n2"),
        ("1.0 2", "1 2.00"),
        ("1e3", "1000"),
        ("-0", "0"),
        ("a b\r\nc", "a b\nc"),
        ("", "\n"),
        ("0.1", "0.10"),
        ("0.333333", "0.333333333333"),
    ],
)
def test_outputs_that_are_equal(output: str, expected: str) -> None:
    assert output_difference(output, expected) == ""


@pytest.mark.parametrize(
    ("output", "expected", "said"),
    [
        ("1", "2", "line 1 of the output is '1', not '2'"),
        ("1 2", "12", "line 1 of the output is '1 2', not '12'"),
        ("a\nb", "a\nc", "line 2 of the output is 'b', not 'c'"),
        ("a", "a\nb", "the output ends after 1 of 2 lines"),
        ("a\nb", "a", "the output has 2 lines, not 1"),
        ("YES", "Yes", "line 1 of the output is 'YES', not 'Yes'"),
        ("1.0000001", "1", "line 1 of the output is '1.0000001', not '1'"),
        ("0.333334", "0.33333", "line 1 of the output is '0.333334', not '0.33333'"),
        ("0.333335", "0.333333", "line 1 of the output is '0.333335', not '0.333333'"),
        ("nan", "NaN", "line 1 of the output is 'nan', not 'NaN'"),
        ("inf", "1e999", "line 1 of the output is 'inf', not '1e999'"),
        ("a  b", "a b c", "line 1 of the output is 'a  b', not 'a b c'"),
    ],
)
def test_outputs_that_differ(output: str, expected: str, said: str) -> None:
    assert output_difference(output, expected) == said


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (1, 1),
        (1.0, 1),
        (0.1 + 0.2, 0.3),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({2: "a", None: 2, True: 3}, {"2": "a", "null": 2, "true": 3}),
        (True, True),
        (float("nan"), float("nan")),
        (None, None),
        (10**400, 10**400),
    ],
)
def test_results_that_are_equal(found: Any, expected: Any) -> None:
    assert same_result(found, expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (1, 2),
        (10**17, 10**17 + 1),
        (10**400, 1.5),
        (1.0001, 1.0),
        ("1", 1),
        (True, 1),
        (1, True),
        ([1], [1, 2]),
        ([1, 2], [2, 1]),
        ({1}, [1]),
        ({1: 2, "1": 2}, {"1": 2}),
        ({"a": 1}, {"b": 1}),
        (float("nan"), 1.0),
        (None, 0),
        ("", None),
    ],
)
def test_results_that_differ(found: Any, expected: Any) -> None:
    assert not same_result(found, expected)


def test_a_long_value_is_cut_in_a_reason() -> None:
    assert shown("x" * 1000) == "'" + "x" * 119 + "... (1,002 characters)"
