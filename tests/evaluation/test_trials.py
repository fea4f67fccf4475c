"""The file of results: lines that count, lines that were cut off, and lines that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.toys import TWO, trial
from wfdsl.errors import UsageError
from wfdsl.evaluation.trials import read_trials, results_in


def test_cells_come_back_as_they_were_kept(tmp_path: Path) -> None:
    kept = [
        trial(task="ä", answer="line\nbreak \u2028 and \ud83d\ude00", rounds=(TWO,), workers={"ann": 1, "bob": 1}),
        trial(task="t2", outcome="failed", list_usd=None, latency_s=None, rounds=(), reason="no reply"),
    ]

    with results_in(tmp_path) as keep:
        for each in kept:
            keep(each)

    found = list(read_trials(tmp_path).values())
    assert found[1] == kept[1]
    assert found[0].answer == "line\nbreak \u2028 and 😀"
    assert found[0].rounds == (TWO,)


def test_a_line_that_was_cut_off_does_not_count_and_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    whole, other = trial(task="t1"), trial(task="t2")
    path.write_text(whole.to_json() + "\n" + other.to_json()[:100])

    before = read_trials(tmp_path)
    with results_in(tmp_path) as keep:
        keep(other)

    assert list(before) == [whole.key]
    assert list(read_trials(tmp_path)) == [whole.key, other.key]


def test_a_file_with_only_a_cut_off_line_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("{" + "x" * 70_000)

    with results_in(tmp_path) as keep:
        keep(trial())

    assert list(read_trials(tmp_path)) == [trial().key]


def test_the_last_line_of_a_cell_counts(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("".join(f"{trial(outcome=outcome).to_json()}\n" for outcome in ("failed", "right")))

    assert [each.outcome for each in read_trials(tmp_path).values()] == ["right"]


@pytest.mark.parametrize("line", ["{}", "no JSON", "[1]", '{"policy": "p", "rounds": []}'])
def test_a_whole_line_that_is_no_result_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f"{trial().to_json()}\n{line}\n{trial(task='t2').to_json()}\n")

    with pytest.raises(UsageError, match=r"results\.jsonl:2: this is not a result"):
        read_trials(tmp_path)
