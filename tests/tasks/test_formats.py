"""One row of each known data set becomes the task that the data set means."""

from __future__ import annotations

import base64
import json
import pickle
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grading.sandboxes import needs_sandbox, the_sandbox
from wfdsl.errors import UsageError
from wfdsl.grading.grade import grade
from wfdsl.tasks.conversion import BadRow, Origin
from wfdsl.tasks.formats import FORMATS
from wfdsl.tasks.loading import load_tasks
from wfdsl.tasks.task import Task, task_line

DATA = Path(__file__).parent / "data"


def read(format_name: str, row: dict[str, Any]) -> Task:
    return FORMATS[format_name].read(row, Origin(format_name))


@pytest.mark.parametrize(
    ("file", "source", "split", "kind", "golds"),
    [
        ("gsm8k_test.jsonl", "gsm8k", "test", "math", ["18", "3", "70000", "540", "64", "45"]),
        ("svamp_test.jsonl", "svamp", "test", "math", ["145", "19", "198", "63"]),
        ("mmlu_stem_test.jsonl", "mmlu", "test", "choice", ["C", "A", "B", "A"]),
        ("math_train.jsonl", "math", "train", "math", ["4", r"\frac{3}{2}", "4"]),
        ("aime_2099.jsonl", "aime_2099", "", "math", ["008", "24"]),
        ("livecodebench.jsonl", "livecodebench", "", "code", ["", ""]),
        ("math500_test.jsonl", "math500", "test", "math", None),
        ("HumanEval.jsonl.gz", "humaneval", "", "code", None),
        ("rlpr_train.jsonl", "rlpr", "train", None, ["75", "oxygen", "B"]),
        ("webinstruct.jsonl", "rlpr", "", None, None),
        ("gpqa_diamond.csv", "gpqa", "", "choice", None),
        ("mbpp.jsonl", "mbpp", "", "code", None),
        ("mbpp_sanitized.jsonl", "mbpp", "", "code", None),
        ("bigcodebench.jsonl", "bigcodebench", "", "code", None),
    ],
)
def test_the_columns_tell_the_format_and_the_format_the_gold_answers(
    file: str, source: str, split: str, kind: str | None, golds: list[str] | None
) -> None:
    tasks = load_tasks(DATA / file)

    assert {(task.source, task.split, kind and task.kind) for task in tasks} == {(source, split, kind)}
    assert golds in (None, [task.gold for task in tasks])


def test_ids_of_a_data_set_stand_below_its_name_and_what_it_says_is_kept() -> None:
    files = ("svamp_test.jsonl", "HumanEval.jsonl.gz", "mbpp.jsonl", "math500_test.jsonl")
    tasks = [load_tasks(DATA / file, limit=1)[0] for file in files]

    ids = ["svamp/chal-777", "HumanEval/2", "mbpp/9001", "math500/test/algebra/2584.json"]
    assert [task.id for task in tasks] == ids
    assert tasks[-1].metadata == {"subject": "Algebra", "level": 3}


@pytest.mark.parametrize(
    ("row", "gold"),
    [
        ({"solution": r"So \boxed{5}.", "answer": "4"}, "4"),  # the column goes before the box
        (
            {"solution": r"\boxed{\left\{ \frac{1}{2}, \sqrt{\frac{3}{4}} \right\}} and no more"},
            r"\left\{ \frac{1}{2}, \sqrt{\frac{3}{4}} \right\}",
        ),
        ({"solution": r"\boxed{\frac{1}{2}"}, None),
        ({"solution": r"\boxed{2}", "answer": float("nan")}, "2"),  # what tables have for empty cells
    ],
)
def test_the_gold_answer_of_math_is_in_a_column_or_a_whole_box(row: dict[str, Any], gold: str | None) -> None:
    row = {"problem": "?", "level": "Level 5", **row}

    if gold is None:
        with pytest.raises(BadRow):
            read("math", row)
    else:
        assert (read("math", row).gold, read("math", row).metadata["level"]) == (gold, 5)


@pytest.mark.parametrize(
    "prompt",
    [
        [{"role": role, "content": text} for role, text in (("user", "Hi."), ("assistant", "Yes?"), ("user", "Q?"))],
        "A conversation. User: Q? Assistant:",
        "User: Hello.\nAssistant: Yes?\nUser: Q?\nAssistant: <think>",
        " Q? ",
    ],
)
def test_the_question_is_what_the_user_says_last(prompt: object) -> None:
    assert read("trainer", {"prompt": prompt, "answer": "4"}).question == "Q?"


def test_a_dialogue_that_is_asked_about_stays_whole() -> None:
    question = "User: Hi.\nAssistant: Hello.\nHow many words does the assistant say?"

    assert read("fields", {"question": question, "gold": "1"}).question == question


def test_svamp_joins_body_and_question() -> None:
    tasks = load_tasks(DATA / "svamp_test.jsonl")

    assert tasks[0].question.endswith("oranges are organized into 93 groups. How big is each group of bananas?")
    assert "30 pounds. How much did" in tasks[1].question


@pytest.mark.parametrize(
    ("answer", "options", "letter"),
    [
        (2, ["w", "x", "y", "z"], "C"),
        ("2", ["w", "x", "y", "z"], "C"),
        ("D", ["w", "x", "y", "z"], "D"),
        ("x", ["w", "x", "y", "z"], "B"),
        ("2", ["1", "2", "3", "4"], "B"),  # text of an option, as MMLU has for numbers in some copies
        (2, ["1", "2", "3", "4"], "C"),
        ("J", list("qrstuvwxyz"), "J"),  # MMLU-Pro has ten
    ],
)
def test_the_answer_of_a_choice_question_may_be_index_letter_or_text(
    answer: object, options: list[str], letter: str
) -> None:
    assert read("mmlu", {"question": "?", "choices": options, "answer": answer}).gold == letter


@pytest.mark.parametrize("known", ["mmlu", "fields"])
@pytest.mark.parametrize("answer", [4, -1, "E", "none of them", None, ""])
def test_an_answer_that_is_no_option_is_no_task(answer: object, known: str) -> None:
    with pytest.raises(BadRow):
        read(known, {"question": "?", "choices": ["w", "x", "y", "z"], "answer": answer, "gold": answer})


def test_gpqa_puts_the_right_option_where_the_text_decides() -> None:
    def row(number: int) -> dict[str, str]:
        wrong = {f"Incorrect Answer {place}": f"wrong {place}" for place in (1, 2, 3)}
        return {"Question": f"Question {number}?", "Correct Answer": "right", **wrong}

    tasks = [read("gpqa", row(number)) for number in range(400)]
    letters = [task.gold for task in tasks]

    assert {task.choices["ABCD".index(task.gold)] for task in tasks} == {"right"}
    assert letters == [read("gpqa", row(number)).gold for number in range(400)]
    assert all(70 < letters.count(letter) < 130 for letter in "ABCD")


def test_rlpr_asks_what_the_user_says_and_is_of_the_domain_text() -> None:
    speed, plants, gas = load_tasks(DATA / "rlpr_train.jsonl")

    assert (speed.question[:5], speed.kind, speed.gold) == ("A car", "math", "75")
    assert (plants.question, plants.kind) == ("What do plants release in photosynthesis besides sugar?", "text")
    assert (gas.kind, gas.gold, gas.id) == ("choice", "B", "rlpr/c-3")
    assert {task.metadata["domain"] for task in (speed, plants, gas)} == {"text"}


@needs_sandbox
@pytest.mark.parametrize("file", ["HumanEval.jsonl.gz", "mbpp.jsonl", "mbpp_sanitized.jsonl", "bigcodebench.jsonl"])
async def test_the_reference_solution_is_right_and_an_empty_one_is_wrong(file: str) -> None:
    for task in load_tasks(DATA / file):
        assert task.tests is not None
        empty = f"{task.tests.preamble}\ndef {task.tests.entry_point}(*args):\n    pass\n"
        found = [await grade(task, f"```python\n{code}\n```", sandbox=the_sandbox()) for code in (task.gold, empty)]

        assert [verdict.outcome for verdict in found] == ["right", "wrong"], found


def test_mbpp_shows_its_tests_but_not_the_challenge() -> None:
    task = load_tasks(DATA / "mbpp.jsonl")[0]

    assert task.tests is not None
    assert task.tests.entry_point == "sum_squares"
    assert "assert sum_squares([1, 2]) == 5" in task.question
    assert "[-3]" not in task.question
    assert "assert sum_squares([-3]) == 9" in task.tests.checker


def test_mbpp_holds_tests_back_for_training() -> None:
    tests = ["assert f(1) == 2", "assert f(2) == 4", "assert f(3) == 6"]
    row = {"task_id": 601, "text": "Double it.", "code": "def f(x):\n    return 2 * x", "test_list": tests}
    origins = Origin("mbpp", "train"), Origin("mbpp", "test")

    train, test = (FORMATS["mbpp"].read(row, origin) for origin in origins)

    assert train.tests is not None
    assert test.tests is not None
    assert train.tests.checker == test.tests.checker
    assert "f(1)" in train.question
    assert "f(2)" not in train.question
    assert "f(3)" in test.question
    assert (train.metadata["hidden_tests"], test.metadata["hidden_tests"]) == (2, 0)


def test_livecodebench_reads_public_and_hidden_cases_and_calls_methods_with_one_argument_a_line() -> None:
    task, method = load_tasks(DATA / "livecodebench.jsonl")

    assert task.tests is not None
    assert (task.tests.style, task.tests.inputs) == ("stdin", ("3\n", "-4\n", "0\n"))
    assert task.tests.expected == ("6\n", "-8\n", "0\n")
    assert task.metadata == {"level": "easy", "platform": "atcoder", "title": "Double", "date": "2099-01-02"}
    assert "standard input" in task.question
    assert method.tests is not None
    assert (method.tests.style, method.tests.entry_point) == ("function", "Solution.pickFromEnd")
    assert [json.loads(arguments) for arguments in method.tests.inputs] == [[[1, 2, 3], 0], [[5, 6], 1]]
    assert method.tests.expected == ("3", "5")
    assert "def pickFromEnd" in method.question


@pytest.mark.parametrize("number", [0, 1])
def test_programs_of_contests_find_the_usual_names_and_python_keeps_its_own(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    monkeypatch.setattr(sys, "setrecursionlimit", limits.append)
    task = load_tasks(DATA / "livecodebench.jsonl")[number]
    names: dict[str, Any] = {}

    assert task.tests is not None
    exec(task.tests.preamble, names)

    usual = "List Optional deque defaultdict Counter heappush bisect_left gcd inf permutations lru_cache math sys stdin"
    assert set(usual.split()) <= names.keys()
    assert (names["pow"], names["open"], names["datetime"].date(2024, 2, 29).day) == (pow, open, 29)
    assert limits == [50_000]


def packed(value: object, protocol: int | None = None) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def contest(private: str) -> dict[str, Any]:
    row = {"question_content": "Print.", "question_id": "q", "private_test_cases": private, "metadata": "{}"}
    return {**row, "public_test_cases": json.dumps([{"input": "1", "output": "2"}])}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_hidden_cases_are_read_from_a_pickle_of_any_protocol(protocol: int) -> None:
    hidden = json.dumps([{"input": "ä\n", "output": "x" * 300}], ensure_ascii=False)

    tests = read("livecodebench", contest(packed(hidden, protocol))).tests

    assert tests is not None
    assert tests.inputs == ("1", "ä\n")


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Path.touch, (Path("sprung"),)  # type: ignore[return-value]


def test_hidden_cases_that_would_run_code_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(BadRow):
        read("livecodebench", contest(packed(Trap())))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "private",
    [
        "%%%",
        base64.b64encode(b"plain").decode(),
        base64.b64encode(zlib.compress(b"\x80\x05\x8c")).decode(),
        packed(["a", "b"]),
        packed("no json"),
        packed(json.dumps({"input": "1"})),
        packed(json.dumps([{"input": 1, "output": "2"}])),
    ],
)
def test_hidden_cases_of_another_form_are_refused(private: str) -> None:
    with pytest.raises(BadRow):
        read("livecodebench", contest(private))


@pytest.mark.parametrize("row", [{"question": "2+2?", "reply": "4"}, {"a": 1}])
def test_columns_of_no_known_format_are_named_with_the_cure(row: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps(row))

    with pytest.raises(UsageError) as caught:
        load_tasks(file)

    assert all(said in str(caught.value) for said in (f"{file}:1: ", ", ".join(row), "--map", "--task-format"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "id"]), inner),
    max_leaves=5,
)
ROWS = {
    known: {**json.loads(line), "A": "a", "B": "b", "C": "c", "D": "d"}
    for known, file in {
        "gsm8k": "gsm8k_test.jsonl",
        "svamp": "svamp_test.jsonl",
        "mmlu": "mmlu_stem_test.jsonl",
        "math": "math_train.jsonl",
        "rlpr": "rlpr_train.jsonl",
        "livecodebench": "livecodebench.jsonl",
        "mbpp": "mbpp.jsonl",
        "bigcodebench": "bigcodebench.jsonl",
        "math500": "math500_test.jsonl",
    }.items()
    for line in (DATA / file).read_text(encoding="utf-8").splitlines()[:1]
} | {
    "fields": {"id": "a", "question": "?", "gold": "1", "kind": "choice", "choices": ["a", "b"], "level": 2},
    "arc": {"id": "a", "question": "?", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"},
    "triviaqa": {"question": "?", "question_id": "a", "answer": {"value": "x", "aliases": ["y"]}},
    "trainer": {"prompt": [{"role": "user", "content": "?"}], "reward_model": {"ground_truth": "1"}, "label": "2"},
    "gpqa": {"Question": "?", "Correct Answer": "a", **{f"Incorrect Answer {n}": f"b{n}" for n in (1, 2, 3)}},
    "humaneval": dict.fromkeys(["task_id", "prompt", "entry_point", "canonical_solution", "test"], "pass"),
    "wfdsl": {"id": "a", "question": "?", "gold": "1", "kind": "math", "tests": None, "metadata": {}},
}  # fmt: skip


@pytest.mark.parametrize("known", sorted(FORMATS))
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_a_row_with_anything_in_its_cells_is_a_task_or_a_bad_row(known: str, data: st.DataObject) -> None:
    row = dict(ROWS[known])
    for column in data.draw(st.lists(st.sampled_from(sorted(row)), min_size=1, max_size=3)):
        row[column] = data.draw(JSON)

    with suppress(BadRow):
        task = read(known, row)

        assert Task.model_validate_json(task_line(task)) == task


@pytest.mark.parametrize(
    ("gold", "found"), [([5], "5"), (["1/2"], "1/2"), ([7.0], "7"), ([1, 2], None), ([], None), ({"value": 5}, None)]
)
def test_a_list_of_one_is_its_value_and_one_of_several_is_refused(gold: object, found: str | None) -> None:
    row = {"question": "How many?", "gold": gold}

    if found is None:
        with pytest.raises(BadRow):
            read("fields", row)
    else:
        assert read("fields", row).gold == found


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def verl(text: str, gold: Any, **more: Any) -> dict[str, Any]:
    return {"data_source": "x", "prompt": chat(text), "reward_model": {"style": "rule", "ground_truth": gold}, **more}


PRIME_INPUTS = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}
PRIME_CALLS = {"fn_name": "add", "inputs": [[1, 2]], "outputs": [[3]]}
OPTIONS = "Which is a planet?\nA. Mars\nB. Sirius"


@pytest.mark.parametrize(
    ("row", "format_name", "kind", "golds"),
    [
        (verl("2+2?", "4", ability="math"), "rows", "math", ["4"]),
        (verl("Solve x^2=2.", "\\sqrt{2}", ability="MATH"), "rows", "math", ["\\sqrt{2}"]),  # DAPO
        (verl("Add.", json.dumps(PRIME_INPUTS), ability="code"), "rows", "code", [""]),  # PRIME
        (verl("Add.", json.dumps(PRIME_CALLS), ability="code"), "rows", "code", [""]),
        (verl(OPTIONS, "A", ability="science"), "rows", "choice", ["A"]),
        (verl("Which port?", ["Rome", "Roma"]), "rows", "text", ["Rome", "Roma"]),
        (verl("Who?", "Ada Lovelace", extra_info={"answer_type": "String"}), "rlpr", "text", ["Ada Lovelace"]),
        (verl("How?", "2.5", extra_info={"answer_type": "Float"}), "rlpr", "math", ["2.5"]),
        ({"prompt": chat("2+2?"), "label": "4", "metadata": {"level": 2}}, "rows", "math", ["4"]),  # slime
        ({"input": "2+2?", "label": "4"}, "rows", "math", ["4"]),  # OpenRLHF
        ({"prompt": chat("2+2?"), "solution": "It is $\\boxed{4}$."}, "rows", "math", ["4"]),  # TRL
        ({"question": "2+2?", "answer": "4", "info": {"level": 1}}, "rows", "math", ["4"]),  # verifiers
        ({"prompt": chat("Double x."), "verification_info": {"test_cases": [{"input": "2", "output": "4"}]}},
         "rows", "code", [""]),
        ({"prompt": "Write f.", "tests": ["assert f(1) == 2"]}, "rows", "code", [""]),
        ({"question": "2+5?", "answer": "7"}, "rows", "math", ["7"]),
        ({"problem": "2+5?", "answer": "7", "solution": "2+5 is 7"}, "rows", "math", ["7"]),
        (ROWS["arc"], "arc", "choice", ["B"]),
        (ROWS["triviaqa"], "triviaqa", "text", ["x", "y"]),
    ],
)  # fmt: skip
def test_rows_of_trainers_are_of_the_right_kind(
    row: dict[str, Any], format_name: str, kind: str, golds: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row))

    (task,) = load_tasks(file)

    assert (task.source, task.kind, list(task.golds)) == (format_name, kind, golds)
    assert "system" not in task.question
    assert "Be brief" not in task.question


CONTESTS = load_tasks(DATA / "livecodebench.jsonl")
METHOD = "class Solution:\n    def pickFromEnd(self, values: List[int], place):\n        return values[{}]"


@needs_sandbox
@pytest.mark.parametrize(
    ("task", "right", "wrong"),
    [
        (CONTESTS[0], "print(2 * int(input()), ' ')", "print(int(input()) ** 2)"),
        (CONTESTS[1], METHOD.format("-1 - place"), METHOD.format("place")),
        *(
            (read("trainer", verl("Add.", json.dumps(tests))), program, "add = print")
            for tests, program in [
                (PRIME_INPUTS, "print(sum(map(int, input().split())))"),
                (PRIME_CALLS, "def add(a, b):\n    return a + b"),
                (["assert add(1, 2) == 3"], "def add(a, b):\n    return a + b"),
                ([{"input": "1 2", "output": "3"}], "a, b = map(int, input().split())\nprint(a + b)"),
            ]
        ),
    ],
)
async def test_tests_tell_right_programs_from_wrong_ones(task: Task, right: str, wrong: str) -> None:
    found = [await grade(task, f"```python\n{code}\n```", sandbox=the_sandbox()) for code in (right, wrong)]

    assert [verdict.outcome for verdict in found] == ["right", "wrong"], found


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Which?", "Which?\n\nA. x\nB. y"),
        ("Which is x or y?", "Which is x or y?\n\nA. x\nB. y"),
        ("Which? (A) x (B) y", "Which? (A) x (B) y"),
        ("A. p\nB. q\nWhich?", "A. p\nB. q\nWhich?\n\nA. x\nB. y"),
    ],
)
@pytest.mark.parametrize("known", ["fields", "mmlu"])
def test_options_are_written_below_a_question_that_does_not_have_them(known: str, question: str, asked: str) -> None:
    row = {"question": question, "gold": "B", "answer": "B", "choices": ["x", "y"], "level": 2}
    task = read(known, row)

    assert (task.question, task.choices, task.metadata["level"]) == (asked, ("x", "y"), 2)


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"gold": "4"}, "math"),
        ({"gold": "Rome"}, "text"),
        ({"gold": "Rome", "kind": "math"}, "math"),
        ({"gold": "A, B", "choices": ["x", "y", "z"]}, "choice"),
        ({"gold": "B", "question": OPTIONS}, "choice"),
        ({"grader": "m:f"}, "custom"),
        ({"tests": {"style": "program", "checker": "assert f()"}}, "code"),
    ],
)
def test_without_a_kind_the_gold_answer_decides(row: dict[str, Any], kind: str) -> None:
    assert read("fields", {"question": "?", **row}).kind == kind
