"""What is sent into the sandbox: the modules of `inside`, joined into one for each role, and compiled out here.

Compiling takes as long as starting an interpreter does, and the one inside is the same as the one outside.
"""

from __future__ import annotations
import __future__

import marshal
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, TypeAlias

from wfdsl_rl.grading.sandbox.inside import READY
from wfdsl_rl.grading.sandbox.limits import MIB

if TYPE_CHECKING:
    from wfdsl_rl.grading.sandbox.limits import SandboxLimits

Role: TypeAlias = Literal["program", "candidate", "checker"]
_UNBOUND = 1 << 30  # for what cannot be counted without walls: processes of the user, not of the program

_MODULES: dict[Role, tuple[str, ...]] = {
    "program": ("start", "program"),
    "candidate": ("start", "values", "candidate"),
    "checker": ("start", "values", "checker"),
}
_BEGINNINGS: dict[Role, str] = {
    "program": "ready(); run_program()",
    "candidate": "serve_candidate()",
    "checker": "serve_checker()",
}


_ANNOTATIONS = __future__.annotations.compiler_flag
_NEEDLESS = re.compile(r"^from (?:wfdsl_rl\S+|typing|__future__) import (?:\([^)]*\)|.*)$", re.MULTILINE)
"""Imports of each other, and what is slow to import and only there to be read."""

_FIRST = """\
import marshal, posix
left, parts = int(posix.read(0, 12)), []
while left:
    parts.append(posix.read(0, left))
    left -= len(parts[-1]) or left
exec(marshal.loads(b"".join(parts)))
"""


def text_of(role: Role, limits: SandboxLimits, *, walled: bool) -> str:
    """What the interpreter inside runs first: it reads the code of its role, and then binds itself."""
    processes = limits.processes if walled else _UNBOUND
    numbers = (limits.memory_mib * MIB, processes, limits.files_mib * MIB, limits.open_files)
    return f"{_FIRST}\nlimit{numbers}\nfirst_to_go()\nusual_names()\n{_BEGINNINGS[role]}\n"


@cache
def code_of(role: Role) -> bytes:
    """The code of a role, as `marshal` has it."""
    folder = files("wfdsl_rl.grading.sandbox.inside")
    text = "\n".join(folder.joinpath(f"{name}.py").read_text("utf-8") for name in _MODULES[role])
    alone = f"TYPE_CHECKING = False\nREADY = {READY!r}\n{_NEEDLESS.sub('', text)}"
    return marshal.dumps(compile(alone, "sandbox", "exec", _ANNOTATIONS, dont_inherit=True))
