"""Lettering and status: what is cut, wrapped, replaced and rounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfdsl.language.diagnostics import cells
from wfdsl.render.status import StepStatus, dollars, duration
from wfdsl.render.text import plain, shorten, wrap


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("  two \n\t words ", "two words"),
        ("\x1b[31m", "␛[31m"),
        ("a\x00b", "a␀b"),
        ("\u202eabc\u2069", "\ufffdabc\ufffd"),
        ("\ud800", "\ufffd"),
        ("\ufffe\U0001ffff", "\ufffd\ufffd"),
        ("👩\u200d👩 e\u0301", "👩\u200d👩 e\u0301"),
    ],
)
def test_plain_text_is_one_line_and_acts_on_nothing(written: str, shown: str) -> None:
    assert plain(written) == shown


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ("one two", "three")),
        ("incomprehensible", ("incompre", "hensible")),
        ("one two three four five", ("one two", "three f…")),
        ("日本語の文章", ("日本語の", "文章")),
        ("", ()),
        ("e\u0301" * 9, ("e\u0301" * 8, "e\u0301")),
    ],
)
def test_text_breaks_at_spaces_and_within_words_only_if_it_must(text: str, lines: tuple[str, ...]) -> None:
    assert wrap(text, width=8, lines=2, measure=cells) == lines


@given(st.text(), st.integers(2, 40), st.integers(1, 5))
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text: str, width: int, lines: int) -> None:
    words = plain(text)

    wrapped = wrap(words, width=width, lines=lines, measure=cells)

    assert len(wrapped) <= lines
    assert all(cells(line) <= width for line in wrapped)
    whole = wrap(words, width=width, lines=10**6, measure=cells)
    assert "".join(whole).replace(" ", "") == words.replace(" ", "")
    assert wrapped == whole or wrapped[-1].endswith("…")


def test_short_text_is_not_shortened() -> None:
    assert shorten("twelve cells", width=12, measure=cells) == "twelve cells"
    assert shorten("thirteen cells", width=12, measure=cells) == "thirteen ce…"


def test_a_text_fits_a_width_that_was_added_up_in_another_order() -> None:
    text = "run 20261124-130832-8b6de5f1: done"
    measured = {character: 0.1 * (1 + ord(character) % 7) for character in text}

    for length in range(1, len(text) + 1):
        width = sum(sorted(measured[character] for character in text[:length]))
        assert (
            shorten(text[:length], width=width, measure=lambda part: sum(measured.get(each, 1.0) for each in part))
            == (text[:length])
        )


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 ms"), (0.3404, "340 ms"), (0.9999, "1.0 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (185, "3 min 05 s")],
)
def test_durations_read_well(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(("usd", "shown"), [(0, "$0.00"), (12.5, "$12.50"), (0.0031, "$0.0031"), (0.00001, "<$0.0001")])
def test_a_cost_above_zero_never_reads_as_zero(usd: float, shown: str) -> None:
    assert dollars(usd) == shown


def test_a_status_says_what_is_known() -> None:
    assert StepStatus("waiting").facts() == "waiting"
    assert StepStatus("failed", 2.0, None, "429").facts() == "failed · 2.0 s · 429"
