"""The program's side of the sandbox: its functions are called from outside, and results go out.

Expected results are never here, and what this side writes counts as a result only. So a program that takes over this
process gains nothing: whatever it writes is compared with values that it never had.
"""

from __future__ import annotations

import builtins
import operator
import sys
from json import loads as from_json
from typing import TYPE_CHECKING

from wfdsl.grading.sandbox.inside.start import quiet_channels, read_frame, write_frame
from wfdsl.grading.sandbox.inside.values import CannotTravelError, pack, to_json, unpack

if TYPE_CHECKING:  # start-up time: every program waits for imports
    from types import CodeType
    from typing import Any


class Candidate:
    """The program, and the values of it that are known outside by a number."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.kept: list[object] = []

    def load(self, preamble: str, program: str) -> None:
        """Run the program's text as a module."""
        module = type(sys)("solution")
        sys.modules["solution"] = module
        self.names = module.__dict__
        for code in compiled(preamble, program):
            exec(code, self.names)

    def defines(self, path: str) -> bool:
        """Whether there is such a name, or such a method of a class."""
        first, _, rest = path.partition(".")
        return first in self.names and (not rest or hasattr(self.names[first], rest))

    def target(self, path: str | int) -> Any:
        """The function of this name, the method `Class.name` of a new object, or a value that was kept."""
        if isinstance(path, int):
            return self.kept[path]
        first, _, method = path.partition(".")
        found = self.names[first] if first in self.names else getattr(builtins, first)
        return getattr(found(), method) if method else found

    def keep(self, value: object) -> list[Any]:
        """A handle for a value that cannot travel."""
        self.kept.append(value)
        kind = "iterator" if hasattr(type(value), "__next__") else "object"
        return [kind, [len(self.kept) - 1, type(value).__name__]]

    def opened(self, packed: list[Any]) -> object:
        """A value that was kept, given back."""
        kind, (number, _) = packed
        if kind not in ("iterator", "object"):
            raise ValueError(f"no tag {kind!r}")
        return self.kept[number]

    def answer(self, payload: bytes) -> bytes:
        """The reply to an operation on a target, by the name of its function in `operator` or of a built-in one.

        Its result with what became of the arguments, or an exception.
        """
        name, path, arguments, named = unpack(from_json(payload), self.opened)
        operation = getattr(operator, name, None) or getattr(builtins, name)
        try:
            result = operation(self.target(path), *arguments, **named)
            return to_json(["result", pack(result, self.keep), [pack(one, self.keep) for one in arguments]])
        except CannotTravelError as problem:
            return to_json(["stuck", str(problem)])
        except BaseException as problem:  # noqa: BLE001  (whatever a program raises is its result)
            return to_json(failure(problem))


def compiled(preamble: str, program: str) -> list[CodeType]:
    """The program after its preamble: as one text, since it may be a function's body, or else as two."""
    try:
        return [compile(f"{preamble}{program}", "program.py", "exec", dont_inherit=True)]
    except SyntaxError:
        if not preamble:
            raise
        parts = {"preamble.py": preamble, "program.py": program}
        return [compile(text, name, "exec", dont_inherit=True) for name, text in parts.items()]


def failure(problem: BaseException) -> list[Any]:
    """An exception by the names of its classes, its own first."""
    names = [kind.__name__ for kind in type(problem).__mro__]
    try:
        message = str(problem)[:300]
    except Exception:  # noqa: BLE001  (a program's own __str__)
        message = ""
    return ["raised", names, message, isinstance(problem, Exception)]


def serve_candidate() -> None:
    """Load the program, then answer until the other side has gone."""
    inwards, outwards = quiet_channels()
    candidate = Candidate()
    preamble, program, needed = from_json(read_frame(inwards))
    try:
        candidate.load(preamble, program)
        reply: list[Any] = ["loaded", [name for name in needed if not candidate.defines(name)]]
    except BaseException as problem:  # noqa: BLE001  (whatever a program raises is its result)
        reply = failure(problem)
    write_frame(outwards, to_json(reply))
    while True:
        write_frame(outwards, candidate.answer(read_frame(inwards)))
