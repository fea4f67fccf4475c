"""Options are written once: defaults, limits, tables and errors all follow from the fields of a class."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfdsl.config import check_options, from_table, option, options_of, to_table
from wfdsl.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    ratio: float = option(0.5, help="share", above=0, maximum=1)

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    limit: int | None = option(None, help="calls in flight", flag="--limit", metavar="N", minimum=1)
    mode: Literal["auto", "on"] = option("auto", help="when")
    name: str = option("", help="name")
    key: str | None = option(None, help="variable", pattern="[A-Z]+")
    parts: tuple[int, ...] = option((), help="sizes", minimum=0)
    on: bool = option(False, help="whether")
    inner: Inner = option(Inner, help="more")

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    tasks: str = option(help="what is trained on", minimum=1)

    def __post_init__(self) -> None:
        check_options(self)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "limit must be at least 1 (got 0)"),
        ({"limit": True}, "limit must be a whole number (got True)"),
        ({"limit": 2.0}, "limit must be a whole number (got 2.0)"),
        ({"limit": 10**30}, f"limit must be a finite number (got {10**30})"),
        ({"mode": "off"}, 'mode must be one of "auto", "on" (got \'off\')'),
        ({"mode": None}, "mode must be given (got None)"),
        ({"name": 3}, "name must be a text (got 3)"),
        ({"key": "secret"}, "key must match [A-Z]+"),
        ({"parts": [1]}, "parts must be a tuple (got [1])"),
        ({"parts": (1, -1)}, "parts must be at least 0 (got -1)"),
        ({"on": 1}, "on must be true or false (got 1)"),
        ({"inner": 1}, "inner must be a Inner (got 1)"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_limit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        Sample(**options)

    assert str(error.value) == message


@pytest.mark.parametrize("ratio", [0, 1.5, float("nan"), float("inf"), "1"])
def test_numbers_have_limits_and_are_finite(ratio: Any) -> None:
    with pytest.raises(UsageError, match="ratio must be"):
        Inner(ratio=ratio)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limt = 3", 'f: run has no key "limt". Did you mean limit?'),
        ("limit = 0", "f: run.limit must be at least 1 (got 0)"),
        ("inner = 3", "f: run.inner must be a table (got 3)"),
        ("[inner]\nratio = 2", "f: run.inner.ratio must be at most 1 (got 2)"),
        ("[inner]\nratoi = 2", 'f: run.inner has no key "ratoi". Did you mean ratio?'),
        ('parts = "a"', "f: run.parts must be a whole number (got 'a')"),
    ],
)
def test_errors_of_a_table_say_where(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        from_table(Sample, tomllib.loads(text), "f: run")

    assert str(error.value) == message


def test_an_option_without_a_default_has_to_be_given() -> None:
    with pytest.raises(UsageError, match=r"train\.tasks must be given"):
        from_table(Needed, {}, "train")


def test_keys_of_others_are_left_to_them() -> None:
    assert from_table(Needed, {"tasks": "x", "tiny": {}}, "train", known=["tiny"]) == Needed(tasks="x")


@given(
    st.builds(
        Sample,
        limit=st.none() | st.integers(1, 9),
        mode=st.sampled_from(["auto", "on"]),
        name=st.text(max_size=5),
        parts=st.lists(st.integers(0, 9), max_size=3).map(tuple),
        on=st.booleans(),
        inner=st.builds(Inner, ratio=st.floats(0.1, 1)),
    )
)
def test_a_table_gives_the_configuration_back(config: Sample) -> None:
    assert from_table(Sample, to_table(config), "f") == config


def test_options_know_their_types_and_defaults() -> None:
    options = {field.name: field for field in options_of(Sample)}

    assert options["limit"].type is int
    assert options["limit"].optional
    assert options["limit"].option.flag == "--limit"
    assert options["mode"].choices == ("auto", "on")
    assert options["parts"].item is int
    assert options["inner"].is_table
    assert options["inner"].default == Inner()
