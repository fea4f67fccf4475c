"""Formats of known data sets: how they are recognised by their columns, and the function that reads a row.

A format is recognised only by columns that no other data set has. Everything else is an error that names the columns
and how to map them: a wrong guess would silently give wrong gold answers. verl, PRIME, DAPO, RLPR, slime, OpenRLHF,
verifiers, TRL and most benchmarks differ in names only; there the gold answer decides how a row is graded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from string import ascii_uppercase
from typing import Any

from wfdsl.errors import UsageError
from wfdsl.tasks import code_formats
from wfdsl.tasks.conversion import (
    BadRow,
    Origin,
    Reader,
    Values,
    first,
    is_given,
    named_task,
    own_task,
    parsed,
    plain,
    text,
    texts,
)
from wfdsl.tasks.task import Kind, Task

_QUESTIONS = ("prompt", "input", "question", "problem", "instruction", "query", "messages")
_GOLDS = (
    *("reward_model", "label", "ground_truth", "answer", "expected_answer", "final_answer", "target", "solution"),
    *("tests", "verification_info"),
)
_TESTS = ("tests", "test_cases", "verification_info", "reward_model", "ground_truth", "label", "answer", "info")
_IDS = ("id", "question_id", "unique_id", "ID", "Record ID", "index")
_SUBJECTS = ("subject", "category", "type", "ability", "Type", "Subdomain", "question_concept")
_LEVELS = ("level", "difficulty", "Writer's Difficulty Estimate")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?:\{|(\S+))")


@dataclass(frozen=True, slots=True)
class Format:
    """How the rows of one data set are read."""

    name: str
    read: Reader
    signatures: tuple[str, ...]
    """Columns, joined by commas: a row with all columns of one of these has the format."""
    marks: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Texts that columns must contain."""
    named_by_file: bool = False
    """Whether the source of tasks is the name of their file, since any file may have this format."""


def _answered(kind: Kind | None = None, **about: str) -> Reader:
    """A reader of rows with a question and a gold answer, whatever their columns are called; `about` is metadata."""

    def read(row: Values, origin: Origin) -> Task:
        extra = (row[name] for name in ("extra_info", "info", "metadata") if isinstance(row.get(name), dict))
        known: Values = {**row, **next(extra, {})}
        question = first(row, *_QUESTIONS)
        more: dict[str, Any] = {"given_id": first(known, *_IDS), "metadata": {**_metadata(known), **about}}
        if kind == "choice":  # of the question in the row, and the index, letter, label or text of the right option
            options = first(row, "choices", "options") or list(filter(is_given, map(row.get, "ABCD")))
            return origin.task(row.get("question"), first(row, "answer", "answerKey"), kind, choices=options, **more)
        found = (code_formats.tests_in(row.get(name)) for name in _TESTS) if kind is None else ()
        if tests := next(filter(None, found), None):
            return origin.task(question, "", "code", tests=tests, **more)
        gold, *accepted = _golds(first(row, *_GOLDS))
        answer_type = str(known.get("answer_type") or row.get("ability") or "").lower()
        return origin.task(question, gold, kind, accepted=accepted, answer_type=answer_type, **more)

    return read


def _svamp(row: Values, origin: Origin) -> Task:
    """SVAMP: a body and a question, which are one text, and a number."""
    body = text(row, "Body").rstrip()
    stop = "" if body[-1] in ".?!,;:" else "."
    question = f"{body}{stop} {text(row, 'Question')}"
    return _answered("math")({**row, "question": question, "answer": row.get("Answer")}, origin)


def _gpqa(row: Values, origin: Origin) -> Task:
    """GPQA: the right option comes first in the file, so the options are put in an order that their text decides."""
    question, right = text(row, "Question").strip(), text(row, "Correct Answer").strip()
    wrong = [text(row, f"Incorrect Answer {number}").strip() for number in (1, 2, 3)]

    def mixed(option: str) -> bytes:
        return sha256(f"{question}\0{option}".encode("utf-8", "surrogatepass")).digest()

    options = sorted([right, *wrong], key=mixed)
    letter = ascii_uppercase[options.index(right)]
    return _answered("choice")({**row, "question": question, "choices": options, "answer": letter}, origin)


def _metadata(row: Values) -> dict[str, Any]:
    level = first(row, *_LEVELS)
    digits = str(level).removeprefix("Level ")  # of MATH
    return {
        "subject": first(row, *_SUBJECTS),
        "level": int(digits) if digits.isdecimal() else level,
        "answer_type": row.get("answer_type"),
        "data_source": row.get("data_source"),
    }


def _golds(value: Any) -> tuple[str, ...]:
    """The gold answer, and others that are right too. A worked solution has it in a box or after `####`."""
    if isinstance(value, str) and value.lstrip().startswith('{"value"'):
        value = parsed(value, "answer")
    if isinstance(value, dict) and "aliases" in value:  # of TriviaQA
        return (text(value, "value"), *texts(value["aliases"] or [], "aliases"))
    if isinstance(value, dict):
        value = value.get("ground_truth", value.get("target"))
    if isinstance(value, list) and value and not any(isinstance(each, list | dict) for each in value):
        return tuple(one for each in value for one in _golds(each))
    gold = plain(value).rpartition("####")[2].strip() if is_given(value) else ""
    if not gold:
        raise BadRow("it has no gold answer")
    boxes = list(_BOX.finditer(gold))
    return (_boxed(gold, boxes[-1]) if boxes else gold,)


def _boxed(solution: str, last: re.Match[str]) -> str:
    """The content of the last box of a solution, with balanced braces."""
    if last[1] is not None:  # `\boxed 3`
        return str(last[1]).strip("$.")
    depth = 1
    for mark in re.finditer(r"\\.|[{}]", solution[last.end() :], re.DOTALL):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0:
            return solution[last.end() :][: mark.start()].strip()
    raise BadRow("the last box of the solution is not closed")


_KNOWN = (
    Format("wfdsl", own_task, ("id,question,gold,kind",)),
    Format("fields", named_task, ("question,gold",), named_by_file=True),
    Format("math500", _answered("math"), ("problem,solution,answer,subject,level,unique_id",)),
    Format("math", _answered("math"), ("problem,solution,level",)),
    Format("gsm8k", _answered("math"), ("question,answer",), {"answer": "####"}),
    Format("svamp", _svamp, ("Body,Question,Answer",)),
    Format(
        "rlpr",  # and WebInstruct-verified
        _answered(domain="text"),
        ("prompt,reward_model,extra_info", "question,answer,answer_type"),
        {"extra_info": "answer_type"},
    ),
    Format(
        "trainer",  # AIME; rows of verl, PRIME, DAPO, slime, OpenRLHF, verifiers, TRL; questions with answers
        _answered(),
        tuple(f"{question},{gold}" for question in _QUESTIONS for gold in _GOLDS),
        named_by_file=True,
    ),
    Format("arc", _answered("choice"), ("question,choices,answerKey",)),  # and CommonsenseQA
    Format("triviaqa", _answered(), ("question,question_id,answer",), {"answer": "aliases"}),
    Format(
        "mmlu",
        _answered("choice"),
        ("question,choices,answer", "question,options,answer", "question,A,B,C,D,answer"),
    ),
    Format("gpqa", _gpqa, ("Question,Correct Answer,Incorrect Answer 1",)),
    Format(
        "livecodebench",
        code_formats.livecodebench,
        ("question_content,question_id,public_test_cases,private_test_cases",),
    ),
    Format("humaneval", code_formats.humaneval, ("task_id,prompt,entry_point,canonical_solution,test",)),
    Format("mbpp", code_formats.mbpp, ("task_id,code,test_list",)),
    Format("bigcodebench", code_formats.bigcodebench, ("task_id,complete_prompt,entry_point,test",)),
)

FORMATS: dict[str, Format] = {known.name: known for known in _KNOWN}
"""The known formats, by name."""


def recognise(row: Values, *, place: str) -> Format:
    """The format of a row, by its columns: the one of which the most are there.

    Raises:
        UsageError: no format fits. The message names the columns.
    """
    best = max(_KNOWN, key=lambda known: _fit(known, row))
    if not _fit(best, row):
        filled = [str(column) for column, value in row.items() if value is not None]
        raise UsageError(
            f"{place}: no known format has these columns ({', '.join(filled) or 'none'}): say which columns to "
            f"use (--map question=prompt,gold=answer), or name the format (--task-format {'|'.join(FORMATS)})"
        )
    return best


def _fit(known: Format, row: Values) -> int:
    """How many columns of the largest signature are there, twice; and one more for marks."""
    if not all(mark in str(row.get(column)) for column, mark in known.marks.items() if column in row):
        return 0
    there = {column for column, value in row.items() if value is not None}
    wanted = [set(signature.split(",")) for signature in known.signatures]
    sizes = [len(signature) for signature in wanted if signature <= there]
    return 2 * max(sizes) + bool(known.marks) if sizes else 0
