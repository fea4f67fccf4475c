"""Formats of data sets with short answers: MATH, GSM8K, SVAMP, AIME, MMLU, ARC, CommonsenseQA, TriviaQA and GPQA."""

from __future__ import annotations

import re
from hashlib import sha256
from string import ascii_uppercase
from typing import Any

from wfdsl.tasks.conversion import BadRow, Origin, Values, is_given, letter_of, lettered, parsed, plain, text, texts
from wfdsl.tasks.task import Task

_CALCULATION = "<<"  # GSM8K's solutions mark each with it
_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?:\{|(\S+))")


def math(row: Values, origin: Origin) -> Task:
    """MATH (hendrycks/competition_math) and MATH-500: the answer has a column, or is boxed in the solution."""
    given = row.get("answer")
    gold = plain(given) if is_given(given) else boxed(text(row, "solution"))
    return origin.task(
        text(row, "problem"),
        gold,
        "math",
        given_id=row.get("unique_id"),
        metadata={"subject": row.get("subject") or row.get("type"), "level": _level(row.get("level"))},
    )


def aime(row: Values, origin: Origin) -> Task:
    """AIME in the columns that its copies have: `problem`, `Problem` or `question`, with `answer` or `Answer`."""
    gold = text(row, "answer", "Answer")
    return origin.task(
        text(row, "problem", "Problem", "question"),
        # Answers are integers from 000 to 999, with or without the zeros.
        str(int(gold)) if gold.isdecimal() else gold,
        "math",
        given_id=_first(row, "id", "ID", "problem_idx"),
        metadata={"year": row.get("year")},
    )


def gsm8k(row: Values, origin: Origin) -> Task:
    """GSM8K: the answer follows `####` at the end of the worked solution."""
    solution = text(row, "answer")
    _, marker, gold = solution.rpartition("####")
    if not marker:
        raise BadRow('"answer" has no `####` before the final answer')
    return origin.task(
        text(row, "question"),
        gold.strip().replace(",", ""),
        "math",
        metadata={"calculations": solution.count(_CALCULATION)},
    )


def svamp(row: Values, origin: Origin) -> Task:
    """SVAMP: a body and a question, which are one text, and a number."""
    body = text(row, "Body").rstrip()
    stop = "" if body[-1] in ".?!,;:" else "."
    return origin.task(
        f"{body}{stop} {text(row, 'Question')}",
        text(row, "Answer"),
        "math",
        given_id=row.get("ID"),
        metadata={"subject": row.get("Type")},
    )


def mmlu(row: Values, origin: Origin) -> Task:
    """MMLU and MMLU-Pro: the answer is an index, a letter, or the text of an option."""
    options = _options(row)
    return origin.task(
        lettered(text(row, "question"), options),
        letter_of(row.get("answer"), options),
        "choice",
        given_id=row.get("question_id"),
        choices=options,
        metadata={"subject": _first(row, "subject", "type", "category")},
    )


def arc(row: Values, origin: Origin) -> Task:
    """ARC and CommonsenseQA: options with their labels, which may be numbers, and the label of the right one."""
    given = parsed(row.get("choices"), "choices")
    if not isinstance(given, dict):
        raise BadRow('"choices" is not a record of "text" and "label"')
    options, labels = texts(given, "text"), texts(given, "label")
    key = text(row, "answerKey").strip()
    if labels.count(key) != 1 or len(labels) != len(options):
        raise BadRow(f'"answerKey" is {key!r}: not one of the labels {", ".join(labels)}')
    return origin.task(
        lettered(text(row, "question"), options),
        ascii_uppercase[labels.index(key)],
        "choice",
        given_id=row.get("id"),
        choices=options,
        metadata={"subject": row.get("question_concept")},
    )


def triviaqa(row: Values, origin: Origin) -> Task:
    """TriviaQA: a text with its aliases, all of them right."""
    given = parsed(row.get("answer"), "answer")
    if not isinstance(given, dict):
        raise BadRow('"answer" is not a record of "value" and "aliases"')
    aliases = texts(given, "aliases") if given.get("aliases") is not None else ()
    return origin.task(
        text(row, "question"), text(given, "value"), "text", given_id=row.get("question_id"), accepted=aliases
    )


def gpqa(row: Values, origin: Origin) -> Task:
    """GPQA: the right option comes first in the file, so the options are put in an order that their text decides."""
    question = text(row, "Question").strip()
    right = text(row, "Correct Answer").strip()
    wrong = [text(row, f"Incorrect Answer {number}").strip() for number in (1, 2, 3)]
    options = tuple(sorted([right, *wrong], key=lambda option: _mixed(question, option)))
    return origin.task(
        lettered(question, options),
        ascii_uppercase[options.index(right)],
        "choice",
        given_id=row.get("Record ID"),
        choices=options,
        metadata={
            "subject": row.get("Subdomain"),
            "area": row.get("High-level domain"),
            "level": row.get("Writer's Difficulty Estimate"),
        },
    )


def _first(row: Values, *columns: str) -> Any:
    return next((row[column] for column in columns if is_given(row.get(column))), None)


def _level(value: object) -> object:
    """`Level 5` as 5."""
    digits = str(value).removeprefix("Level ")
    return int(digits) if digits.isdecimal() else value


def boxed(solution: str) -> str:
    """The content of the last box of a solution, with balanced braces."""
    found = list(_BOX.finditer(solution))
    if not found:
        raise BadRow('it has no "answer", and "solution" has no box')
    last = found[-1]
    if last.group(1) is not None:  # `\boxed 3`
        return str(last.group(1)).strip("$.")
    depth = 1
    for end in range(last.end(), len(solution)):
        mark = solution[end]
        if mark in "{}" and solution[end - 1] != "\\":
            depth += 1 if mark == "{" else -1
        if depth == 0:
            return solution[last.end() : end].strip()
    raise BadRow('the last box in "solution" is not closed')


def _options(row: Values) -> tuple[str, ...]:
    column = next((name for name in ("choices", "options") if row.get(name) is not None), None)
    options = texts(row, column) if column else tuple(text(row, letter) for letter in "ABCD")
    if not 2 <= len(options) <= len(ascii_uppercase):
        raise BadRow(f"it has {len(options)} options")
    return options


def _mixed(question: str, option: str) -> str:
    return sha256(f"{question}\0{option}".encode("utf-8", "surrogatepass")).hexdigest()
