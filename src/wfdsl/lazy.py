"""Public names that are imported when they are first used, so that importing their package costs next to nothing.

The stub file of the package (`__init__.pyi`) says which names there are, and where they are defined.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

_IMPORT = re.compile(r"^from ([\w.]+) import (\w+)", re.MULTILINE)


def homes_of(file: str) -> dict[str, str]:
    """The modules of the public names of a package, which is the file `__init__.py`."""
    with open(f"{file}i", encoding="utf-8") as stub:  # noqa: PTH123  (start-up time: every command imports this module)
        return {name: home for home, name in _IMPORT.findall(stub.read())}


def public_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """What a package has as its `__getattr__`, `__dir__` and `__all__`."""
    homes = homes_of(file)
    names = sorted(homes)

    def value_of(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return value_of, names.copy, names
