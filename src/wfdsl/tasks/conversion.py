"""Conversion of rows to tasks: cells, ids, options, rows with the fields of tasks, and column mappings.

A row that cannot be converted is a `BadRow`; `load_tasks` adds its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from string import ascii_uppercase
from typing import Any, TypeAlias, get_args

from pydantic import ValidationError

from wfdsl.errors import UsageError
from wfdsl.tasks.task import Kind, Task

Values: TypeAlias = Mapping[str, Any]
"""A row: values by column."""

_ID_DIGITS = 12  # hexadecimal: 48 bits tell ten million rows apart
_CONSTANT = "="
_TEXT_FIELDS = ("id", "question", "gold", "kind", "source", "split", "grader")
_FIELDS = (*_TEXT_FIELDS, "choices", "tests", "metadata")
"""The fields of tasks, which columns can be mapped to. Any other name is kept as metadata."""
_ENCODER = json.JSONEncoder(default=str, allow_nan=False)  # made once: it costs more than a row's metadata


class BadRow(ValueError):  # noqa: N818  (it is the row that is bad)
    """A row that cannot be converted to a task. The message says why."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The data set and split that rows come from."""

    source: str
    split: str = ""

    def task(self, question: str, gold: str, kind: Kind, *, given_id: object = None, **fields: Any) -> Task:
        """The validated task. Without an id in its row it gets one from its content.

        Raises:
            ValidationError: it could not be graded, or has no question.
            ValueError: its metadata holds a number that is not finite.
        """
        known = {name: value for name, value in fields.pop("metadata", {}).items() if is_given(value)}
        return Task(
            id=self.identify(given_id, question, gold),
            question=question,
            gold=gold,
            kind=kind,
            source=self.source,
            split=self.split,
            metadata=json.loads(_ENCODER.encode(known)),  # JSON's own types: dates and decimals as text
            **fields,
        )

    def identify(self, given: object, question: str, gold: str) -> str:
        """The id of a task: the given one prefixed with the source, or one from the content."""
        if given is None or not str(given).strip():
            # Half a surrogate pair cannot be encoded; the task is refused for it, with a better message.
            content = f"{question}\0{gold}".encode("utf-8", "surrogatepass")
            return f"{self.source}/{sha256(content).hexdigest()[:_ID_DIGITS]}"
        name = str(given).strip()
        return name if name.lower().startswith(self.source.lower() + "/") else f"{self.source}/{name}"


Reader: TypeAlias = Callable[[Values, Origin], Task]
"""Makes a task of a row; whatever is wrong with the row is a ValueError."""


def to_task(reader: Reader, row: Values, origin: Origin) -> Task:
    """The task of a row.

    Raises:
        BadRow: the row has no task, or one that cannot be written to a file.
    """
    try:
        task = reader(row, origin)
        task.model_dump_json()  # a task that cannot be written would fail much later, when results are
    except BadRow:
        raise
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        lines = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}".lstrip(": ") for one in found)
        raise BadRow("; ".join(lines)) from error
    except ValueError as error:
        raise BadRow(f"it cannot be written as JSON: {error}") from error
    return task


def first(row: Values, *columns: str) -> Any:
    """The value of the first of the columns that is not empty; None if all are."""
    return next((row[column] for column in columns if is_given(row.get(column))), None)


def text(row: Values, *columns: str) -> str:
    """The value of the first of the columns that the row has, as text.

    Raises:
        BadRow: it has none of them, or they are empty.
    """
    value = next((row[column] for column in columns if is_given(row.get(column)) and str(row[column]).strip()), None)
    if value is None:
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
    if isinstance(value, (list, tuple)) and len(value) == 1:
        return plain(value[0])
    if isinstance(value, (list, tuple, dict)):
        given = json.dumps(value, default=str, ensure_ascii=False)[:80]
        raise BadRow(f"a text is needed where it has {given}; write several values as one text, such as 1, 2")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def texts(row: Values, column: str) -> tuple[str, ...]:
    """A column that holds a list; CSV files hold it as JSON.

    Raises:
        BadRow: it does not hold a list.
    """
    value = parsed(row.get(column), column)
    if not isinstance(value, (list, tuple)):
        raise BadRow(f'"{column}" is not a list')
    return tuple(plain(item) for item in value)


def parsed(value: object, column: str) -> Any:
    """The value of a column's JSON text; a value that is not a text is returned unchanged.

    Raises:
        BadRow: the text is not JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadRow(f'"{column}" is not JSON: {error}') from error


def letter_of(answer: object, options: Sequence[str], labels: Sequence[str] = ()) -> str:
    """The letter of an answer that is the label, the index, the letter or the text of an option. Raises: BadRow."""
    given = plain(answer).strip() if answer is not None else ""
    letters = ascii_uppercase[: len(options)]
    if labels.count(given) == 1 and len(labels) == len(options):
        return letters[labels.index(given)]
    if given.isdecimal() and (given not in options or isinstance(answer, int)) and int(given) < len(options):
        return letters[int(given)]
    if len(given) == 1 and given in letters:
        return given
    if options.count(given) == 1:
        return letters[options.index(given)]
    raise BadRow(f"the answer is {answer!r}: neither the index, nor the letter, nor the text of one of the options")


def lettered(question: str, options: Sequence[str]) -> str:
    """The question with its options below it, one per line: `A. first`."""
    lines = (f"{letter}. {option}" for letter, option in zip(ascii_uppercase, options, strict=False))
    return "\n".join([question.rstrip(), "", *lines])


def options_of(row: Values) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options of a row, and the labels of those that have their own, as ARC's may be numbers."""
    column = next((name for name in ("choices", "options") if row.get(name) is not None), None)
    if column is None:
        return tuple(plain(row[letter]) for letter in "ABCD" if is_given(row.get(letter))), ()
    given = parsed(row[column], column)
    if isinstance(given, dict):
        return texts(given, "text"), texts(given, "label")
    return texts({column: given}, column), ()


def own_task(row: Values, _origin: Origin) -> Task:
    """A row of a file that `save_tasks` wrote."""
    # As JSON, where tuples are lists; dates of tables as text.
    return Task.model_validate_json(json.dumps(row, default=str, allow_nan=False))


def named_task(row: Values, origin: Origin) -> Task:
    """A row whose columns have the names of fields; all others are kept as metadata."""
    row = {**row, "question": said(row.get("question"))}
    given = {name: plain(row[name]) for name in _TEXT_FIELDS if row.get(name) is not None}
    choices, labels = options_of({"choices": row.get("choices")})
    is_choice = choices and given.get("kind", "choice") == "choice" and "," not in given.get("gold", ",")
    if is_choice:
        given["gold"] = letter_of(row["gold"], choices, labels)
    question, gold = given.get("question", ""), given.get("gold", "")
    if choices and choices[0] not in question:
        question = lettered(question, choices)
    fields: dict[str, Any] = {
        "source": origin.source,
        "split": origin.split,
        **given,
        "id": origin.identify(given.get("id"), question, gold),
        "question": question,
        "kind": _kind(given, choices),
        "gold": gold,
        "choices": choices,
        "metadata": {name: value for name, value in row.items() if name not in _FIELDS and value is not None},
    }
    fields |= {name: row[name] for name in ("tests", "metadata") if row.get(name) is not None}
    return own_task(fields, origin)


def said(question: Any) -> Any:
    """What the user says last in a chat; anything else as it is."""
    is_chat = isinstance(question, list) and all(isinstance(turn, dict) for turn in question)
    turns = [turn.get("content") for turn in question if turn.get("role") == "user"] if is_chat else []
    return turns[-1] if turns else question


def _kind(given: dict[str, str], choices: tuple[str, ...]) -> str:
    kind = given.get("kind", "custom" if "grader" in given else "choice" if choices else "math")
    if kind not in get_args(Kind):
        raise BadRow(f"its kind is {kind!r}: kinds are {', '.join(get_args(Kind))}")
    return kind


def parse_mapping(text: str) -> dict[str, str]:
    """`question=prompt,gold=answer` as a mapping of fields to columns. `kind==text` gives a value, not a column.

    Raises:
        UsageError: it has another form.
    """
    columns: dict[str, str] = {}
    for part in text.split(","):
        name, sign, column = (piece.strip() for piece in part.partition("="))
        if not (sign and name and column):
            raise UsageError(f"--map {text}: {part!r} is not of the form FIELD=COLUMN, such as question=prompt")
        if name in columns:
            raise UsageError(f"--map {text}: {name!r} is mapped twice")
        columns[name] = column
    return columns


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
