"""wfdsl: the workflow language of LLM Conductors, its interpreter, tasks with gold answers, grading and evaluation.

The public names are those of `__init__.pyi`. Each is imported when it is first used, so that `import wfdsl` costs next
to nothing.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from wfdsl._version import __version__

_IMPORT = re.compile(r"^from wfdsl\.([a-z_.]+) import (\w+)", re.MULTILINE)
_HOMES = {name: home for home, name in _IMPORT.findall(Path(__file__).with_suffix(".pyi").read_text("utf-8"))}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604  (the names of the stub file)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'wfdsl' has no attribute {name!r}")
    value = getattr(import_module(f"wfdsl.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
