"""Options that are written down once: a field of a table with its default, limits, help and flag; and TOML files.

A table is a frozen dataclass of this kind:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Limits(Table):
        calls: int | None = option(None, "most calls", "--calls", ge=1)

The field is the key in a TOML file (`from_table`, `to_table`), the constructor's argument, the flag, the row of the
reference and the entry in manifests (`options_of`). pydantic checks values; it is imported for the first one that is
not a default. Values that are texts are never in errors, since one may be a secret in the wrong place.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

from wfdsl.errors import UsageError
from wfdsl.files import read_stream
from wfdsl.own_code import file_of

if TYPE_CHECKING:  # start-up time
    from pydantic import BaseModel, TypeAdapter

TABLES: Final = ("pool", "conductor", "budget", "run", "serve", "grading", "train")
"""The tables that a configuration file may have; a pool is read from the first one only."""
_T = TypeVar("_T")
_M = TypeVar("_M", bound="BaseModel")
_KEY: Final = "wfdsl.option"
_INTEGERS: Final = {"ge": -(2**63), "le": 2**63 - 1}  # what SQLite and TOML hold
_LONGEST_FILE: Final = 1_048_576  # characters; our choice
_SECRETS: Final = frozenset({"api_key", "key", "token"})


class Table:
    """The base of every table: a value that is not the default is checked when one is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the options; raises UsageError if a value has the wrong type or is outside its limits."""
        for field in options_of(type(self)):
            value = getattr(self, field.name)
            if value is not field.default and not field.is_plain(value) and (problem := field.problem(value)):
                raise UsageError(f"{field.name} {problem}")


@dataclass(frozen=True)
class Option:
    """One option of a table."""

    name: str
    type: Any
    """`bool`, `int`, `float`, `str`, a Literal of texts, a tuple of these, a mapping, or a table."""
    optional: bool = False
    """Whether None is a value."""
    default: Any = dataclasses.field(default_factory=lambda: MISSING)
    """`dataclasses.MISSING` if the option has to be given."""
    help: str = ""
    """One sentence without a full stop, with the unit."""
    flag: str | None = None
    """The long command line option; None: there is none."""
    metavar: str | None = None
    path: bool = False
    """Whether a value may be a path, which in a file is relative to the file."""
    default_text: str | None = None
    """How the default is described, where the value alone does not say it."""
    limits: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Limits by pydantic's names; of a tuple, those of its items."""

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The texts allowed; empty if the type is not a Literal."""
        return typing.get_args(self.type) if typing.get_origin(self.type) is Literal else ()

    @property
    def item(self) -> Any:
        """The type of the items, if the option takes several values; else None."""
        return typing.get_args(self.type)[0] if typing.get_origin(self.type) is tuple else None

    @property
    def placeholder(self) -> str:
        """What stands for a value in `--help`."""
        kind = self.type if self.item is None else self.item
        usual = {int: "N", float: "USD" if self.name == "usd" else "S" if self.name.endswith("s") else "X"}
        return self.metavar or usual.get(kind, "FILE" if self.path else "TEXT")

    @property
    def is_table(self) -> bool:
        """Whether the option is a table inside the table."""
        return isinstance(self.type, type) and issubclass(self.type, Table)

    def is_plain(self, value: Any) -> bool:
        """Whether a value is fine at a glance, without pydantic."""
        return (
            (value is None and self.optional)
            or (type(value) is self.type and (self.type is bool or self.is_table))
            or (type(value) is str and value in self.choices)
        )

    def problem(self, value: Any) -> str | None:
        """Why a value cannot be used, such as "must be at least 1 (got 0)"; None if it can be."""
        if self.is_table:
            return f"must be a table (got {type(value).__name__})"
        try:
            self._values.validate_python(value)
        except ValueError as error:
            return first_problem(error)[1]
        return None

    def read(self, text: str) -> Any:
        """The value that a flag's text says; for an option with several values, one of them.

        Raises:
            ValueError: it does not fit.
        """
        try:
            return self._texts.validate_strings(text)
        except ValueError as error:
            raise ValueError(first_problem(error)[1]) from None

    @cached_property
    def _values(self) -> TypeAdapter[Any]:
        kind = self._limited if self.item is None else tuple[self._limited, ...]  # type: ignore[name-defined]
        return _adapter(kind | None if self.optional else kind, strict=True)

    @cached_property
    def _texts(self) -> TypeAdapter[Any]:
        return _adapter(self._limited, strict=False)

    @property
    def _limited(self) -> Any:
        from pydantic import Field  # noqa: PLC0415  (start-up time)

        kind: Any = self.type if self.item is None else self.item
        limits = {**_INTEGERS, **self.limits} if kind is int else self.limits
        return Annotated[kind, Field(**limits)] if limits else kind


def _adapter(kind: Any, *, strict: bool) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415  (start-up time)

    return TypeAdapter(kind, config=ConfigDict(strict=strict, allow_inf_nan=False))


def option(
    default: Any = MISSING,
    help: str = "",  # noqa: A002  (the word of argparse and of every reader)
    flag: str | None = None,
    *,
    metavar: str | None = None,
    path: bool = False,
    default_text: str | None = None,
    **limits: Any,
) -> Any:
    """A field of a table; `Option` says what each argument means. `limits` are pydantic's: ge, gt, le, pattern ..."""
    about = {"help": help, "flag": flag, "metavar": metavar, "path": path, "default_text": default_text}
    metadata = {_KEY: {**about, "limits": limits}}
    if isinstance(default, type | dict):  # a table of defaults, or a mapping
        make = default if isinstance(default, type) else lambda: dict(default)
        return dataclasses.field(default_factory=make, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def options_of(table: type) -> tuple[Option, ...]:
    """The options of a table, in the order in which they are written."""
    if table not in _known:
        hints = typing.get_type_hints(table)
        _known[table] = tuple(
            Option(field.name, *_without_none(hints[field.name]), _default(field), **field.metadata[_KEY])
            for field in dataclasses.fields(table)
            if _KEY in field.metadata
        )
    return _known[table]


_known: dict[type, tuple[Option, ...]] = {}


def changed(table: _T, changes: Mapping[str, Any]) -> _T:
    """A table with other values for some options.

    Raises:
        UsageError: there is no such option, or a value does not fit.
    """
    if not changes:
        return table
    values = {field.name: getattr(table, field.name) for field in dataclasses.fields(table)}  # type: ignore[arg-type]
    for name in changes:
        if name not in values:
            raise UsageError(f"there is no option {name!r}. {did_you_mean(name, values)}")
    return type(table)(**{**values, **changes})


def not_default(table: Any) -> dict[str, Any]:
    """The options of a table whose values are not the defaults."""
    default, names = type(table)(), [each.name for each in options_of(type(table))]
    return {name: value for name in names if (value := getattr(table, name)) != getattr(default, name)}


def from_table(table: type[_T], values: Mapping[str, Any], place: str) -> _T:
    """A table from what `tomllib` reads: no unknown keys, no conversions but list to tuple.

    Args:
        table: The class.
        values: What was read.
        place: What errors call it, such as `run.toml: run`.

    Raises:
        UsageError: a key is not known, or a value does not fit.
    """
    fields = {field.name: field for field in options_of(table)}
    require_keys(values, fields, place)
    for name, field in fields.items():
        if field.default is MISSING and name not in values:
            raise UsageError(f"{place}.{name} must be given")
    return table(**{key: from_toml(fields[key], value, f"{place}.{key}") for key, value in values.items()})


def from_toml(field: Option, value: Any, place: str) -> Any:
    """The value of an option from what `tomllib` reads; `place` is what errors call it.

    Raises:
        UsageError: it does not fit.
    """
    if field.is_table:
        return from_table(field.type, require_table(value, place), place)
    if field.item is not None:
        value = tuple(value) if isinstance(value, list) else (value,)
    if problem := field.problem(value):
        raise UsageError(f"{place} {problem}")
    return value


def to_table(table: Any) -> dict[str, Any]:
    """A table as plain values, for TOML, JSON and manifests; options that are None are left out."""
    return {
        field.name: to_table(value) if isinstance(value, Table) else list(value) if isinstance(value, tuple) else value
        for field in options_of(type(table))
        if (value := getattr(table, field.name)) is not None
    }


def build_model(model: type[_M], fields: Mapping[str, Any], place: str) -> _M:
    """A pydantic model with these fields.

    Raises:
        UsageError: one does not fit.
    """
    try:
        return model.model_validate(fields)
    except ValueError as error:
        raise UsageError(f"{place}: {problem_in(error)}") from None


def problem_in(error: ValueError) -> str:
    """The first problem of an object, with its key."""
    return ": ".join(filter(None, first_problem(error)))


def first_problem(error: Any) -> tuple[str, str]:
    """The key of the first value that does not fit, with dots; and why it does not, with the value if it is no text.

    `error` is pydantic's ValidationError, a ValueError: to name it would import pydantic where nothing needs it.
    """
    first = error.errors(include_url=False, include_context=False)[0]
    reason, got = in_plain_words(first["msg"]), first["input"]
    shown = f" (got {got})" if got is None or isinstance(got, bool | int | float) else ""
    return ".".join(map(str, first["loc"])), f"{reason}{shown[:60]}"


def in_plain_words(message: str) -> str:
    """What pydantic says of a value, in the words of our own messages."""
    said = re.sub(r"^Value error, |, unable.*| after validation| or instance of \w+|(?<=be a) valid", "", message)
    said = re.sub(r"^\w+ should", "must", said)
    for words, plain in _PLAIN.items():
        said = said.replace(words, plain)
    return said[:1].lower() + said[1:]


_PLAIN: Final = {
    "Field required": "is missing",
    "Extra inputs are not permitted": "is not known",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "a integer": "a whole number",
    "a string": "a text",
    "a boolean": "true or false",
    "a dictionary": "an object",
    "a tuple": "a list",
    "match pattern '^[0-9a-f]{64}$'": "be 64 hexadecimal digits",
    "match pattern '^[A-Za-z_][A-Za-z0-9_]*$'": "be the name of an environment variable",
    r"match pattern '^(|\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))$'": "be a day, such as 2027-01-31",
}


def closest(wrong: str, known: Iterable[str]) -> str | None:
    """The known name that is written almost like a wrong one, or begins with it; None if none is."""
    import difflib  # noqa: PLC0415  (start-up time: only errors need it)

    folded, names = wrong.casefold(), {name.casefold(): name for name in known}
    if near := difflib.get_close_matches(folded, names, n=1):
        return names[near[0]]
    begun = (name for start, name in names.items() if start.startswith(folded))
    return next(begun, None) if len(wrong) >= 3 else None  # fewer characters begin too many names


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """The known name that is written almost like a wrong one, or all of them."""
    names = list(known)
    near = closest(wrong, names)
    return f"Did you mean {near}?" if near else f"Known: {', '.join(names)}"


def read_toml_file(path: Path, what: str) -> dict[str, Any]:
    """The tables of a file; `what` is what errors call such a file.

    Raises:
        UsageError: it cannot be read, is too large, or is not TOML.
    """
    try:
        if path.is_fifo():  # opening one waits until somebody writes into it
            raise UsageError(f"{path}: a {what} is a file, not a pipe")
        with path.open("rb") as file:
            text = read_stream(file, str(path), _LONGEST_FILE)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise UsageError(f"{path}: cannot read this {what}: {getattr(error, 'strerror', None) or error}") from error
    if text is None:
        raise UsageError(f"{path}: a {what} has at most {_LONGEST_FILE:,} characters")
    return parse_toml(text, str(path))


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """The tables of a text; `source` is what errors call it.

    Raises:
        UsageError: the text is not TOML.
    """
    import tomllib  # noqa: PLC0415  (start-up time)

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: bad syntax, or a number with too many digits
        raise UsageError(f"{source}: not a TOML file: {error}") from error


def require_keys(table: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    """Refuse a key that is not known.

    Raises:
        UsageError: there is one; the error says which one was probably meant.
    """
    names = list(known)
    for key in table:
        if key not in names:
            cure = "Keys do not belong in files that are shared: set api_key_env to the name of an environment variable"
            raise UsageError(f'{place} has no key "{key}". {cure if key in _SECRETS else did_you_mean(key, names)}')


def require_table(value: Any, place: str) -> dict[str, Any]:
    """A value that has to be a table.

    Raises:
        UsageError: it is not one.
    """
    if not isinstance(value, dict):
        raise UsageError(f"{place} must be a table, not {type(value).__name__}")
    return value


def relative_to(source: str, path_or_name: str) -> str:
    """What a file means by a path or a name: a file or folder next to it, if there is one, else what was written.

    A value counts as a path if it contains `/` or `.`, and as a name otherwise.
    """
    if not any(mark in path_or_name for mark in "./\\") or "\0" in path_or_name:
        return path_or_name
    near = Path(source).parent / path_or_name
    return str(near) if (file_of(str(near)) or near).exists() else path_or_name


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, False
    [kind] = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    return kind, True
