"""Formats of data sets with short answers: MATH, GSM8K, SVAMP, AIME, RLPR, MMLU and GPQA."""

from __future__ import annotations

import re
from hashlib import sha256
from string import ascii_uppercase
from typing import Any

from wfdsl.tasks.conversion import BadRow, Origin, Values, is_given, lettered, plain, text, texts
from wfdsl.tasks.task import Kind, Task

_CALCULATION = "<<"  # GSM8K's solutions mark each with it
_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?:\{|(\S+))")
_CHAT_FRAME = re.compile(r"\bUser:\s*(.*?)\s*(?:\n|\s)Assistant:", re.DOTALL)
_MATH_ANSWERS = frozenset({"float", "integer", "fraction", "expression", "percentage", "matrix"})
"""The answer types of WebInstruct that are compared as mathematics."""


def math(row: Values, origin: Origin) -> Task:
    """MATH (hendrycks/competition_math) and MATH-500: the answer has a column, or is boxed in the solution."""
    given = row.get("answer")
    gold = plain(given) if is_given(given) else _boxed(text(row, "solution"))
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


def rlpr(row: Values, origin: Origin) -> Task:
    """RLPR, whose prompts are chats, and WebInstruct-verified, from which it comes. The domain is `text`."""
    extra = row.get("extra_info")
    known: Values = extra if isinstance(extra, dict) else row
    answer_type = str(known.get("answer_type") or "")
    gold = _true_answer(row)
    return origin.task(
        _asked(row.get("prompt")) if "prompt" in row else text(row, "question"),
        gold,
        _kind(answer_type, gold),
        given_id=_first(known, "id", "index"),
        metadata={
            "domain": "text",
            "subject": known.get("category") or row.get("ability"),
            "level": known.get("difficulty"),
            "answer_type": answer_type,
        },
    )


def mmlu(row: Values, origin: Origin) -> Task:
    """MMLU and MMLU-Pro: the answer is an index, a letter, or the text of an option."""
    options = _options(row)
    return origin.task(
        lettered(text(row, "question"), options),
        _letter(row.get("answer"), options),
        "choice",
        given_id=row.get("question_id"),
        choices=options,
        metadata={"subject": _first(row, "subject", "type", "category")},
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


def _boxed(solution: str) -> str:
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


def _true_answer(row: Values) -> str:
    model = row.get("reward_model")
    if not isinstance(model, dict):
        return text(row, "answer")
    gold = model.get("ground_truth")
    if isinstance(gold, list) and len(gold) == 1:
        gold = gold[0]
    return text({"reward_model.ground_truth": gold}, "reward_model.ground_truth")


def _asked(prompt: object) -> str:
    """The question of a chat: what the user says last, without a frame of `User: ... Assistant:`."""
    if isinstance(prompt, str):
        said = prompt
    else:
        turns = [turn for turn in prompt if isinstance(turn, dict)] if isinstance(prompt, list) else []
        said = next((str(turn.get("content") or "") for turn in reversed(turns) if turn.get("role") == "user"), "")
    framed = _CHAT_FRAME.search(said)
    question = (framed.group(1) if framed else said).strip()
    if not question:
        raise BadRow('"prompt" has no message of a user')
    return question


def _kind(answer_type: str, gold: str) -> Kind:
    if answer_type.lower() in _MATH_ANSWERS:
        return "math"
    # The options are part of the question's text.
    return "choice" if answer_type.lower() == "multiple choice" and gold in tuple("ABCDEFGHIJ") else "text"


def _options(row: Values) -> tuple[str, ...]:
    column = next((name for name in ("choices", "options") if row.get(name) is not None), None)
    options = texts(row, column) if column else tuple(text(row, letter) for letter in "ABCD")
    if not 2 <= len(options) <= len(ascii_uppercase):
        raise BadRow(f"it has {len(options)} options")
    return options


def _letter(answer: object, options: tuple[str, ...]) -> str:
    given = plain(answer).strip() if answer is not None else ""
    letters = ascii_uppercase[: len(options)]
    if given.isdecimal() and given not in options and int(given) < len(options):
        return letters[int(given)]
    if isinstance(answer, int) and 0 <= answer < len(options):
        return letters[answer]
    if len(given) == 1 and given in letters:
        return given
    if options.count(given) == 1:
        return letters[options.index(given)]
    raise BadRow(f'"answer" is {answer!r}: neither the index, nor the letter, nor the text of one of the options')


def _mixed(question: str, option: str) -> str:
    return sha256(f"{question}\0{option}".encode("utf-8", "surrogatepass")).hexdigest()
