"""`ast.literal_eval` as an oracle for literals: what both read, they read alike.

The oracle is asked about the list as it is written. Where the language goes beyond Python or stops short of it, the
test says so: JSON's `\\/`, surrogate pairs and lone surrogates, and code points that Python source cannot hold.
"""

from __future__ import annotations

import ast
import io
import json
import token as token_types
import tokenize
import warnings
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wfdsl import analyze
from wfdsl.language.literals import string_value
from wfdsl.testing.completion_writer import spelled
from wfdsl.testing.generators import Choices
from wfdsl.testing.strategies import random_sources, subtask_texts

LABELS = ("model_id", "subtasks", "access_list")


def python_value(literal: str) -> Any:
    """What Python reads, or None if it reads nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown escapes
        try:
            return ast.literal_eval(literal)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None


def our_value(label: str, literal: str, *, profile: str = "strict") -> list[Any] | None:
    """The column that a list is read as; None if the completion is rejected. The other two lists fit it."""
    python = python_value(literal)
    count = len(python) if isinstance(python, list) else 1
    columns = {"model_id": str([0] * count), "subtasks": str(["x"] * count), "access_list": str([[]] * count)}
    columns[label] = literal
    text = "\n".join(f"{name} = {columns[name]}" for name in LABELS)
    workflow = analyze(text, max_steps=None, profile=profile).workflow
    return workflow.to_lists()[label] if workflow else None


def python_access(entry: Any) -> Any:
    """An access entry that Python has read, as a workflow holds it."""
    if isinstance(entry, str):
        return "all" if entry.lower() == "all" else None
    if len(entry) == 1 and isinstance(entry[0], str):
        return "all" if entry[0].lower() == "all" else None
    return sorted(set(entry))


# ---- random spellings by Python's own printers, and by hand


SPACE = st.sampled_from(["", " ", "\n", "\t", " # it's [a] 'comment'\n", "\\\n", "\r\n"])
FRAGMENTS = st.sampled_from((
    "a", "\\n", "\\\\", "\\'", '\\"', "\\x41", "\\u00e9", "\\U0001F600", "\\101", "\\7", "\\N{BULLET}", "\\d", "\\\n",
    "'", '"', "\n", "\r", "\\", "#", "é", "\\x4", "\\u12", "\\N{NO SUCH}", "\\N", "{", "\\0", "\\400", "\\8", "\\/",
    "\\ud83d\\ude00", "\\ud800", "\\U00110000", "'''", '""', "\\N{LATIN SMALL LETTER A WITH MACRON AND GRAVE}",
))  # fmt: skip
QUOTES = st.sampled_from(['"', "'", '"""', "'''"])
PREFIXES = st.sampled_from(["", "", "r", "R", "u", "U", "b", "f", "ur", "rb", "br"])


@st.composite
def string_tokens(draw: st.DrawFn) -> str:
    """Something that looks like a string literal; most are."""
    quote = draw(QUOTES)
    body = "".join(draw(st.lists(FRAGMENTS, max_size=5)))
    return draw(PREFIXES) + quote + body + quote


@st.composite
def string_lists(draw: st.DrawFn) -> str:
    items = []
    for _ in range(draw(st.integers(0, 3))):
        pieces = draw(st.lists(string_tokens(), min_size=1, max_size=3))
        item = (draw(SPACE) or " ").join(pieces)
        items.append(f"({draw(SPACE)}{item}{draw(SPACE)})" if draw(st.integers(0, 3)) == 3 else item)
    return draw(bracketed(items))


@st.composite
def bracketed(draw: st.DrawFn, items: list[str]) -> str:
    text = ",".join(draw(SPACE) + item + draw(SPACE) for item in items)
    comma = "," if draw(st.integers(0, 3)) == 3 else ""
    return f"[{draw(SPACE)}{text}{comma}{draw(SPACE)}]"


INTEGERS = st.sampled_from(
    ["0", "1", "2", "12", str(10**17 - 1), "-1", "-0", "007", "00", "1_0", "0x1", "1.0", "1e0", "1j", "+1", "--1"]
)
INDICES = st.one_of(st.integers(0, 4).map(str), INTEGERS)


@st.composite
def integer_lists(draw: st.DrawFn) -> str:
    return draw(bracketed(draw(st.lists(INDICES, max_size=4))))


@st.composite
def access_lists(draw: st.DrawFn) -> str:
    entries = [
        st.sampled_from(['"all"', "'ALL'", '["all"]', "['All',]", "[]", '"no"', "()", "None", "0"]),
        integer_lists(),
    ]
    return draw(bracketed(draw(st.lists(st.one_of(*entries), max_size=4))))


def first_list(text: str) -> Any:
    """What Python reads of the shortest beginning of a text that is a list: what follows it is prose."""
    ends = [at + 1 for at, char in enumerate(text) if char == "]"]
    return next(value for end in ends if (value := python_value(text[:end])) is not None)


def is_one_token(literal: str) -> bool:
    tokens = tokenize.generate_tokens(io.StringIO(literal, newline="").readline)
    return [token.type for token in tokens if token.type not in {token_types.NEWLINE, token_types.ENDMARKER}] == [
        token_types.STRING
    ]


def has_surrogate(value: Any) -> bool:
    return any("\ud800" <= char <= "\udfff" for item in value if isinstance(item, str) for char in item)


# ---- what Python reads, we read


@given(st.lists(subtask_texts(), min_size=1, max_size=4), random_sources())
def test_strings_that_the_strategies_spell_are_read_by_python_too(values: list[str], chooser: Random) -> None:
    choices = Choices(chooser)
    literal = "[" + ", ".join(spelled(choices, value) for value in values) + "]"
    python = python_value(literal)
    assume(python is not None)  # Python source holds no NUL

    assert [item.encode("utf-16", "surrogatepass").decode("utf-16") for item in python] == values
    assert our_value("subtasks", literal) == values


@given(string_lists())
def test_a_list_of_strings_is_read_exactly_as_python_reads_it(literal: str) -> None:
    ours, python = our_value("subtasks", literal), python_value(literal)

    valid = isinstance(python, list) and python and all(isinstance(item, str) and item.strip() for item in python)
    if valid and not has_surrogate(python):
        assert ours == python
    elif valid:
        assert ours is None or ours == [item.encode("utf-16", "surrogatepass").decode("utf-16") for item in python]
    else:
        assert ours is None


@given(integer_lists())
def test_a_list_of_integers_is_read_exactly_as_python_reads_it(literal: str) -> None:
    ours, python = our_value("model_id", literal), python_value(literal)

    plain = not any(mark in literal for mark in ("1_0", "0x1", "+1", "--1", "00"))  # Python's other notations
    whole = isinstance(python, list) and python and all(type(item) is int and item >= 0 for item in python)
    assert ours == (python if whole and plain else None)


@given(access_lists())
def test_access_entries_are_read_exactly_as_python_reads_them(literal: str) -> None:
    ours, python = our_value("access_list", literal), python_value(literal)

    if ours is not None:
        assert ours == [python_access(entry) for entry in python]
    elif isinstance(python, list) and python and all(_is_access(step, entry) for step, entry in enumerate(python)):
        assert any(mark in literal for mark in ("1_0", "0x1", "+1", "--1", "00"))


def _is_access(step: int, entry: Any) -> bool:
    if isinstance(entry, str):
        return entry.lower() == "all"
    if not isinstance(entry, list):
        return False
    if len(entry) == 1 and isinstance(entry[0], str):
        return entry[0].lower() == "all"
    return all(type(index) is int and 0 <= index < step for index in entry)


@given(st.sampled_from(LABELS), st.text("[](){},'\"0123456789-+.abNone#\\\n \t*_rufxe\u00e9", max_size=24))
def test_what_is_accepted_of_any_list_is_what_python_reads(label: str, inside: str) -> None:
    literal = f"[{inside}]"

    ours = our_value(label, literal)

    if ours is not None:
        python = first_list(literal)
        assert ours == (python if label != "access_list" else [python_access(entry) for entry in python])


# ---- single strings


@given(string_tokens())
def test_a_string_token_has_the_value_that_python_gives_it(literal: str) -> None:
    python = python_value(literal)
    assume(isinstance(python, str) and literal[0] != "f" and is_one_token(literal))

    assert string_value(literal) == (python, [])


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r'"\/"', "/"),
        (r'"a\/b\/c"', "a/b/c"),
        (r'"\\/"', "\\/"),
        (r'"\\\/"', "\\/"),
    ],
)
def test_a_json_string_reads_an_escaped_slash_as_json_does(literal: str, value: str) -> None:
    assert string_value(literal, json=True) == (value, [])
    assert json.loads(literal) == value
    assert string_value(literal, json=False)[0] == python_value(literal)


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip))
def test_json_lists_are_read_as_json_reads_them(value: str) -> None:
    for ensure_ascii in (True, False):
        text = json.dumps(
            {"model_id": [0], "subtasks": [value], "access_list": ["all"]}, ensure_ascii=ensure_ascii
        ).replace("/", "\\/")

        assert analyze(text).raise_for_errors().workflow == analyze(json.dumps(json.loads(text))).workflow
        assert json.loads(text)["subtasks"] == [value]
