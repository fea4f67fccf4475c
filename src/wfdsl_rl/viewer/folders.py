"""Folders that have pages: those that a command is given, and folders inside of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

_DEEPEST: Final = 2
"""How many folders inside of a folder are looked into. Our choice."""
_MOST_FOLDERS: Final = 2_000


def find_folders(folders: Iterable[Path], is_wanted: Callable[[Path], bool]) -> list[Path]:
    """The folders that are wanted; nothing is looked for inside of one."""
    found: dict[Path, None] = {}
    left = [(folder.absolute(), 0) for folder in folders]
    for number, (folder, depth) in enumerate(left):
        if number >= _MOST_FOLDERS:
            break
        if is_wanted(folder):
            found[folder] = None
        elif depth < _DEEPEST:
            left += [(each, depth + 1) for each in _inside(folder)]
    return list(found)


def begins_with(path: Path, text: bytes) -> bool:
    """Whether a text is near the beginning of a file; one that may not be read has none of ours."""
    try:
        with path.open("rb") as file:
            return text in file.read(2000)
    except OSError:
        return False


def _inside(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(each.path) for each in entries if each.is_dir() and not each.name.startswith(".")]
    except OSError:
        return []
