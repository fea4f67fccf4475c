"""Conversion of rows to tasks: ids, required columns, rows with the fields of tasks, and column mappings.

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
from wfdsl.tasks.task import CodeTests, Kind, Task

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

    def task(
        self,
        question: str,
        gold: str,
        kind: Kind,
        *,
        given_id: object = None,
        choices: tuple[str, ...] = (),
        accepted: tuple[str, ...] = (),
        tests: CodeTests | None = None,
        metadata: Values | None = None,
    ) -> Task:
        """The validated task. Without an id in its row it gets one from its content.

        Raises:
            ValidationError: it could not be graded, or has no question.
            ValueError: its metadata holds a number that is not finite.
        """
        known = {name: value for name, value in (metadata or {}).items() if is_given(value)}
        return Task(
            id=self.identify(given_id, question, gold),
            question=question,
            gold=gold,
            kind=kind,
            source=self.source,
            split=self.split,
            choices=choices,
            accepted=accepted,
            tests=tests,
            metadata=json.loads(_ENCODER.encode(known)),  # JSON's own types: dates and decimals as text
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


def text(row: Values, *columns: str) -> str:
    """The value of the first of the columns that the row has, as text.

    Raises:
        BadRow: it has none of them, or they are empty.
    """
    for column in columns:
        value = row.get(column)
        if is_given(value) and str(value).strip():
            return plain(value)
    named = " or ".join(f'"{column}"' for column in columns)
    raise BadRow(f"it has no {named}")


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
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


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


def letter_of(answer: object, options: Sequence[str]) -> str:
    """The letter of an answer that is the index, the letter or the text of an option. Raises: BadRow."""
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


def lettered(question: str, options: Sequence[str]) -> str:
    """The question with its options below it, one per line: `A. first`."""
    lines = (f"{letter}. {option}" for letter, option in zip(ascii_uppercase, options, strict=False))
    return "\n".join([question.rstrip(), "", *lines])


def _said(question: Any) -> Any:
    """What the user says last in a chat; anything else as it is."""
    is_chat = isinstance(question, list) and all(isinstance(turn, dict) for turn in question)
    turns = [turn.get("content") for turn in question if turn.get("role") == "user"] if is_chat else []
    return turns[-1] if turns else question


def _choices(row: Values) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options of a row, and the labels of those that have their own, as ARC's may be numbers."""
    given = parsed(row.get("choices"), "choices")
    if given is None:
        return (), ()
    if isinstance(given, dict):
        return texts(given, "text"), texts(given, "label")
    return texts({"choices": given}, "choices"), ()


def own_task(row: Values, _origin: Origin) -> Task:
    """A row of a file that `save_tasks` wrote."""
    # As JSON, where tuples are lists; dates of tables as text.
    return Task.model_validate_json(json.dumps(row, default=str, allow_nan=False))


def named_task(row: Values, origin: Origin) -> Task:
    """A row whose columns have the names of fields; all others are kept as metadata."""
    row = {**row, "question": _said(row.get("question"))}
    given = {name: plain(row[name]) for name in _TEXT_FIELDS if row.get(name) is not None}
    choices, labels = _choices(row)
    if given.get("gold") in labels:
        given["gold"] = ascii_uppercase[labels.index(given["gold"])]
    elif choices and "gold" in given and given.get("kind", "choice") == "choice" and "," not in given["gold"]:
        given["gold"] = letter_of(row["gold"], choices)
    question, gold = given.get("question", ""), given.get("gold", "")
    if choices and choices[0] not in question:
        question = lettered(question, choices)
    fields: dict[str, Any] = {
        "source": origin.source,
        "split": origin.split,
        **given,
        "id": origin.identify(given.get("id"), question, gold),
        "question": question,
        "gold": gold,
        "kind": _kind(given, choices),
        "choices": choices,
        "metadata": {name: value for name, value in row.items() if name not in _FIELDS and value is not None},
    }
    fields |= {name: row[name] for name in ("tests", "metadata") if row.get(name) is not None}
    return own_task(fields, origin)


def mapped_task(columns: Mapping[str, str]) -> Reader:
    """A reader of rows whose columns are mapped to fields.

    Raises:
        UsageError: no column is mapped to the question.
    """
    if "question" not in columns:
        raise UsageError('the mapping has no "question": name its column (--map question=prompt,gold=answer)')
    return lambda row, origin: named_task({name: _value(row, column) for name, column in columns.items()}, origin)


def with_columns(reader: Reader, columns: Mapping[str, str]) -> Reader:
    """A reader of rows whose columns are mapped to the columns that `reader` reads."""
    return lambda row, origin: reader(
        {**row, **{name: _value(row, column) for name, column in columns.items()}}, origin
    )


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


def _kind(given: dict[str, str], choices: tuple[str, ...]) -> str:
    kinds = get_args(Kind)
    if "kind" in given:
        if given["kind"] not in kinds:
            raise BadRow(f"its kind is {given['kind']!r}: kinds are {', '.join(kinds)}")
        return given["kind"]
    if "grader" in given:
        return "custom"
    return "choice" if choices else "math"
