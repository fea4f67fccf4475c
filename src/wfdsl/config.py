"""Options that are written down once: a field of a frozen dataclass with its default, limits, help and CLI flag.

A configuration is a frozen, slotted, keyword-only dataclass whose fields are made by `option` and whose `__post_init__`
calls `check_options`. The same class is a TOML table (`from_table`, `to_table`), the source of command line flags
(`options_of`) and a constructor argument. Errors name the option, its limit and the value that was given.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from typing import Any, Final, Literal, NamedTuple, TypeVar

from wfdsl.errors import UsageError

_T = TypeVar("_T")
_LARGEST_INTEGER: Final = 2**63 - 1  # what SQLite and TOML hold
_KEY: Final = "wfdsl.option"


class Option(NamedTuple):
    """What is known of one option, apart from its type."""

    help: str
    """One sentence without a full stop, with the unit. It is the text of `--help` and of the reference pages."""
    flag: str | None = None
    """The long command line option, such as `--max-depth`; None: there is none."""
    metavar: str | None = None
    minimum: float | None = None
    """The smallest value allowed; of a text, the fewest characters."""
    above: float | None = None
    """The value must be greater than this."""
    maximum: float | None = None
    """The largest value allowed."""
    pattern: str | None = None
    """A regular expression that a text must match as a whole."""
    path: bool = False
    """Whether a value may be a path, which in a file is relative to the file."""
    default_text: str | None = None
    """How the default is described, where the value alone does not say it."""


class OptionField(NamedTuple):
    """One option of a configuration class."""

    name: str
    type: Any
    """`bool`, `int`, `float`, `str`, a Literal of texts, a tuple of these, a mapping, or a configuration class."""
    optional: bool
    """Whether None is a value."""
    default: Any
    """`dataclasses.MISSING` if the option has to be given."""
    option: Option

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts allowed; empty if the type is not a Literal."""
        return typing.get_args(self.type) if typing.get_origin(self.type) is Literal else ()

    @property
    def item(self) -> Any:
        """The type of the items, if the option takes several values; else None."""
        return typing.get_args(self.type)[0] if typing.get_origin(self.type) is tuple else None

    @property
    def is_table(self) -> bool:
        """Whether the option is a configuration of its own, and so a table inside the table."""
        return dataclasses.is_dataclass(self.type)

    def problem(self, value: Any) -> str | None:
        """Why a value cannot be used, such as "must be at least 1 (got 0)"; None if it can be."""
        if value is None:
            return None if self.optional else "must be given (got None)"
        if self.item is not None:
            return self._problem_of_items(value)
        return _problem(self.type, self.option, value)

    def _problem_of_items(self, value: Any) -> str | None:
        if not isinstance(value, tuple):
            return f"must be a tuple (got {_shown(value)})"
        return next((why for item in value if (why := _problem(self.item, self.option, item)) is not None), None)


def option(
    default: Any = MISSING,
    *,
    help: str,  # noqa: A002  (the word of argparse and of every reader)
    flag: str | None = None,
    metavar: str | None = None,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    pattern: str | None = None,
    path: bool = False,
    default_text: str | None = None,
) -> Any:
    """A field of a configuration class; `Option` says what each argument means."""
    about = Option(
        help=help,
        flag=flag,
        metavar=metavar,
        minimum=minimum,
        above=above,
        maximum=maximum,
        pattern=pattern,
        path=path,
        default_text=default_text,
    )
    if isinstance(default, type) and dataclasses.is_dataclass(default):
        return dataclasses.field(default_factory=default, metadata={_KEY: about})
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata={_KEY: about})
    return dataclasses.field(default=default, metadata={_KEY: about})


def options_of(config: type) -> tuple[OptionField, ...]:
    """The options of a configuration class, in the order in which they are written."""
    found = _known.get(config)
    if found is None:
        found = _known[config] = _read_options(config)
    return found


_known: dict[type, tuple[OptionField, ...]] = {}
"""Reading the types of a class takes longer than checking its values, which is done for every run."""


def _read_options(config: type) -> tuple[OptionField, ...]:
    hints = typing.get_type_hints(config)
    return tuple(
        OptionField(field.name, *_without_none(hints[field.name]), _default(field), field.metadata[_KEY])
        for field in dataclasses.fields(config)
        if _KEY in field.metadata
    )


def check_options(config: Any) -> None:
    """Check every option of a configuration; for `__post_init__`.

    Raises:
        UsageError: a value has the wrong type or is outside its limits.
    """
    for field in options_of(type(config)):
        value = getattr(config, field.name)
        if value is field.default:
            continue  # most values: a text is checked in 0.1 ms
        problem = field.problem(value)
        if problem is not None:
            raise UsageError(f"{field.name} {problem}")


def from_table(config: type[_T], table: Mapping[str, Any], place: str, *, known: Iterable[str] = ()) -> _T:
    """A configuration from a table as `tomllib` reads it: no unknown keys, no conversions but list to tuple.

    Args:
        config: The class.
        table: The table.
        place: What errors call the table, such as `run.toml: run`.
        known: Further keys that the table may have, which are left to the caller.

    Raises:
        UsageError: a key is not known, or a value does not fit.
    """
    fields = {field.name: field for field in options_of(config)}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in fields and key in set(known):
            continue
        if key not in fields:
            raise UsageError(f'{place} has no key "{key}". {did_you_mean(key, fields)}')
        values[key] = from_toml(fields[key], value, f"{place}.{key}")
    missing = [name for name, field in fields.items() if field.default is MISSING and name not in values]
    if missing:
        raise UsageError(f"{place}.{missing[0]} must be given")
    return config(**values)


def from_toml(field: OptionField, value: Any, place: str) -> Any:
    """The value of an option from a value as `tomllib` reads it; `place` is what errors call it.

    Raises:
        UsageError: it does not fit.
    """
    if field.is_table:
        if not isinstance(value, Mapping):
            raise UsageError(f"{place} must be a table (got {_shown(value)})")
        return from_table(field.type, value, place)
    if field.item is not None:
        value = tuple(value) if isinstance(value, list) else (value,)
    problem = field.problem(value)
    if problem is not None:
        raise UsageError(f"{place} {problem}")
    return value


def to_table(config: Any) -> dict[str, Any]:
    """A configuration as plain values, for TOML, JSON and manifests; options that are None are left out."""
    table: dict[str, Any] = {}
    for field in options_of(type(config)):
        value = getattr(config, field.name)
        if value is not None:
            table[field.name] = _to_plain(value)
    return table


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """The known name that is written almost like a wrong one, or all of them."""
    import difflib  # noqa: PLC0415  (start-up time: only errors need it)

    names = list(known)
    close = difflib.get_close_matches(wrong, names, n=1)
    return f"Did you mean {close[0]}?" if close else f"Known: {', '.join(names)}"


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, False
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    assert len(kinds) == 1, f"{hint} has several types: an option has one, and perhaps None"
    return kinds[0], True


def _to_plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_table(value)
    return list(value) if isinstance(value, tuple) else value


def _problem(kind: Any, option: Option, value: Any) -> str | None:
    if typing.get_origin(kind) is Literal:
        allowed = typing.get_args(kind)
        names = ", ".join(f'"{name}"' for name in allowed)
        return None if value in allowed else f"must be one of {names} (got {_shown(value)})"
    if kind is str:
        return _text_problem(option, value)
    if kind in (int, float):
        return _number_problem(kind, option, value)
    if isinstance(kind, type) and not isinstance(value, kind):
        wanted = "true or false" if kind is bool else f"a {kind.__name__}"
        return f"must be {wanted} (got {_shown(value)})"
    return None


def _text_problem(option: Option, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"must be a text (got {_shown(value)})"
    if option.minimum and len(value) < option.minimum:
        return "must not be empty" if option.minimum == 1 else f"must have {option.minimum:g} characters or more"
    if option.pattern is not None and not re.fullmatch(option.pattern, value):
        return f"must match {option.pattern}"  # not shown: it may be a secret in the wrong place
    return None


def _number_problem(kind: type, option: Option, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else int):
        return f"must be {'a number' if kind is float else 'a whole number'} (got {_shown(value)})"
    if not math.isfinite(value) or abs(value) > _LARGEST_INTEGER:
        return f"must be a finite number (got {_shown(value)})"
    if option.minimum is not None and value < option.minimum:
        return f"must be at least {option.minimum:g} (got {value})"
    if option.above is not None and value <= option.above:
        return f"must be greater than {option.above:g} (got {value})"
    if option.maximum is not None and value > option.maximum:
        return f"must be at most {option.maximum:g} (got {value})"
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
