"""Where keys are read. They are read when a worker is built, and live only in the client that sends them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from wfdsl.workers.pool import WorkerEntry

_MAX_KEY_FILE_BYTES: Final = 65_536


def read_key(entry: WorkerEntry, usual_variable: str | None) -> str | None:
    """The key of a worker; None for a server that needs none (`base_url` is set, and no key named).

    Raises:
        UsageError: the variable is not set, or the file cannot be read.
    """
    if entry.api_key_file is not None:
        return _from_file(entry, Path(entry.api_key_file).expanduser())
    if entry.api_key_env is not None:
        return read_variable(entry, entry.api_key_env, "a key")
    if usual_variable is None or entry.base_url is not None:
        return None
    return read_variable(entry, usual_variable, "a key")


def read_variable(entry: WorkerEntry, variable: str, what: str) -> str:
    """The value of an environment variable that an entry names.

    Raises:
        UsageError: it is not set, or holds what no header may hold.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise UsageError(
            f'worker "{entry.name}" needs {what}: set the environment variable {variable}, '
            f"or name another place in the pool file (api_key_env, api_key_file)"
        )
    return _one_line(entry, value, f"the environment variable {variable}")


def _from_file(entry: WorkerEntry, path: Path) -> str:
    try:
        with path.open("rb") as file:
            value = file.read(_MAX_KEY_FILE_BYTES).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise UsageError(f'worker "{entry.name}": cannot read the key file {path}: {reason}') from None
    if not value:
        raise UsageError(f'worker "{entry.name}": the key file {path} is empty')
    return _one_line(entry, value, f"the key file {path}")


def _one_line(entry: WorkerEntry, value: str, where: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise UsageError(f'worker "{entry.name}": {where} must hold the key alone, in one line of ASCII')
    return value
