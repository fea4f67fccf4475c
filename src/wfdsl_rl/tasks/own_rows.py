"""Rows that hold the fields of tasks: our own files, and other files whose columns are mapped to the fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from wfdsl.errors import UsageError
from wfdsl_rl.tasks.answer_rows import lettered
from wfdsl_rl.tasks.origin import BadRow, plain, texts, told
from wfdsl_rl.tasks.task import Kind, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wfdsl_rl.tasks.origin import Origin, Values

_KINDS = get_args(Kind)
_CONSTANT = "="
_TEXTS = ("id", "question", "gold", "kind", "source", "split", "grader")
FIELDS = (*_TEXTS, "choices", "tests", "metadata")
"""The fields of tasks, which columns can be mapped to. Any other name is kept as metadata."""


def parse_mapping(text: str) -> dict[str, str]:
    """`question=prompt,gold=answer` as a mapping of fields to columns. `kind==text` says a value, no column.

    Raises:
        UsageError: it has another form.
    """
    columns: dict[str, str] = {}
    for part in text.split(","):
        name, sign, column = part.partition("=")
        if not sign or not name.strip() or not column.strip():
            raise UsageError(f"--map {text}: {part!r} is not of the form FIELD=COLUMN, such as question=prompt")
        if name.strip() in columns:
            raise UsageError(f"--map {text}: {name.strip()!r} is mapped twice")
        columns[name.strip()] = column.strip()
    return columns


def own(row: Values, _origin: Origin) -> Task:
    """A row of one of our own files, as it was written."""
    try:
        # As JSON, where lists stand for tuples; dates of tables as text.
        return Task.model_validate_json(json.dumps(row, default=str, allow_nan=False))
    except ValidationError as error:
        raise BadRow(told(error)) from error
    except ValueError as error:
        raise BadRow(f"it cannot be written as JSON: {error}") from error


def mapped(columns: Mapping[str, str]) -> Callable[[Values, Origin], Task]:
    """A reader of rows whose columns are mapped to fields.

    Raises:
        UsageError: no column is mapped to the question.
    """
    if "question" not in columns:
        raise UsageError('the mapping has no "question": say which column holds it (--map question=prompt,gold=answer)')

    def read(row: Values, origin: Origin) -> Task:
        values = {name: _value(row, column) for name, column in columns.items()}
        return _task(values, origin)

    return read


def named(row: Values, origin: Origin) -> Task:
    """A row whose columns are called as the fields; all others are kept as metadata."""
    return _task(dict(row), origin)


def renamed(row: Values, columns: Mapping[str, str]) -> Values:
    """A row with the column names that a known format has."""
    return {**row, **{name: _value(row, column) for name, column in columns.items()}}


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


def _task(values: dict[str, Any], origin: Origin) -> Task:
    given = {name: plain(value) for name, value in values.items() if name in _TEXTS and value is not None}
    choices = texts(values, "choices") if values.get("choices") is not None else ()
    fields: dict[str, Any] = {
        "gold": "",
        "source": origin.source,
        "split": origin.split,
        **given,
        "kind": _kind(given, choices),
        "choices": choices,
        "metadata": {name: value for name, value in values.items() if name not in FIELDS and value is not None},
    }
    if choices and choices[0] not in given.get("question", ""):
        fields["question"] = lettered(given.get("question", ""), choices)
    for name in ("tests", "metadata"):
        fields |= {name: values[name]} if values.get(name) is not None else {}
    fields["id"] = origin.identify(given.get("id"), fields.get("question", ""), fields["gold"])
    return own(fields, origin)


def _kind(given: dict[str, str], choices: tuple[str, ...]) -> str:
    if "kind" in given:
        if given["kind"] not in _KINDS:
            raise BadRow(f"its kind is {given['kind']!r}: kinds are {', '.join(_KINDS)}")
        return given["kind"]
    if "grader" in given:
        return "custom"
    return "choice" if choices else "math"
