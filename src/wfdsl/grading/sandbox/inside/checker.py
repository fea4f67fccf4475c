"""The checker's side of the sandbox: runs a checking text, which holds the expected values, apart from the program.

The functions of the program are proxies here: a call goes out with its arguments and comes back with a value. The
values are plain data; anything else is an object of the class `Remote` below, which is equal to nothing. So the outcome
is what the checking text says about values, and nothing that a program does can change it.
"""

from __future__ import annotations

import ast
import builtins
import sys
from json import loads as from_json
from typing import TYPE_CHECKING

from wfdsl.grading.sandbox.inside.candidate import Candidate
from wfdsl.grading.sandbox.inside.start import quiet_channels, read_frame, write_frame
from wfdsl.grading.sandbox.inside.values import MALFORMED, CannotTravelError, pack, to_json, unpack

if TYPE_CHECKING:  # start-up time: every program waits for imports
    from typing import Any

_SHARED = frozenset(
    {"contextlib", "gc", "inspect", "io", "mock", "multiprocessing", "os", "pathlib", "shutil", "signal", "socket"}
    | {"subprocess", "tempfile", "threading", "matplotlib"}
)
"""Modules by which a checking text would look into the program's own process, its files or its output."""
_OF_PROCESS = ("stdout", "stdin", "stderr", "__globals__", "__code__")


class FoundError(BaseException):
    """What ends a check: its outcome and a reason. Not an Exception, so that no checking text catches it.

    `unjudged`: the checking text cannot tell. `wrong`: the program has broken the rules of the exchange. `together`:
    the checking text has to be in the program's own process.
    """


class Line:
    """The exchange with the program."""

    def __init__(self, inwards: int, outwards: int) -> None:
        self.inwards, self.outwards = inwards, outwards
        self.calls = 0
        self.broken: BaseException | None = None

    def ask(self, operation: str, target: str | int, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A result of the program. Its exceptions are raised here, by the name of their nearest built-in class."""
        self.calls += 1
        try:
            write_frame(self.outwards, to_json(pack([operation, target, list(arguments), named], self._handle)))
            return self._opened_reply(read_frame(self.inwards), arguments)
        except (FoundError, EOFError, CannotTravelError) as problem:
            self.broken = self.broken or problem  # whatever catches it in the checking text does not undo it
            raise

    def _opened_reply(self, payload: bytes, arguments: tuple[Any, ...]) -> Any:
        try:
            kind, *rest = from_json(payload)
            if kind == "result":
                changed = [unpack(one, self.opened) for one in rest[1]]
                for one, other in zip(arguments, changed, strict=True):
                    update(one, other)
                return unpack(rest[0], self.opened)
            problem = _raised(*rest) if kind == "raised" else f"the program's result cannot be looked at: {rest[0]}"
        except MALFORMED as broken:
            problem = f"the program sent something that is not a result: {broken}"
        raise FoundError("wrong", problem[:250]) if isinstance(problem, str) else problem

    def _handle(self, value: object) -> list[Any]:
        if isinstance(value, Remote):
            return ["object", [value.__dict__["_number"], ""]]
        raise CannotTravelError(f"a value of the class {type(value).__name__}")

    def opened(self, packed: list[Any]) -> object:
        """The proxy of a value that stayed with the program."""
        kind, (number, name) = packed
        return {"iterator": RemoteIterator, "object": Remote}[kind](self, int(number), str(name))


def _asks(operation: str) -> Any:
    return lambda self, /, *arguments, **named: self._line.ask(operation, self._number, arguments, named)


class Remote:
    """A value that stayed with the program: it can be called and asked, and is equal to nothing but itself."""

    def __init__(self, line: Line, number: int | str, name: str) -> None:
        self.__dict__.update(_line=line, _number=number, _name=name, __name__=name)

    __call__ = _asks("call")
    __iter__ = _asks("iter")
    __len__ = _asks("len")
    __getitem__ = _asks("getitem")
    __setitem__ = _asks("setitem")
    __setattr__ = _asks("setattr")

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._line.ask("getattr", self._number, (name,), {})


class RemoteIterator(Remote):
    """An iterator that stayed with the program."""

    __next__ = _asks("next")

    def __iter__(self) -> Any:
        return self


def _raised(names: list[str], message: str, ordinary: object) -> Exception | str:
    """An exception of the program as one of its nearest built-in class, or why it ends the check."""
    said = f"{names[0]}: {message}" if message else names[0]
    kinds = (getattr(builtins, name, None) for name in names)
    kind = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)), None)
    if kind is None or not ordinary:
        return f"the program raised {said}"
    try:
        made = kind(message)
    except TypeError:  # such as UnicodeDecodeError, which wants five arguments
        made = Exception(message)
    made.wfdsl_raised = said  # type: ignore[attr-defined]
    return made


def update(one: Any, other: Any) -> None:
    """Make an argument what the program has made of it."""
    if type(one) is not type(other) or one == other:
        return
    if isinstance(one, list | bytearray):
        one[:] = other
    elif isinstance(one, dict | set):
        one.clear()
        one.update(other)


def obstacle(tree: ast.Module) -> str:
    """What this text uses that cannot be had apart from the program; empty if it can be run there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            for name in (f"{module}.{alias.name}".strip(".") for alias in node.names):
                if _SHARED.intersection(name.split(".")):
                    return name
        elif isinstance(node, ast.Name) and node.id in ("open", "globals", "input"):
            return node.id
        elif isinstance(node, ast.Attribute) and node.attr in _OF_PROCESS:
            return f".{node.attr}"
    return ""


class Builtins(dict):  # type: ignore[type-arg]
    """The built-in names, and all others that a checking text reads and does not define: the program's, or modules."""

    def __init__(self, line: Line) -> None:
        super().__init__(vars(builtins))
        self.line = line

    def __missing__(self, name: str) -> Any:
        found = __import__(name) if name in sys.stdlib_module_names else Remote(self.line, name, name)
        return self.setdefault(name, found)


def namespace(line: Line, preamble: str, entry_point: str) -> dict[str, Any]:
    """What the checking text sees: the preamble's names, and proxies for those of the program."""
    module = type(sys)("checker")
    sys.modules["checker"] = module
    names = module.__dict__
    if preamble:
        try:
            exec(compile(preamble, "preamble.py", "exec", dont_inherit=True), names)
        except SyntaxError:
            pass  # it needs the program's text after it, and is run there
        except Exception as problem:
            said = f"the preamble cannot be run: {type(problem).__name__}: {problem}"
            raise FoundError("unjudged", said) from problem
    if entry_point:
        proxy = Remote(line, entry_point, entry_point.rpartition(".")[2])
        names[entry_point.partition(".")[0]] = names["candidate"] = proxy
    names["__builtins__"] = Builtins(line)
    return names


def parsed(source: str) -> Any:
    """The tree of a checking text."""
    return compile(source, "checker.py", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)


def run_check(source: str, line: Line, preamble: str, entry_point: str) -> None:
    """Run the text, the function `check` if it defines one, and its unittest classes, apart from the program."""
    tree = parsed(source)
    if used := obstacle(tree):
        raise FoundError("together", f"the checking text uses `{used}`")
    run_text(tree, namespace(line, preamble, entry_point))
    if line.broken is not None:
        raise line.broken
    if not line.calls:
        raise FoundError("unjudged", "the checking text never called the program")


def run_text(tree: Any, names: dict[str, Any]) -> None:
    """Run the text with these names, and what it defines as tests, until one fails."""
    exec(compile(tree, "checker.py", "exec", dont_inherit=True), names)
    if any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body):
        names["check"](names["candidate"])
    unittest: Any = sys.modules.get("unittest")  # slow to import, and a text without it has no such classes
    if unittest is None:
        return
    result = unittest.TestResult()
    result.addError = result.addFailure = result.addSubTest = let_out
    for value in list(names.values()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == names["__name__"]:
            unittest.defaultTestLoader.loadTestsFromTestCase(value).run(result)


def let_out(*found: Any) -> None:
    """Raise what a test raised, which `unittest` gives last."""
    if found[-1] is not None:
        raise found[-1][1]


def finding(source: str, problem: BaseException) -> list[str]:
    """The outcome of a check that ended with an exception, and its reason."""
    where = place(source, problem)
    raised = getattr(problem, "wfdsl_raised", None)
    if isinstance(problem, FoundError):
        outcome, reason = problem.args
        return [outcome, reason + (where if outcome == "wrong" else "")]
    if isinstance(problem, CannotTravelError):
        return ["unjudged", f"an argument cannot be sent to the program: {problem}"]
    if raised is not None:
        return ["wrong", f"the program raised {raised}{where}"]
    if isinstance(problem, AssertionError):
        return ["wrong", f"a check failed{where}"]
    if isinstance(problem, NameError | ImportError | SyntaxError):
        return ["unjudged", f"the checking text cannot be run here: {type(problem).__name__}: {problem}{where}"]
    return ["wrong", f"the check of a result stopped on {type(problem).__name__}: {str(problem)[:200]}{where}"]


def place(source: str, problem: BaseException) -> str:
    """The last line of the checking text that an exception came through."""
    found, trace = 0, problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "checker.py":
            found = trace.tb_lineno
        trace = trace.tb_next
    lines = source.splitlines()
    return f", line {found}: {lines[found - 1].strip()[:160]}" if 0 < found <= len(lines) else ""


def serve_checker() -> None:
    """Check once, and say what was found."""
    inwards, outwards = quiet_channels()
    preamble, source, entry_point = from_json(read_frame(inwards))
    line = Line(inwards, outwards)
    try:
        run_check(source, line, preamble, entry_point)
        found = ["right", f"all checks passed, with {line.calls} calls"]
    except BaseException as problem:  # noqa: BLE001  (whatever ends the check is what was found)
        found = finding(source, line.broken or problem)
    write_frame(outwards, to_json(["found", *found]))


def serve_together() -> None:
    """Load the program, run the checking text in the same process, and say what was found.

    For texts that mock, capture output or share files. A program can forge what is found here.
    """
    inwards, outwards = quiet_channels()
    preamble, program, source, entry_point = from_json(read_frame(inwards))
    candidate = Candidate()
    try:
        candidate.load(preamble, program)
        names = candidate.names
        sys.modules["__main__"] = sys.modules["solution"]  # where `mock.patch` looks for the program's names
        if entry_point:
            names["candidate"] = names.get(entry_point)
        run_text(parsed(source), names)
        found = ["right", "all checks passed"]
    except BaseException as problem:  # noqa: BLE001  (whatever ends the check is what was found)
        found = ["wrong", f"{type(problem).__name__}: {str(problem)[:200]}{place(source, problem)}"]
    write_frame(outwards, to_json(["found", *found]))
