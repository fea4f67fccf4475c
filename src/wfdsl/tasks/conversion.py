"""Conversion of rows to tasks: cells, chats, options, ids, column mappings.

A row that cannot be converted is a `BadRow`; `load_tasks` adds its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any, TypeAlias

from pydantic import ValidationError

from wfdsl.errors import UsageError
from wfdsl.settings import problem_in
from wfdsl.tasks.task import Kind, Task, gold_letters

Values: TypeAlias = Mapping[str, Any]
"""A row: values by column."""

_ID_DIGITS = 12  # hexadecimal: 48 bits tell ten million rows apart
_CONSTANT = "="
_OPTION = re.compile(r"^\s*\(?([A-J])[.):][ \t]+(\S.*)$", re.MULTILINE)
_WORD = re.compile(r"(?<!\\)\b[^\W\d_]{3,}")
_FRAME = re.compile(r".*\bUser:\s*(\S.*?)\s+Assistant:\s*(?:<think>)?", re.DOTALL)
_MATH_TYPES = frozenset({"float", "integer", "fraction", "expression", "percentage", "matrix", "math"})


class BadRow(ValueError):  # noqa: N818  (it is the row that is bad)
    """A row that cannot be converted to a task. The message says why."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The data set and split that rows come from."""

    source: str
    split: str = ""

    def task(
        self,
        question: object,
        gold: object,
        kind: Kind | None = None,
        *,
        given_id: object = None,
        choices: object = None,
        answer_type: str = "",
        metadata: object = MappingProxyType({}),
        **fields: Any,
    ) -> Task:
        """The task of the values that a row has for a task's fields; other `fields` are taken as they are.

        Options are written below the question, unless it has them, and then the gold answer becomes a letter. Without
        a kind, the options and the gold answer decide; `answer_type` is what the data set says of the answer. Without
        an id the task gets one from its content. Metadata without a value are left out.

        Raises:
            BadRow: the task could not be graded, has no question, or cannot be written to a file.
        """
        asked = said(question)
        options: tuple[str, ...] = ()
        if choices is not None:
            options, labels = options_of(choices)
            gold = letter_of(gold, options, labels) if kind in (None, "choice") else plain(gold)
            asked = lettered(asked, options)
            kind = kind or "choice"
        answer = plain(gold)
        if kind is None:
            kind, options = _kind(answer, asked, answer_type)
        if not isinstance(metadata, Mapping):
            raise BadRow('"metadata" is not a record')
        known = {name: value for name, value in metadata.items() if is_given(value)}
        made = {"question": asked, "gold": answer, "kind": kind, "choices": options, "metadata": known}
        of_row = {"id": self.identify(given_id, asked, answer), "source": self.source, "split": self.split, **fields}
        return own_task({**of_row, **made})

    def identify(self, given: object, question: str, gold: str) -> str:
        """The id of a task: the given one prefixed with the source, or one from the content."""
        name = "" if given is None else plain(given).strip()
        if not name:
            # Half a surrogate pair cannot be encoded; the task is refused for it, with a better message.
            name = sha256(f"{question}\0{gold}".encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS]
        return name if name.lower().startswith(self.source.lower() + "/") else f"{self.source}/{name}"


Reader: TypeAlias = Callable[[Values, Origin], Task]
"""Makes a task of a row. Raises: BadRow."""


def own_task(row: Values, _origin: Origin | None = None) -> Task:
    """The task whose fields a row has, such as one of a file that `save_tasks` wrote.

    Raises:
        BadRow: the task could not be graded, or cannot be written to a file.
    """
    try:
        # As JSON, where tuples are lists; dates and decimals of tables as text.
        return Task.model_validate_json(_ENCODER.encode(row))
    except ValidationError as error:
        raise BadRow(problem_in(error)) from error
    except (ValueError, RecursionError) as error:
        raise BadRow(f"it cannot be written as JSON: {error}") from error


_ENCODER = json.JSONEncoder(default=str, allow_nan=False)  # made once: that takes longer than a row does


def named_task(row: Values, origin: Origin) -> Task:
    """A row whose columns have the names of fields; all others are kept as metadata."""
    others = {name: value for name, value in row.items() if is_given(value)}
    given = {name: others.pop(name) for name in Task.model_fields if name in others}
    usual = "custom" if "grader" in given else "code" if "tests" in given else None
    fields: dict[str, Any] = {"question": None, "gold": "", "kind": usual, "metadata": others, **given}
    given_id, choices = fields.pop("id", None), fields.pop("choices", None) or None
    return origin.task(**fields, given_id=given_id, choices=choices)


def _kind(gold: str, question: str, answer_type: str) -> tuple[Kind, tuple[str, ...]]:
    """How a gold answer is graded, and the options that the question has in its text."""
    if not gold.strip():
        raise BadRow("it has no gold answer")
    letter, options = gold.strip("(). "), _options_in(question)
    if letter and letter in ascii_uppercase[: len(options)]:
        return "choice", options
    if answer_type == "multiple choice" and letter in tuple("ABCDEFGHIJ"):
        return "choice", ()
    is_math = not answer_type and bool(re.search(r"[\d\\=^]", gold)) and not _WORD.search(gold)
    return ("math" if is_math or answer_type in _MATH_TYPES else "text"), ()


def first(row: Values, *columns: str) -> Any:
    """The value of the first of the columns that is not empty; None if all are."""
    return next((row[column] for column in columns if is_given(row.get(column))), None)


def text(row: Values, *columns: str) -> str:
    """The value of the first of the columns that is not empty, as text. Raises: BadRow."""
    value = first(row, *columns)
    if value is None or not plain(value).strip():
        raise BadRow("it has no " + " or ".join(f'"{column}"' for column in columns))
    return plain(value)


def is_given(value: object) -> bool:
    """Whether a cell has a value: not null, not empty, and not NaN, which tables have for empty cells."""
    return value is not None and value != "" and value == value  # noqa: PLR0124  (NaN is not equal to itself)


def plain(value: object) -> str:
    """A value as text: `145.0` as `145`, since data sets keep whole answers as decimals; a list of one as its value.

    Raises:
        BadRow: it is a list of several values, which may be all asked for or may each be right, or a record.
    """
    if isinstance(value, list) and len(value) == 1:
        return plain(value[0])
    if isinstance(value, list | dict):
        given = json.dumps(value, default=str, ensure_ascii=False)[:80]
        raise BadRow(f"a text is needed where it has {given}; write several values as one text, such as 1, 2")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def texts(value: object, column: str) -> tuple[str, ...]:
    """The list that a column holds; CSV files hold it as JSON. Raises: BadRow."""
    items = parsed(value, column)
    if not isinstance(items, list):
        raise BadRow(f'"{column}" is not a list')
    return tuple(map(plain, items))


def parsed(value: object, column: str) -> Any:
    """The value of a column's JSON text; a value that is not a text is returned unchanged. Raises: BadRow."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise BadRow(f'"{column}" is not JSON: {error}') from error


def said(question: object) -> str:
    """What the user says last in a chat, or a text, without a frame of `User: ... Assistant:`. Raises: BadRow."""
    if isinstance(question, list) and all(isinstance(turn, dict) for turn in question):
        question = next((turn.get("content") for turn in reversed(question) if turn.get("role") == "user"), None)
    text = "" if question is None else plain(question).strip()
    if not text:
        raise BadRow("it has no question, or no message of a user")
    framed = _FRAME.fullmatch(text)
    return framed[1] if framed else text


def options_of(choices: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options of a question, and their labels where they have some, as ARC's do. Raises: BadRow."""
    given = parsed(choices, "choices")
    options = texts(given.get("text") if isinstance(given, dict) else given, "choices")
    if not 2 <= len(options) <= len(ascii_uppercase):
        raise BadRow(f"it has {len(options)} options")
    return options, texts(given.get("label"), "label") if isinstance(given, dict) else ()


def letter_of(answer: object, options: Sequence[str], labels: Sequence[str] = ()) -> str:
    """The letter of an answer that is the label, the index, the letter or the text of an option; several as they are.

    Raises:
        BadRow: it is none of these.
    """
    given = plain(answer).strip() if answer is not None else ""
    letters = ascii_uppercase[: len(options)]
    if labels.count(given) == 1 and len(labels) == len(options):
        return letters[labels.index(given)]
    if given.isdecimal() and (given not in options or isinstance(answer, int)) and int(given) < len(options):
        return letters[int(given)]
    if (len(given) == 1 and given in letters) or ("," in given and gold_letters(given, options)):
        return given
    if options.count(given) == 1:
        return letters[options.index(given)]
    raise BadRow(f"the answer is {answer!r}: neither the index, nor the letter, nor the text of one of the options")


def lettered(question: str, options: Sequence[str]) -> str:
    """The question with its options below it, one per line (`A. first`); as it is if each follows its letter there."""
    pairs = list(zip(ascii_uppercase, options, strict=False))
    if all(re.search(rf"\b{letter}\W{{1,3}}{re.escape(option.strip())}", question) for letter, option in pairs):
        return question
    return "\n".join([question.rstrip(), "", *(f"{letter}. {option}" for letter, option in pairs)])


def _options_in(question: str) -> tuple[str, ...]:
    """The options that a question's lines begin with their letters; none if these are not A, B and so on."""
    found = {letter: option.strip() for letter, option in _OPTION.findall(question)}
    is_list = len(found) > 1 and "".join(found) == ascii_uppercase[: len(found)]
    return tuple(found.values()) if is_list else ()


def parse_mapping(text: str, option: str = "--map", example: str = "question=prompt") -> dict[str, str]:
    """`question=prompt,gold=answer` as a mapping of fields to columns. `kind==text` gives a value, not a column.

    Raises:
        UsageError: it has another form.
    """
    pairs = [[piece.strip() for piece in part.partition("=")] for part in text.split(",")]
    names = [name for name, _, _ in pairs]
    if not all(name and column for name, _, column in pairs) or len(set(names)) < len(names):
        raise UsageError(f"{option} {text}: give each name once, in the form {example},...")
    return {name: column for name, _, column in pairs}


def mapped(row: Values, columns: Mapping[str, str]) -> Values:
    """The columns that a mapping names, by their new names. Raises: BadRow."""
    return {name: _value(row, column) for name, column in columns.items()}


def _value(row: Values, column: str) -> Any:
    if column.startswith(_CONSTANT):
        return column.removeprefix(_CONSTANT)
    if column in row:
        return row[column]
    # `reward_model.ground_truth`: a field of a nested record.
    outer, dot, inner = column.partition(".")
    if dot and isinstance(row.get(outer), dict):
        return _value(row[outer], inner)
    raise BadRow(f"it has no {column!r}; its columns are {', '.join(map(str, row))}")
