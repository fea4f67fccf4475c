"""Files, folders and names become tasks; whatever cannot be read is an error that says where."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wfdsl.errors import UsageError
from wfdsl.tasks.conversion import parse_mapping
from wfdsl.tasks.loading import load_tasks
from wfdsl.tasks.rows import hub_name
from wfdsl.tasks.task import CodeTests, Kind, Task, save_tasks, task_line

DATA = Path(__file__).parent / "data"

texts = st.text(min_size=1).filter(str.strip)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KINDS: tuple[Kind, ...] = get_args(Kind)
pairs = st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=3)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    kind: Kind = draw(st.sampled_from(KINDS))
    cases = draw(pairs)
    tests = CodeTests(style="stdin", inputs=tuple(one for one, _ in cases), expected=tuple(other for _, other in cases))
    return Task(
        id=draw(texts),
        question=draw(texts),
        gold=draw(texts),
        kind=kind,
        source=draw(st.text()),
        split=draw(st.sampled_from(["", "train", "test"])),
        choices=() if kind == "choice" else tuple(draw(st.lists(st.text(), max_size=4))),
        tests=tests if kind == "code" else None,
        grader="module:function" if kind == "custom" else "",
        metadata=draw(st.dictionaries(st.text(), plain, max_size=3)),
    )


def written(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@given(
    st.lists(tasks(), min_size=1, max_size=4, unique_by=lambda task: task.id), st.sampled_from(["jsonl", "jsonl.gz"])
)
@settings(max_examples=20, deadline=None)
def test_tasks_come_back_from_a_file_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, made: list[Task], suffix: str
) -> None:
    file = tmp_path_factory.mktemp("tasks") / f"tasks.{suffix}"

    count = save_tasks(file, made)

    assert count == len(made)
    assert load_tasks(file) == made


def test_equal_tasks_give_equal_files(tmp_path: Path) -> None:
    made = load_tasks(DATA / "gsm8k_test.jsonl")

    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        save_tasks(tmp_path / name, made)

    whole = (tmp_path / "a.jsonl.gz").read_bytes()
    assert whole == (tmp_path / "b.jsonl.gz").read_bytes()
    assert whole[4:8] == bytes(4)  # gzip's time of writing


def forms(rows: list[dict[str, Any]], folder: Path) -> Iterator[Path]:
    yield written(folder / "rows.jsonl", *rows)
    (folder / "rows.json").write_text(json.dumps(rows))
    yield folder / "rows.json"
    (folder / "wrapped.json").write_text(json.dumps({"data": rows}))
    yield folder / "wrapped.json"
    yield written(folder / "lines.json", *rows)
    (folder / "rows.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    yield folder / "rows.json.gz"
    table = "".join(",".join(json.dumps(row[name]).replace('\\"', '""') for name in rows[0]) + "\n" for row in rows)
    (folder / "rows.csv").write_text(",".join(rows[0]) + "\n" + table)
    yield folder / "rows.csv"
    (folder / "marked.jsonl").write_bytes(b"\xef\xbb\xbf" + (folder / "rows.jsonl").read_bytes())
    yield folder / "marked.jsonl"


def test_every_form_of_file_gives_the_same_tasks(tmp_path: Path) -> None:
    rows = [{"prompt": f"What, if {number}?", "reply": str(number)} for number in range(3)]

    for file in forms(rows, tmp_path):
        found = load_tasks(file, columns={"question": "prompt", "gold": "reply"})

        assert [(task.question, task.gold) for task in found] == [(row["prompt"], row["reply"]) for row in rows], file


def test_parquet_files_are_read_and_empty_columns_do_not_count(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [json.loads(line) for line in (DATA / "mmlu_stem_test.jsonl").read_text(encoding="utf-8").splitlines()]
    parquet.write_table(
        pyarrow.Table.from_pylist([{**row, "Body": None} for row in rows]), tmp_path / "mmlu_test.parquet"
    )

    assert load_tasks(tmp_path / "mmlu_test.parquet") == load_tasks(DATA / "mmlu_stem_test.jsonl")


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wfdsl.installation.find_spec", lambda name: None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")

    with pytest.raises(UsageError, match=r"pip install .*\[eval\]'"):
        load_tasks(tmp_path / "x.parquet")


def test_a_folder_of_files_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name, number in (("train-0002.jsonl", 2), ("train-0001.jsonl", 1)):
        written(tmp_path / name, {"question": "How many?", "answer": f"#### {number}"})
    written(tmp_path / ".hidden.jsonl", {"nothing": 1})
    (tmp_path / "README.md").write_text("no rows")

    assert [task.gold for task in load_tasks(tmp_path)] == ["1", "2"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=str(tmp_path / "empty")):
        load_tasks(tmp_path / "empty")


def test_a_limit_takes_the_first_and_a_seed_a_sample() -> None:
    every = [task.id for task in load_tasks(DATA / "gsm8k_test.jsonl")]

    first = [task.id for task in load_tasks(DATA / "gsm8k_test.jsonl", limit=2)]
    sampled = [[task.id for task in load_tasks(DATA / "gsm8k_test.jsonl", limit=3, seed=seed)] for seed in range(8)]

    assert first == every[:2]
    assert all(sample == [name for name in every if name in sample] for sample in sampled)
    assert len({tuple(sample) for sample in sampled}) > 1
    for limit in (0, -1):
        with pytest.raises(UsageError, match="limit"):
            load_tasks(DATA / "gsm8k_test.jsonl", limit=limit)


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=10, deadline=None)
def test_a_smaller_sample_is_part_of_a_larger_one_of_the_same_seed(seed: int, one: int, other: int) -> None:
    small, large = (
        {task.id for task in load_tasks(DATA / "gsm8k_test.jsonl", limit=limit, seed=seed)}
        for limit in sorted((one, other))
    )

    assert small <= large


def test_rows_after_the_limit_are_not_even_read(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps({"question": "How many?", "answer": "#### 1"}) + "\nno json\n")

    assert len(load_tasks(file, limit=1)) == 1
    with pytest.raises(UsageError, match=r"x\.jsonl:2: "):
        load_tasks(file)


def test_an_id_that_a_data_set_gives_twice_is_refused(tmp_path: Path) -> None:
    row = {"id": "a", "question": "1+1?", "gold": "2", "kind": "math"}
    file = written(tmp_path / "x.jsonl", row, {**row, "question": "1+2?"})

    with pytest.raises(UsageError, match=rf"x\.jsonl:2: .*'a'.*{file}:1"):
        load_tasks(file)


def test_equal_rows_without_ids_are_numbered(tmp_path: Path) -> None:
    row = {"question": "How many?", "answer": "#### 1"}
    file = written(tmp_path / "x.jsonl", row, row, row)

    ids = [task.id for task in load_tasks(file)]

    assert ids == [ids[0], f"{ids[0]}#2", f"{ids[0]}#3"]


@pytest.mark.parametrize(
    ("row", "mapping", "format_name", "found"),
    [
        (
            {"prompt": "Capital of France?", "out": {"truth": "Paris"}, "hard": 3},
            "question=prompt,gold=out.truth,level=hard,kind==text",
            None,
            {"gold": "Paris", "kind": "text", "source": "x", "metadata": {"level": 3}},
        ),
        (
            {"q": "Which?", "options": ["red", "blue"], "a": "B"},
            "question=q,choices=options,gold=a",
            None,
            {"kind": "choice", "question": "Which?\n\nA. red\nB. blue", "gold": "B"},
        ),
        ({"q": "Which?", "a": 2, "c": ["x", "y", "z"]}, "question=q,gold=a,choices=c", None, {"gold": "C"}),
        (
            {"q": "A haiku."},
            "question=q,grader==my.module:judge",
            None,
            {"kind": "custom", "grader": "my.module:judge", "gold": ""},
        ),
        ({"q": [{"role": "user", "content": "2+2?"}], "a": "4"}, "question=q,gold=a", None, {"question": "2+2?"}),
        ({"q": "How many?", "sol": "2*2=4\n#### 4"}, "question=q,answer=sol", "gsm8k", {"gold": "4"}),
    ],
)
def test_columns_are_mapped_to_fields_constants_and_metadata_or_to_those_of_a_format(
    row: dict[str, Any], mapping: str, format_name: str | None, found: dict[str, Any], tmp_path: Path
) -> None:
    file = written(tmp_path / "x.jsonl", row)

    (task,) = load_tasks(file, columns=parse_mapping(mapping), format=format_name)

    assert {name: getattr(task, name) for name in found} == found
    assert task.id.startswith(f"{task.source}/")


@pytest.mark.parametrize(
    "mapping",
    [{"question": "prompt"}, {"gold": "a"}, {"question": "q", "gold": "a", "kind": "=essay"}, {"question": "q"}],
)
def test_a_mapping_that_does_not_fit_is_refused_at_its_row(mapping: dict[str, str], tmp_path: Path) -> None:
    file = written(tmp_path / "x.jsonl", {"q": "?", "a": "1"})

    with pytest.raises(UsageError, match=f"^{file}:1: "):
        load_tasks(file, columns=mapping)


@pytest.mark.parametrize("text", ["question", "question=", "=prompt", "question=a,question=b", ""])
def test_a_mapping_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--map"):
        parse_mapping(text)


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("x.jsonl", b"[1, 2]\n", ":1"),
        ("x.jsonl", b'{"a": 1', ":1"),
        ("x.jsonl", b'{"a": "\xff"}', ":1"),
        ("x.jsonl", b"", ""),
        ("x.jsonl", b'{"question": "?", "answer": "#### 1"}\n{"question": "", "answer": "#### 2"}\n', ":2"),
        ("x.jsonl", b'{"prompt": "Add.", "tests": {"inputs": [], "outputs": []}}', ":1"),
        ("x.jsonl.gz", b"no gzip", ""),
        ("x.jsonl.gz", gzip.compress(b'{"a": 1}' * 999, mtime=0)[:20], ""),
        ("x.jsonl", b'{"a": ' + b"1" * 9999 + b"}", ":1"),
        ("x.json", b"[" * 200_000, ":1"),
        ("x.json", b"3", ""),
        ("x.csv", b"a,b\n1\n", ":2"),
        ("x.csv", b"a,\xff\n1\n", ""),
        ("x.txt", b"a", ""),
        ("x.parquet", b"no parquet at all", ""),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_a_place(
    name: str, content: bytes, place: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(UsageError, match=f"^{tmp_path / name}{place}: "):
        load_tasks(tmp_path / name)


@pytest.mark.parametrize("name", ["./nowhere.jsonl", "nowhere.jsonl", "nowhere", "small/eight"])
def test_a_name_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}: "):
        load_tasks(name)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("openai/gsm8k", "openai/gsm8k"),
        ("cais/mmlu#all@test", "cais/mmlu#all@test"),
        ("gsm8k", "openai/gsm8k#main@test"),
        ("gsm8k@train", "openai/gsm8k#main@train"),
        ("a/b/c", None),
        ("what is this", None),
    ],
)
def test_names_of_the_hub_carry_configuration_and_split(text: str, meant: str | None) -> None:
    assert hub_name(text) == meant


class Hub(ModuleType):
    """Stands for the package `datasets`; remembers what it was asked for."""

    def __init__(self, answer: object) -> None:
        super().__init__("datasets")
        self.answer = answer
        self.asked: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def load_dataset(self, *arguments: Any, **options: Any) -> Any:
        self.asked.append((arguments, options))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def rows(*golds: str) -> list[dict[str, str]]:
    return [{"question": "?", "answer": f"#### {gold}"} for gold in golds]


@pytest.mark.parametrize(
    ("name", "answer", "asked", "golds"),
    [
        ("gsm8k@train", rows("4"), (("openai/gsm8k", "main"), {"split": "train"}), ["4"]),
        ("some/gsm8k", {"train": rows("1"), "test": rows("2")}, (("some/gsm8k", None), {"split": None}), ["2"]),
        ("some/gsm8k", {"extra": rows("3")}, (("some/gsm8k", None), {"split": None}), ["3"]),
        (  # since its loading script is not run
            "livecodebench-v6",
            [json.loads(line) for line in (DATA / "livecodebench.jsonl").read_text().splitlines()],
            (
                ("json",),
                {"data_files": "hf://datasets/livecodebench/code_generation_lite/test6.jsonl", "split": "train"},
            ),
            ["", ""],
        ),
    ],
)
def test_a_data_set_of_the_hub_is_asked_for_by_configuration_and_split_or_file(
    name: str, answer: Any, asked: Any, golds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub(answer)
    monkeypatch.setitem(sys.modules, "datasets", hub)

    assert [task.gold for task in load_tasks(name)] == golds
    assert hub.asked == [asked]


def test_a_data_set_without_a_usual_split_names_those_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", Hub({"one": rows("1"), "two": rows("2")}))

    with pytest.raises(UsageError, match="one, two"):
        load_tasks("a/b")


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("no route"),
        EOFError("of httpx"),
        FileNotFoundError("no such data set"),
        ValueError("config"),
        None,
    ],
)
def test_a_data_set_that_cannot_be_had_is_an_error_with_the_cause(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None if error is None else Hub(error))

    with pytest.raises(UsageError, match=rf"^a/b: .*{error or 'pip install'}"):
        load_tasks("a/b")


def test_a_gym_is_a_source_of_tasks_like_any_other() -> None:
    from wfdsl_rl.gym.source import tasks as make

    assert load_tasks("gym/seven", limit=8, seed=3) == make("gym/seven", 8, 3)
    assert load_tasks("gym/seven@train", limit=4) == make("gym/seven", 4, 0, split="train")


def test_a_package_can_add_a_source_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Task(id="quiz/1", question="1+1?", gold="2")
    asked: list[tuple[object, ...]] = []

    def source(name: str, count: int, seed: int, *, split: str = "") -> list[Task]:
        asked.append((name, count, seed, split))
        return [made]

    plugin = SimpleNamespace(name="quiz", value="quiz_for_test:source")
    monkeypatch.setitem(sys.modules, "quiz_for_test", SimpleNamespace(source=source))
    monkeypatch.setattr(
        "wfdsl.tasks.loading.entry_points", lambda group, name="quiz": [plugin] if name == "quiz" else []
    )

    assert load_tasks("quiz/easy@train", limit=3, seed=5) == [made]
    assert asked == [("quiz/easy", 3, 5, "train")]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gym/none", {}),
        ("gym/seven@dev", {}),
        ("gym/seven", {"format": "gsm8k"}),
        ("gym/seven", {"columns": {"question": "q"}}),
    ],
)
def test_a_gym_that_is_asked_for_wrongly_is_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="gym"):
        load_tasks(name, **options)


def test_a_task_is_one_line_that_names_its_kind() -> None:
    task = Task(id="a", question="1+1?\nSay.", gold="2")

    assert json.loads(task_line(task)) == {"id": "a", "question": "1+1?\nSay.", "gold": "2", "kind": "math"}
    assert "\n" not in task_line(task)
