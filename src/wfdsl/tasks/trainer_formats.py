"""Rows that trainers read: a question or chat, and a gold answer or tests, in columns of many names.

verl, PRIME, DAPO, RLPR, slime, OpenRLHF, verifiers and TRL differ in names only. What the gold answer is decides how a
row is graded: tests make it code, a letter of the question's options choice, an expression math, anything else text.
"""

from __future__ import annotations

import json
import re
from string import ascii_uppercase
from typing import Any

from wfdsl.tasks.answer_formats import boxed
from wfdsl.tasks.code_formats import called_tests, stdin_tests
from wfdsl.tasks.conversion import BadRow, Origin, Values, is_given, plain
from wfdsl.tasks.task import CodeTests, Kind, Task

_QUESTIONS = ("prompt", "input", "question", "problem", "instruction", "query", "messages")
_GOLDS = ("reward_model", "label", "ground_truth", "answer", "expected_answer", "final_answer", "target", "solution")
_TESTS = ("tests", "test_cases", "verification_info", "reward_model", "ground_truth", "label", "answer", "info")
_FRAME = re.compile(r"\bUser:\s*(.*?)\s*(?:\n|\s)Assistant:", re.DOTALL)
_MATH_TYPES = frozenset({"float", "integer", "fraction", "expression", "percentage", "matrix", "math"})
_OPTION = re.compile(r"^\s*\(?([A-J])[.):][ \t]+(\S.*)$", re.MULTILINE)
_WORD = re.compile(r"(?<!\\)\b[^\W\d_]{3,}")


def trainer(row: Values, origin: Origin) -> Task:
    """A row of a trainer's data set, whatever its columns are called."""
    extra: Values = next(
        (row[name] for name in ("extra_info", "info", "metadata") if isinstance(row.get(name), dict)), {}
    )
    known: Values = {**row, **extra}
    question = asked(_first(row, *_QUESTIONS))
    metadata = {
        "subject": known.get("category") or row.get("ability") or known.get("subject"),
        "level": known.get("difficulty") or known.get("level"),
        "answer_type": known.get("answer_type"),
        "data_source": row.get("data_source"),
    }
    given_id = _first(known, "id", "index", "unique_id")
    if tests := next(filter(None, (_tests(row.get(name)) for name in _TESTS)), None):
        return origin.task(question, "", "code", given_id=given_id, tests=tests, metadata=metadata)
    golds = _golds(_first(row, *_GOLDS))
    kind, choices = _kind(golds[0], question, str(known.get("answer_type") or row.get("ability") or "").lower())
    return origin.task(
        question, golds[0], kind, given_id=given_id, choices=choices, accepted=golds[1:], metadata=metadata
    )


def rlpr(row: Values, origin: Origin) -> Task:
    """RLPR, and WebInstruct-verified, from which it comes. The domain is `text`."""
    task = trainer(row, origin)
    return task.model_copy(update={"metadata": {**task.metadata, "domain": "text"}})


def asked(prompt: object) -> str:
    """The question of a chat: what the user says last, without a frame of `User: ... Assistant:`."""
    if isinstance(prompt, str):
        said = prompt
    else:
        turns = [turn for turn in prompt if isinstance(turn, dict)] if isinstance(prompt, list) else []
        said = next((str(turn.get("content") or "") for turn in reversed(turns) if turn.get("role") == "user"), "")
    framed = _FRAME.search(said)
    question = (framed.group(1) if framed else said).strip()
    if not question:
        raise BadRow("its prompt has no message of a user")
    return question


def _first(row: Values, *columns: str) -> Any:
    return next((row[column] for column in columns if is_given(row.get(column))), None)


def _golds(value: Any) -> tuple[str, ...]:
    """The gold answer, and others that are right too. A worked solution has it in a box or after `####`."""
    if isinstance(value, dict):
        value = value.get("ground_truth", value.get("target"))
    if isinstance(value, list) and value and not any(isinstance(each, list | dict) for each in value):
        return tuple(one for each in value for one in _golds(each))
    if not is_given(value) or not plain(value).strip():
        raise BadRow("it has no gold answer")
    gold = plain(value).strip()
    if "####" in gold:
        gold = gold.rpartition("####")[2].strip()
    return (boxed(gold) if "\\boxed" in gold else gold,)


def _kind(gold: str, question: str, answer_type: str) -> tuple[Kind, tuple[str, ...]]:
    letter = gold.strip("(). ")
    options = {found[1]: found[2].strip() for found in _OPTION.finditer(question)}
    letters = ascii_uppercase[: len(options)]
    if len(options) > 1 and "".join(options) == letters and letter and letter in letters:
        return "choice", tuple(options.values())
    if answer_type == "multiple choice" and letter in tuple("ABCDEFGHIJ"):
        return "choice", ()  # the options are part of the question's text
    if answer_type in _MATH_TYPES:
        return "math", ()
    is_math = not answer_type and bool(re.search(r"[\d\\=^]", gold)) and not _WORD.search(gold)
    return ("math" if is_math else "text"), ()


def _tests(value: Any) -> CodeTests | None:
    """The tests in a value: inputs and outputs, cases, or asserts; None if it has none."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, dict) and (inner := _first(value, "ground_truth", "test_cases", "tests")) is not None:
        return _tests(inner)
    if isinstance(value, dict) and isinstance(value.get("inputs"), list) and isinstance(value.get("outputs"), list):
        return _of_lists(value["inputs"], value["outputs"], str(value.get("fn_name") or ""))
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(case, dict) and "input" in case and "output" in case for case in value):
        name = str(_first(value[0], "fn_name", "func_name") or "")
        return _of_lists([case["input"] for case in value], [case["output"] for case in value], name)
    if all(isinstance(case, str) and case.lstrip().startswith("assert") for case in value):
        return CodeTests(style="program", checker="\n".join(value) + "\n")
    return None


def _of_lists(inputs: list[Any], outputs: list[Any], name: str) -> CodeTests:
    """Of standard input and output, or of the function that the tests name."""
    if not name:
        return stdin_tests([{"input": _lines(one), "output": _lines(other)} for one, other in _pairs(inputs, outputs)])
    wraps = all(isinstance(each, list) and len(each) == 1 for each in outputs)
    expected = [json.dumps(each[0] if wraps else each) for each in outputs]
    return called_tests(name, tuple(map(json.dumps, inputs)), tuple(expected))


def _pairs(inputs: list[Any], outputs: list[Any]) -> list[tuple[Any, Any]]:
    if len(inputs) != len(outputs):
        raise BadRow(f"its tests have {len(inputs)} inputs and {len(outputs)} outputs")
    return list(zip(inputs, outputs, strict=True))


def _lines(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
