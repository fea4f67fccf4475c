"""Where a task comes from, and how a row of a data set is turned into one.

What is wrong with a row is a `BadRow`; whoever reads the file adds the place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import ValidationError

from wfdsl_rl.tasks.task import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl_rl.tasks.task import CodeTests, Kind

Values: TypeAlias = "Mapping[str, Any]"
"""A row, by column."""

_ID_DIGITS = 12  # hexadecimal: 48 bits tell ten million rows apart

_ENCODER = json.JSONEncoder(default=str, allow_nan=False)  # made once: it costs more than a row's metadata


class BadRow(ValueError):  # noqa: N818  (it is the row that is bad)
    """A row that is no task. The message says what is missing."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The data set and the part of it that rows come from."""

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
        tests: CodeTests | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Task:
        """The task, checked. Without an id of its own it gets one from its content.

        Raises:
            BadRow: it could not be judged, or has no question.
        """
        try:
            task = Task(
                id=self.identify(given_id, question, gold),
                question=question,
                gold=gold,
                kind=kind,
                source=self.source,
                split=self.split,
                choices=choices,
                tests=tests,
                metadata=_as_json(metadata or {}),
            )
            # A task that cannot be written would fail much later, when results are.
            task.model_dump_json()
        except ValidationError as error:
            raise BadRow(told(error)) from error
        except ValueError as error:
            raise BadRow(f"it cannot be written as JSON: {error}") from error
        return task

    def identify(self, given: object, question: str, gold: str) -> str:
        """The id of a task: the given one below the source, or one from the content."""
        if given is None or not str(given).strip():
            # Half a surrogate pair cannot be encoded; the task is refused for it, with a better message.
            content = f"{question}\0{gold}".encode("utf-8", "surrogatepass")
            return f"{self.source}/{sha256(content).hexdigest()[:_ID_DIGITS]}"
        name = str(given).strip()
        return name if name.lower().startswith(self.source.lower() + "/") else f"{self.source}/{name}"


def _as_json(metadata: Values) -> dict[str, Any]:
    """What is known, in JSON's own types; dates and decimals as text.

    Raises:
        ValueError: a number is not finite.
    """
    known = {name: value for name, value in metadata.items() if is_given(value)}
    as_json: dict[str, Any] = json.loads(_ENCODER.encode(known))
    return as_json


def told(error: ValidationError) -> str:
    """What pydantic found, on one line."""
    found = error.errors(include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}".lstrip(": ") for one in found)


def text(row: Values, *columns: str) -> str:
    """The first of the columns that the row has, as text.

    Raises:
        BadRow: it has none of them, or nothing in it.
    """
    for column in columns:
        value = row.get(column)
        if is_given(value) and str(value).strip():
            return plain(value)
    named = " or ".join(f'"{column}"' for column in columns)
    raise BadRow(f"it has no {named}")


def is_given(value: object) -> bool:
    """Whether a cell holds something: no null, empty text, or NaN, which tables have for cells that are not filled."""
    return value is not None and value != "" and value == value  # noqa: PLR0124  (NaN is unlike itself)


def plain(value: object) -> str:
    """A value as text: `145.0` as `145`, since data sets keep whole answers as decimals."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def texts(row: Values, column: str) -> tuple[str, ...]:
    """A column that holds a list; CSV files hold it as JSON.

    Raises:
        BadRow: there is no list.
    """
    value = row.get(column)
    if isinstance(value, str):
        value = parsed(value, column)
    if not isinstance(value, (list, tuple)):
        raise BadRow(f'"{column}" holds no list')
    return tuple(plain(item) for item in value)


def parsed(value: object, column: str) -> Any:
    """What a column's JSON text stands for; a value that is no text is taken as it is.

    Raises:
        BadRow: it is no JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadRow(f'"{column}" is not JSON: {error}') from error
