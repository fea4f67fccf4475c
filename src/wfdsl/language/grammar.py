"""Where the grammar files are.

They lie beside the package in a wheel, and at the root of the repository in a checkout: there they are read in place,
so that no copy can be stale.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_PLACES = (_PACKAGE.parent.parent / "grammars", _PACKAGE / "grammars")


@cache
def grammar_folder() -> Path:
    """The folder with `conductor.lark`, `workflow.lark` and `literals.lark`.

    Raises:
        FileNotFoundError: the installation is damaged.
    """
    for place in _PLACES:
        if (place / "conductor.lark").is_file():
            return place
    raise FileNotFoundError(f"the grammar files are in none of {', '.join(map(str, _PLACES))}: reinstall wfdsl")
