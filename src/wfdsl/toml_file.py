"""TOML files, read with errors that name the file, the table and the key, and say what to do.

Values of keys are never in these errors, since one may be a secret in the wrong place.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from wfdsl.config import did_you_mean
from wfdsl.errors import UsageError
from wfdsl.own_code import file_of

TABLES: Final = ("pool", "conductor", "budget", "run", "serve", "train")
"""The tables that a configuration file may have; a pool is read from the first one only."""
_MAX_FILE_BYTES: Final = 1_048_576
_KEYS_THAT_ARE_SECRETS: Final = frozenset({"api_key", "key", "token"})


def read_toml_file(path: Path, what: str) -> dict[str, Any]:
    """The tables of a file; `what` is what errors call such a file.

    Raises:
        UsageError: it cannot be read, is too large, or is not TOML.
    """
    try:
        if path.is_fifo():  # opening one waits until somebody writes into it
            raise UsageError(f"{path}: a {what} is a file, not a pipe")
        with path.open("rb") as file:
            raw = file.read(_MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise UsageError(f"{path}: cannot read this {what}: {getattr(error, 'strerror', None) or error}") from error
    if len(raw) > _MAX_FILE_BYTES:
        raise UsageError(f"{path}: a {what} has at most {_MAX_FILE_BYTES // 1024} KiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: this {what} is not a UTF-8 text (byte {error.start})") from error
    return parse_toml(text, str(path))


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """The tables of a text; `source` is what errors call it.

    Raises:
        UsageError: the text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: bad syntax, or a number with too many digits
        raise UsageError(f"{source}: not a TOML file: {error}") from error


def require_keys(table: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    """Refuse a key that is not known.

    Raises:
        UsageError: there is one; the error says which one was probably meant.
    """
    names = sorted(known)
    for key in table:
        if key not in names:
            raise UsageError(f'{place} has no key "{key}". {_cure(key, names)}')


def require_tables(tables: Mapping[str, Any], source: str) -> None:
    """Refuse a table that a configuration file cannot have.

    Raises:
        UsageError: there is one.
    """
    for name in tables:
        if name not in TABLES:
            raise UsageError(f'{source}: there is no table "{name}". {did_you_mean(name, TABLES)}')


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


def _cure(key: str, known: list[str]) -> str:
    if key in _KEYS_THAT_ARE_SECRETS:
        return "Keys do not belong in files that are shared: set api_key_env to the name of an environment variable"
    return did_you_mean(key, known)
