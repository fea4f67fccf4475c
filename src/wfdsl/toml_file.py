"""TOML files, read with errors that say where and what to do: the file, the table, the key, and what was meant.

Values of keys are never in these errors, since somebody may have put a secret there.
"""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_MAX_FILE_BYTES: Final = 1_048_576
_KEYS_THAT_ARE_SECRETS: Final = frozenset({"api_key", "key", "token"})


def read_toml_file(path: Path, what: str) -> dict[str, Any]:
    """The tables of a file; `what` is what errors call such a file.

    Raises:
        UsageError: it cannot be read, is too large, or is no TOML.
    """
    try:
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
        UsageError: the text is no TOML.
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
            raise UsageError(f'{place}: there is no key "{key}". {_cure(key, names)}')


def require_table(value: Any, place: str) -> dict[str, Any]:
    """A value that has to be a table.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(value, dict):
        raise UsageError(f"{place} is a table, not {type(value).__name__}")
    return value


def build_model(model: type[BaseModel], fields: Mapping[str, Any], place: str) -> Any:
    """The model with these fields.

    Raises:
        UsageError: one does not fit.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        key, reason = first_problem(error)
        raise UsageError(f"{place}: {key + ': ' if key else ''}{reason}") from None


def first_problem(error: ValidationError) -> tuple[str, str]:
    """The key of the first value that does not fit, with dots; and why it does not."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    said = first["msg"].removeprefix("Value error, ")
    reason = "is missing" if first["type"] == "missing" else said[:1].lower() + said[1:]
    return ".".join(map(str, first["loc"])), reason


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Which known word was meant; all of them if none is close."""
    names = sorted(known)
    near = get_close_matches(word, names, n=1)
    return f'Did you mean "{near[0]}"?' if near else f"Known: {', '.join(names)}"


def _cure(key: str, known: list[str]) -> str:
    if key in _KEYS_THAT_ARE_SECRETS:
        return "Keys do not belong in files that are shared: set api_key_env to the name of an environment variable"
    return did_you_mean(key, known)
