"""What an agent names, found in the folder that the server was started in, and nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

from wfdsl.api import Checked, analyze, analyze_path
from wfdsl.errors import UsageError
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import full_id, request_of
from wfdsl.workers.pool import Pool, names_a_file

_MOST_LISTED: Final = 200
"""Workflow files that are listed. Our choice: a list that a model can read."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder: every path that is given must lead to a file inside it, links included."""

    path: Path

    def file(self, name: str) -> Path:
        """The file with this name.

        Raises:
            UsageError: it is outside the folder, or there is no such file.
        """
        try:
            found = (self.path / name).resolve()
            is_file = found.is_relative_to(self.path) and found.is_file()
        except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, links in a circle
            is_file = False
        if not is_file:
            raise UsageError(f"there is no file {name!r} in the folder {self.path}; paths are relative to it")
        return found

    def workflows(self) -> list[str]:
        """The workflow files, sorted; hidden folders are left out."""
        found: list[str] = []
        for place, folders, files in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
            found += [(Path(place) / name).relative_to(self.path).as_posix() for name in files if name.endswith(".wf")]
            if len(found) >= _MOST_LISTED:
                break
        return sorted(found)[:_MOST_LISTED]

    def pool(self, name: str) -> Pool:
        """The pool of this name, list of models or file.

        Raises:
            UsageError: there is none, or it is a file outside the folder.
        """
        models = [item.partition("@")[0] for item in name.split(",")]  # without the addresses of servers
        if any(_leaves(part) for model in models for part in model.split(":")):
            raise UsageError(f"pool {name!r} is outside the folder {self.path}; paths are relative to it")
        try:
            return Pool.load(str(self.file(name)) if names_a_file(name) else name)
        except OSError as error:  # a name that is too long
            raise UsageError(f"there is no pool {name[:80]!r}: {error.strerror}") from None

    def read(
        self, file: str | None, text: str | None, pool: Pool | None = None, params: dict[str, Any] | None = None
    ) -> Checked:
        """Read and check a file of the folder, or the text of a workflow file.

        Raises:
            UsageError: not one of the two is given, or the file cannot be read.
        """
        if (file is None) == (text is None):
            raise UsageError("give either file or text")
        if file is not None:
            return analyze_path(self.file(file), pool=pool, params=params, profile="lenient")
        return analyze(text or "", form="wf", pool=pool, params=params, name="text")

    def run(self, run_id: str, journal: Journal) -> tuple[str, RunRequest]:
        """A run that was started here: its whole id, and what it was asked.

        Raises:
            UsageError: the journal has none.
        """
        whole = full_id(journal.path, run_id)
        request = request_of(journal.path, whole)
        if request.origin.get("folder") != str(self.path):
            raise UsageError(f"run {whole!r} was not started by this server's folder")
        return whole, request


def _leaves(part: str) -> bool:
    part = part.strip()
    paths = PurePosixPath(part), PureWindowsPath(part)
    return part.startswith("~") or any(path.is_absolute() or ".." in path.parts for path in paths)
