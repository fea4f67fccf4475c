"""Your own Python where a command takes a name: `file.py:name`, or `module:name`, is an object in it."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from wfdsl.errors import UsageError

_IN_A_FILE: Final = re.compile(r"(?P<file>.+\.py):[^\W\d]\w*")


def file_of(text: str) -> Path | None:
    """The file of `file.py:name`; None if a text has another form."""
    found = _IN_A_FILE.fullmatch(text)
    return None if found is None else Path(found["file"])


def load_object(text: str, *, installed: bool = False) -> Any:
    """The object that `file.py:name` or `module:name` names.

    Files run once in a process, and import those beside them. Modules may be in the current folder, unless installed.

    Raises:
        UsageError: the text has another form, there is no such file, module or name, or the code fails as it is run.
    """
    place, _, name = text.rpartition(":")
    if not place or not name.isidentifier():
        raise UsageError(f"{text!r} does not name an object: write file.py:name or module:name")
    file = file_of(text)
    if file is not None and not file.is_file():
        raise UsageError(f"{text}: there is no file {file}")
    try:
        if file is None and not installed:
            _find_also_in(Path.cwd())
        module = import_module(place) if file is None else _module_of_file(file.resolve())
    except Exception as error:
        raise UsageError(f"{text}: cannot be imported: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise UsageError(f"{text}: {place} has no {name!r}")
    return getattr(module, name)


def load_function(text: str) -> Any:
    """The function, or other object that can be called, that a text names.

    Raises:
        UsageError: as `load_object` does, or it cannot be called.
    """
    found = load_object(text)
    if not callable(found):
        raise UsageError(f"{text}: must be a function (got {type(found).__name__})")
    return found


def _module_of_file(file: Path) -> ModuleType:
    from hashlib import sha256  # noqa: PLC0415  (start-up time: most commands load no such file)
    from importlib.util import module_from_spec, spec_from_file_location  # noqa: PLC0415

    name = f"own_code_{file.stem}_{sha256(str(file).encode()).hexdigest()[:8]}"  # no other module has it
    if name in sys.modules:
        return sys.modules[name]
    _find_also_in(file.parent)
    spec = spec_from_file_location(name, file)
    assert spec is not None  # the file ends with .py
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _find_also_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last: a file of one's own must not hide an installed package
