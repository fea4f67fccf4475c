"""Rows with short answers or tests: benchmarks, and what trainers read, in columns of many names.

verl, PRIME, DAPO, RLPR, slime, OpenRLHF, verifiers, TRL and most benchmarks differ in names only. What the gold answer
is decides how a row is graded: tests make it code, a letter of the question's options choice, an expression math,
anything else text.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from string import ascii_uppercase
from typing import Any

from wfdsl.tasks.code_formats import called_tests, stdin_tests
from wfdsl.tasks.conversion import (
    BadRow,
    Origin,
    Reader,
    Values,
    first,
    is_given,
    letter_of,
    lettered,
    options_of,
    plain,
    said,
    text,
    texts,
)
from wfdsl.tasks.task import CodeTests, Kind, Task

QUESTIONS = ("prompt", "input", "question", "problem", "instruction", "query", "messages")
GOLDS = (
    *("reward_model", "label", "ground_truth", "answer", "expected_answer", "final_answer", "target", "solution"),
    *("tests", "verification_info"),
)
_TESTS = ("tests", "test_cases", "verification_info", "reward_model", "ground_truth", "label", "answer", "info")
_IDS = ("id", "question_id", "unique_id", "ID", "Record ID", "index")
_SUBJECTS = ("subject", "category", "type", "ability", "Type", "Subdomain", "question_concept")
_LEVELS = ("level", "difficulty", "Writer's Difficulty Estimate")
_FRAME = re.compile(r"\bUser:\s*(.*?)\s*(?:\n|\s)Assistant:", re.DOTALL)
_MATH_TYPES = frozenset({"float", "integer", "fraction", "expression", "percentage", "matrix", "math"})
_OPTION = re.compile(r"^\s*\(?([A-J])[.):][ \t]+(\S.*)$", re.MULTILINE)
_WORD = re.compile(r"(?<!\\)\b[^\W\d_]{3,}")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?:\{|(\S+))")
_CALCULATION = "<<"  # GSM8K's solutions mark each with it


def answered(kind: Kind | None = None, *, domain: str | None = None) -> Reader:
    """A reader of rows with a question and a gold answer, whatever their columns are called."""

    def read(row: Values, origin: Origin) -> Task:
        known = _known(row)
        question = asked(first(row, *QUESTIONS))
        about: Values = {"given_id": first(known, *_IDS), "metadata": {**_metadata(known), "domain": domain}}
        if kind is None and (tests := next(filter(None, (_tests(row.get(name)) for name in _TESTS)), None)):
            return origin.task(question, "", "code", tests=tests, **about)
        golds = _golds(first(row, *GOLDS))
        found, choices = _kind(golds[0], question, str(known.get("answer_type") or row.get("ability") or "").lower())
        choices = choices if kind is None else ()
        return origin.task(question, golds[0], kind or found, choices=choices, accepted=golds[1:], **about)

    return read


def svamp(row: Values, origin: Origin) -> Task:
    """SVAMP: a body and a question, which are one text, and a number."""
    body = text(row, "Body").rstrip()
    stop = "" if body[-1] in ".?!,;:" else "."
    return answered("math")(
        {**row, "question": f"{body}{stop} {text(row, 'Question')}", "answer": row.get("Answer")}, origin
    )


def choice(row: Values, origin: Origin) -> Task:
    """MMLU, MMLU-Pro, ARC and CommonsenseQA: options, and the index, letter, label or text of the right one."""
    options, labels = options_of(row)
    letter = letter_of(first(row, "answer", "answerKey"), options, labels)
    return _choice(row, origin, text(row, "question"), options, letter)


def gpqa(row: Values, origin: Origin) -> Task:
    """GPQA: the right option comes first in the file, so the options are put in an order that their text decides."""
    question, right = text(row, "Question").strip(), text(row, "Correct Answer").strip()
    wrong = [text(row, f"Incorrect Answer {number}").strip() for number in (1, 2, 3)]

    def mixed(option: str) -> bytes:
        return sha256(f"{question}\0{option}".encode("utf-8", "surrogatepass")).digest()

    options = tuple(sorted([right, *wrong], key=mixed))
    return _choice(row, origin, question, options, ascii_uppercase[options.index(right)])


def _choice(row: Values, origin: Origin, question: str, options: tuple[str, ...], letter: str) -> Task:
    if not 2 <= len(options) <= len(ascii_uppercase):
        raise BadRow(f"it has {len(options)} options")
    return origin.task(
        lettered(question, options),
        letter,
        "choice",
        given_id=first(row, *_IDS),
        choices=options,
        metadata=_metadata(row),
    )


def asked(prompt: object) -> str:
    """The question of a chat: what the user says last, without a frame of `User: ... Assistant:`."""
    content = said(prompt)
    framed = _FRAME.search(content) if isinstance(content, str) else None
    question = (framed[1] if framed else content).strip() if isinstance(content, str) else ""
    if not question:
        raise BadRow("it has no question, or no message of a user")
    return question


def boxed(solution: str) -> str:
    """The content of the last box of a solution, with balanced braces."""
    *_, last = _BOX.finditer(solution)
    if last[1] is not None:  # `\boxed 3`
        return str(last[1]).strip("$.")
    depth = 1
    for end in range(last.end(), len(solution)):
        mark = solution[end]
        if mark in "{}" and solution[end - 1] != "\\":
            depth += 1 if mark == "{" else -1
        if depth == 0:
            return solution[last.end() : end].strip()
    raise BadRow("the last box of the solution is not closed")


def _known(row: Values) -> Values:
    """A row with what trainers keep in a record of its own."""
    extra: Values = next(
        (row[name] for name in ("extra_info", "info", "metadata") if isinstance(row.get(name), dict)), {}
    )
    return {**row, **extra}


def _metadata(row: Values) -> dict[str, Any]:
    level = first(row, *_LEVELS)
    digits = str(level).removeprefix("Level ")  # of MATH
    calculations = str(row.get("answer")).count(_CALCULATION)
    return {
        "subject": first(row, *_SUBJECTS),
        "level": int(digits) if digits.isdecimal() else level,
        "answer_type": row.get("answer_type"),
        "data_source": row.get("data_source"),
        "calculations": calculations or None,
    }


def _golds(value: Any) -> tuple[str, ...]:
    """The gold answer, and others that are right too. A worked solution has it in a box or after `####`."""
    if isinstance(value, str) and value.lstrip().startswith('{"value"'):
        value = json.loads(value)
    if isinstance(value, dict) and "aliases" in value:  # of TriviaQA
        return (text(value, "value"), *(texts(value, "aliases") if value["aliases"] is not None else ()))
    if isinstance(value, dict):
        value = value.get("ground_truth", value.get("target"))
    if isinstance(value, list) and value and not any(isinstance(each, list | dict) for each in value):
        return tuple(one for each in value for one in _golds(each))
    if not is_given(value) or not plain(value).strip():
        raise BadRow("it has no gold answer")
    gold = plain(value).strip()
    if "####" in gold:
        gold = gold.rpartition("####")[2].strip()
    return (boxed(gold) if _BOX.search(gold) else gold,)


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
    if isinstance(value, dict) and (inner := first(value, "ground_truth", "test_cases", "tests")) is not None:
        return _tests(inner)
    if isinstance(value, dict) and isinstance(value.get("inputs"), list) and isinstance(value.get("outputs"), list):
        return _of_lists(value["inputs"], value["outputs"], str(value.get("fn_name") or ""))
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(case, dict) and "input" in case and "output" in case for case in value):
        name = str(first(value[0], "fn_name", "func_name") or "")
        return _of_lists([case["input"] for case in value], [case["output"] for case in value], name)
    if all(isinstance(case, str) and case.lstrip().startswith("assert") for case in value):
        return CodeTests(style="program", checker="\n".join(value) + "\n")
    return None


def _of_lists(inputs: list[Any], outputs: list[Any], name: str) -> CodeTests:
    """Of standard input and output, or of the function that the tests name."""
    if len(inputs) != len(outputs):
        raise BadRow(f"its tests have {len(inputs)} inputs and {len(outputs)} outputs")
    if not name:
        return stdin_tests(tuple(map(_lines, inputs)), tuple(map(_lines, outputs)))
    wraps = all(isinstance(each, list) and len(each) == 1 for each in outputs)
    expected = [json.dumps(each[0] if wraps else each) for each in outputs]
    return called_tests(name, tuple(map(json.dumps, inputs)), tuple(expected))


def _lines(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
