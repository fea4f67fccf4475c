"""Surveys: exact counts, the worst examples, and bounded memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from wfdsl.errors import UsageError
from wfdsl.survey import Row, Survey, read_rows

FINE = 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]'
ONE_ERROR = 'model_id = [-1]\nsubtasks = ["a"]\naccess_list = [[]]'
TWO_ERRORS = 'model_id = [-1]\nsubtasks = [""]\naccess_list = [[]]'
REPAIR = 'model_id = ["0"]\nsubtasks = ["a"]\naccess_list = [[]]'


def surveyed(texts: Iterable[str | None], *, examples: int = 3) -> Survey:
    survey = Survey(examples=examples)
    for line, text in enumerate(texts, 1):
        survey.add(Row("rows", line, text, "" if text is not None else "is not JSON"))
    return survey


def test_counts_are_exact() -> None:
    survey = surveyed([FINE, ONE_ERROR, None, REPAIR, TWO_ERRORS, FINE])

    assert survey.total == 5
    assert survey.unreadable_count == 1
    assert survey.valid == {"strict": 2, "lenient": 3}
    assert survey.steps == {1: 3}
    assert survey.codes["strict"] == {"worker-not-in-pool": 2, "subtask-blank": 1, "number-as-string": 1}
    assert survey.codes["lenient"] == {"worker-not-in-pool": 2, "subtask-blank": 1}
    assert survey.remarks == {"number-as-string": 1}


def test_a_code_counts_once_for_each_completion() -> None:
    survey = surveyed(['model_id = [-1, -2, -3]\nsubtasks = ["a", "b", "c"]\naccess_list = ["all", "all", "all"]'])

    assert survey.codes["strict"]["worker-not-in-pool"] == 1


def test_the_worst_come_first_and_of_equals_the_earliest_stay() -> None:
    survey = surveyed([REPAIR, ONE_ERROR, FINE, TWO_ERRORS, ONE_ERROR, ONE_ERROR], examples=3)

    assert [worst.place[1] for worst in survey.worst] == [4, 2, 5]


@pytest.mark.parametrize(("examples", "kept"), [(0, 0), (1, 1), (9, 3)])
def test_no_more_examples_are_kept_than_asked_for(examples: int, kept: int) -> None:
    survey = surveyed([ONE_ERROR, None, TWO_ERRORS, None, REPAIR, None], examples=examples)

    assert len(survey.worst) == kept
    assert len(survey.unreadable) == kept
    assert survey.unreadable_count == 3


def test_json_and_fields_agree() -> None:
    survey = surveyed([FINE, ONE_ERROR, None])

    assert json.loads(json.dumps(survey.to_json())) == {
        "total": 2,
        "unreadable": 1,
        "valid": {"strict": 1, "lenient": 1},
        "passthrough": 0,
        "steps": {"1": 1},
        "codes": {"worker-not-in-pool": {"strict": 1, "lenient": 1}},
        "remarks": {},
        "worst": [{"file": "rows", "line": 2}],
    }


def test_the_progress_hears_of_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": FINE}) + "\n\n" + json.dumps({"text": "\u00e9"}))
    heard: list[int] = []

    rows = list(read_rows(path, "text", on_bytes=heard.append))

    assert [row.line for row in rows] == [1, 3]
    assert sum(heard) == path.stat().st_size


def test_reading_is_lazy_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": str(number)}) + "\n" for number in range(1000)) + "{broken")

    rows = read_rows(path, "text")

    assert [next(rows).text for _ in range(3)] == ["0", "1", "2"]
    assert [row.line for row in rows] == list(range(4, 1002))


@pytest.mark.parametrize("packed", [False, True])
def test_memory_does_not_grow_with_the_number_of_lines(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("rows.jsonl.gz" if packed else "rows.jsonl")
    with gzip.open(path, "wb", compresslevel=1) if packed else path.open("wb") as file:
        for number in range(50_000):
            file.write(json.dumps({"text": f"{FINE} {number} {'x' * 100}"}).encode() + b"\n")

    peak, count = peak_of(sum(1 for _ in read_rows(path, "text")) for _ in range(1))

    assert count == 50_000
    assert peak < 1 << 20


def test_nothing_is_kept_of_completions_but_counts_and_examples() -> None:
    texts = ((TWO_ERRORS, REPAIR, FINE, None)[number % 4] for number in range(2000))
    surveyed([TWO_ERRORS, REPAIR, FINE])

    peak, total = peak_of(surveyed(texts).total for _ in range(1))

    assert total == 1500
    assert peak < 1 << 18  # keeping what was found of each would take more than a thousand bytes apiece


def peak_of(work: Iterable[int]) -> tuple[int, int]:
    """The most bytes that were held while working, and the result."""
    tracemalloc.start()
    result = sum(work)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, result


def test_a_line_over_the_limit_is_never_held_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wfdsl.survey._LONGEST_LINE", 1 << 20)
    path = tmp_path / "rows.jsonl"
    with path.open("wb") as file:
        file.write(json.dumps({"text": FINE}).encode() + b"\n")
        for _ in range(40):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + json.dumps({"text": FINE}).encode() + b"\n")
    heard: list[int] = []
    rows: list[Row] = []

    def read() -> Iterator[int]:
        rows.extend(read_rows(path, "text", on_bytes=heard.append))
        yield len(rows)

    peak, _ = peak_of(read())

    assert [(row.line, row.problem) for row in rows] == [(1, ""), (2, "is longer than 1 MiB"), (3, "")]
    assert sum(heard) == path.stat().st_size
    assert peak < 8 << 20


def test_a_line_that_does_not_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wfdsl.survey._LONGEST_LINE", 1 << 16)
    monkeypatch.setattr("wfdsl.survey._ENDLESS_LINE", 1 << 21)

    path = tmp_path / "rows.jsonl"
    path.write_bytes(bytes(3 << 20))

    with pytest.raises(UsageError, match=r"rows\.jsonl:1: the line does not end within 2 MiB$"):
        list(read_rows(path, "text"))


def test_a_line_at_the_limit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = json.dumps({"text": FINE}).encode()
    monkeypatch.setattr("wfdsl.survey._LONGEST_LINE", len(row) + 1)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(row + b"\n" + row + b" \n" + row + b"\n" + row)

    rows = list(read_rows(path, "text"))

    assert [row.text is not None for row in rows] == [True, False, True, True]


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.jsonl: cannot be read: no such file or directory"):
        list(read_rows(tmp_path / "missing.jsonl", "text"))
