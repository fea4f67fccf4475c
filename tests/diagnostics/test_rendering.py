"""How a diagnostic is drawn: the caret stands under what it is about, whatever the line holds."""

from __future__ import annotations

import unicodedata

import pytest
from inline_snapshot import snapshot

import wfdsl
from wfdsl.cli.inputs import draw
from wfdsl.language.diagnostics import Diagnostic, as_json, as_text, in_order, summary
from wfdsl.language.source import Source, Span


def drawn(text: str, start: int, end: int, *, label: str = "here") -> str:
    return as_text(
        Diagnostic("some-code", "error", "a message", Span(start, end), label, "a cure"), Source(text, "name")
    )


def excerpt(text: str, start: int, end: int) -> str:
    """The source line and the caret line, without their gutters."""
    lines = drawn(text, start, end, label="").splitlines()[3:5]
    return "\n".join(line.partition(" | ")[2] for line in lines)


def test_the_gutter_is_as_wide_as_the_line_number() -> None:
    assert drawn("\n" * 99 + "abc", 100, 101) == snapshot(
        """\
error[some-code]: a message
    --> name:100:2
    |
100 | abc
    |  ^ here
    = help: a cure\
"""
    )


@pytest.mark.parametrize(
    ("text", "start", "end", "expected"),
    [
        ("plain text", 6, 10, "plain text\n      ^^^^"),
        ("\u4f60\u597d world", 3, 8, "\u4f60\u597d world\n     ^^^^^"),
        ("a \u4f60\u597d b", 2, 4, "a \u4f60\u597d b\n  ^^^^"),
        ("\uff1d\uff41 = x", 5, 6, "\uff1d\uff41 = x\n       ^"),
        ("\ttab\there", 5, 9, "    tab    here\n           ^^^^"),
        ("a\tb", 1, 2, "a    b\n ^^^^"),
        ("e\u0301te\u0301 x", 6, 7, "e\u0301te\u0301 x\n    ^"),
        ("\u0e17\u0e35\u0e48 x", 4, 5, "\u0e17\u0e35\u0e48 x\n  ^"),
        ("\u2764\ufe0f x", 3, 4, "\u2764\ufe0f x\n  ^"),
        ("\U0001f600\U0001f600 x", 3, 4, "\U0001f600\U0001f600 x\n     ^"),
        ("\u05e9\u05dc\u05d5\u05dd x", 5, 6, "\u05e9\u05dc\u05d5\u05dd x\n     ^"),
        ("a\u202eb\u2066 x", 5, 6, "a\ufffdb\ufffd x\n     ^"),
        ("a\u200bb x", 4, 5, "a\ufffdb x\n    ^"),
        ("\x00\x1b[31m\x7f x", 8, 9, "\u2400\u241b[31m\u2421 x\n        ^"),
        ("a\x85b\u2028c x", 6, 7, "a\ufffdb\ufffdc x\n      ^"),
        ("a\x0cb", 2, 3, "a\u240cb\n  ^"),
        ("a\ud800b", 2, 3, "a\ufffdb\n  ^"),
        ("end", 3, 3, "end\n   ^"),
        ("end\n", 3, 4, "end\n   ^"),
        ("end\n", 4, 4, "\n^"),
        ("one\ntwo\nthree", 4, 13, "two\n^^^"),
        ("one\ntwo", 0, 7, "one\n^^^"),
        ("one\r\ntwo\r\n", 5, 8, "two\n^^^"),
        ("one\rtwo\rthree", 4, 7, "two\n^^^"),
        ("one\r\ntwo", 0, 8, "one\n^^^"),
        ("one\r\ntwo", 4, 5, "one\n   ^"),
        ("a  ", 1, 2, "a\n ^"),
        ("abc", 1, 1, "abc\n ^"),
    ],
)
def test_the_caret_stands_under_the_mark(text: str, start: int, end: int, expected: str) -> None:
    assert excerpt(text, start, end) == expected


def test_an_empty_text_has_a_place_and_no_excerpt() -> None:
    assert drawn("", 0, 0) == "error[some-code]: a message\n  --> name:1:1\n  = help: a cure"


def test_without_a_source_there_is_no_place_and_without_help_no_help_line() -> None:
    span = Span(0, 1)

    assert (
        as_text(Diagnostic("c", "note", "a message", span, "a label", "a cure"))
        == "note[c]: a message\n  = help: a cure"
    )
    assert (
        as_text(Diagnostic("c", "error", "m", span), Source("x", "n")) == "error[c]: m\n  --> n:1:1\n  |\n1 | x\n  | ^"
    )


@pytest.mark.parametrize(
    ("text", "start", "end", "expected"),
    [
        ("a" * 95 + "XXXXX", 95, 100, "a" * 95 + "XXXXX\n" + " " * 95 + "^^^^^"),
        ("X" + "b" * 200, 0, 1, "X" + "b" * 99 + "...\n^"),
        ("a" * 200 + "X", 200, 201, "..." + "a" * 50 + "X\n" + " " * 53 + "^"),
        ("a" * 200 + "X" + "b" * 200, 200, 201, "..." + "a" * 50 + "X" + "b" * 46 + "...\n" + " " * 53 + "^"),
        ("a" + "X" * 300, 1, 301, "a" + "X" * 50 + "...\n " + "^" * 53),
        ("\u4f60" * 200 + "X", 200, 201, "..." + "\u4f60" * 25 + "X\n" + " " * 53 + "^"),
    ],
)
def test_a_long_line_is_cut_to_what_stands_around_the_mark(text: str, start: int, end: int, expected: str) -> None:
    assert excerpt(text, start, end) == expected


@pytest.mark.parametrize("piece", ["a", "\u4f60", "\t", "e\u0301", "\U0001f600", "\x1b"])
@pytest.mark.parametrize("at", [0, 30, 60, 5_000, 9_999])
@pytest.mark.parametrize("width", [1, 40, 200])
def test_no_line_is_wider_than_a_bound_and_the_mark_is_always_shown(piece: str, at: int, width: int) -> None:
    text = piece * 10_000 + "Z"

    line, carets = excerpt(text, at * len(piece), (at + width) * len(piece)).split("\n")

    assert cells(line) <= 100 + 2 * len("...")
    assert "^" in carets
    assert len(carets) <= cells(line)


def cells(text: str) -> int:
    zero = ("Mn", "Me")
    return sum(
        0 if unicodedata.category(char) in zero else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text
    )


def test_drawing_looks_at_no_more_of_a_long_line_than_it_shows() -> None:
    class Watched(str):
        """A text that knows how much of it was copied."""

        __slots__ = ("copied",)

        def __getitem__(self, key: object) -> str:
            piece = super().__getitem__(key)  # type: ignore[index]
            self.copied = getattr(self, "copied", 0) + len(piece)
            return piece

    text = Watched("x" * 1_000_000)
    source = Source(text, "name")

    as_text(Diagnostic("some-code", "error", "a message", Span(500_000, 500_001)), source)

    assert text.copied < 1_000


def test_nothing_in_a_message_can_steer_a_terminal() -> None:
    found = Diagnostic("some-code", "error", "bad `\x1b[2J`\n", Span(0, 1), "\x07 label", "\u202e help\r")

    text = as_text(found, Source("x", "na\x1bme"))

    assert all(char == "\n" or char.isprintable() for char in text)
    assert text.splitlines()[0] == "error[some-code]: bad `\u241b[2J`\u240a"


def test_json_has_the_agreed_fields_in_code_points() -> None:
    text = "\U0001f600\r\n\u4f60\ta\u0301b"
    found = Diagnostic("some-code", "warning", "a message", Span(5, 8), "a label", "a cure")

    assert as_json(found, Source(text)) == {
        "code": "some-code",
        "severity": "warning",
        "message": "a message",
        "help": "a cure",
        "start": 5,
        "end": 8,
        "line": 2,
        "column": 3,
    }


def test_the_summary_counts_by_severity() -> None:
    def some(*severities: str) -> list[Diagnostic]:
        return [Diagnostic("c", severity, "m", Span(0, 0)) for severity in severities]  # type: ignore[arg-type]

    assert summary([]) == ""
    assert summary(some("error")) == "1 error"
    assert summary(some("note", "warning", "error", "error", "note")) == "2 errors, 1 warning, 2 notes"


def test_diagnostics_stand_in_the_order_of_the_text_and_errors_first() -> None:
    later = Diagnostic("a", "error", "m", Span(5, 6))
    note = Diagnostic("a", "note", "m", Span(1, 2))
    error = Diagnostic("z", "error", "m", Span(1, 9))

    assert in_order([later, note, error]) == (error, note, later)


@pytest.mark.parametrize(("severity", "colour"), [("error", 31), ("warning", 33), ("note", 36)])
def test_colours_change_no_word(severity: str, colour: int) -> None:
    found = Diagnostic("some-code", severity, "one: two", Span(0, 1), "| ^ = help: 3 |", "a cure")  # type: ignore[arg-type]
    source = Source("^ | 1 | = help", "name")

    coloured = draw(found, source, colour=True)

    assert coloured.startswith(f"\x1b[1;{colour}m{severity}[some-code]\x1b[0m\x1b[1m: one: two\x1b[0m\n")
    assert draw(found, source, colour=False) == as_text(found, source)
    assert strip(coloured) == as_text(found, source)


def strip(coloured: str) -> str:
    pieces = coloured.split("\x1b[")
    return pieces[0] + "".join(piece.partition("m")[2] for piece in pieces[1:])


def test_an_error_shows_every_problem_as_the_command_line_would() -> None:
    with pytest.raises(wfdsl.WorkflowError) as caught:
        wfdsl.parse('model_id = ["x"]\nsubtasks = [""]\naccess_list = [[]]')

    assert str(caught.value) == snapshot(
        """\
error[worker-type]: a worker is an integer, not `"x"`
  --> completion:1:13
  |
1 | model_id = ["x"]
  |             ^^^
  = help: write the index of a worker, such as `0`

error[subtask-blank]: the subtask of step 0 is empty
  --> completion:2:13
  |
2 | subtasks = [""]
  |             ^^
  = help: write what the worker is asked to do\
"""
    )
