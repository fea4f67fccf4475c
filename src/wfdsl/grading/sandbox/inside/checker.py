"""The checker's side of the sandbox: runs a checking text, which holds the expected values, apart from the program.

The functions of the program are proxies here: a call goes out with its arguments and comes back with a value. The
values are plain data; anything else is an object of the class `Remote` below, which is equal to nothing. So the outcome
is what the checking text says about values, and nothing that a program does can change it.
"""

from __future__ import annotations

import ast
import builtins
import sys
from typing import TYPE_CHECKING

from wfdsl.grading.sandbox.inside.candidate import Candidate
from wfdsl.grading.sandbox.inside.start import quiet_channels, read_frame, ready, write_frame
from wfdsl.grading.sandbox.inside.values import CannotTravelError, dumps, from_json, to_json, unpack

if TYPE_CHECKING:  # start-up time: every program waits for imports
    from typing import Any

_SHARED = frozenset(
    {"contextlib", "gc", "inspect", "io", "mock", "multiprocessing", "os", "pathlib", "shutil", "signal", "socket"}
    | {"subprocess", "tempfile", "threading", "matplotlib"}
)
"""Modules by which a checking text would look into the program's own process, its files or its output."""


class FoundError(BaseException):
    """What ends a check: the outcome, and a reason. Not an Exception, so that no checking text catches it.

    `unjudged`: the checking text cannot tell. `wrong`: the program has broken the rules of the exchange. `together`:
    the checking text has to be in the program's own process.
    """

    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(outcome, reason)
        self.outcome, self.reason = outcome, reason


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
            write_frame(self.outwards, dumps([operation, target, list(arguments), named], self._handle))
            return self._opened_reply(read_frame(self.inwards), arguments)
        except CannotTravelError as problem:
            self.broken = self.broken or FoundError("unjudged", f"an argument cannot be sent to the program: {problem}")
            raise self.broken from problem
        except (FoundError, EOFError) as problem:
            self.broken = self.broken or problem  # a bare `except` in the checking text does not undo it
            raise

    def _opened_reply(self, payload: bytes, arguments: tuple[Any, ...]) -> Any:
        try:
            kind, *rest = from_json(payload)
            if kind == "result":
                changed = [unpack(one, self.opened) for one in rest[1]]
                for one, other in zip(arguments, changed, strict=True):
                    update(one, other)
                return unpack(rest[0], self.opened)
            if kind == "stuck":
                problem: BaseException = FoundError(
                    "wrong", f"the program's result cannot be looked at: {str(rest[0])[:200]}"
                )
            else:
                problem = self._raised(*rest)
        except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError, RecursionError) as broken:
            raise FoundError(
                "wrong", f"the program sent something that is not a result: {str(broken)[:200]}"
            ) from broken
        raise problem

    def _raised(self, names: list[str], message: str, ordinary: object) -> BaseException:
        if not ordinary:
            return FoundError("wrong", f"the program raised {names[0]}")
        for name in names:
            kind = getattr(builtins, name, None)
            if isinstance(kind, type) and issubclass(kind, Exception):
                return _exception(kind, names[0], message)
        return FoundError("wrong", "the program sent an exception without a class")

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
    __getitem__ = _asks("item")
    __setitem__ = _asks("set item")
    __setattr__ = _asks("set")

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._line.ask("get", self._number, (name,), {})


class RemoteIterator(Remote):
    """An iterator that stayed with the program."""

    __next__ = _asks("next")

    def __iter__(self) -> Any:
        return self


def _exception(kind: type[Exception], name: str, message: str) -> Exception:
    try:
        made = kind(message)
    except TypeError:  # such as UnicodeDecodeError, which wants five arguments
        made = Exception(message)
    made.wfdsl_raised = f"{name}: {message}" if message else name  # type: ignore[attr-defined]
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
    """Why this text cannot be run apart from the program; empty if it can."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if set(name.split(".")) & _SHARED:
                return f"the checking text uses `{name}`"
        if isinstance(node, ast.Name) and node.id in ("open", "globals", "input"):
            return f"the checking text uses `{node.id}`"
        if isinstance(node, ast.Attribute) and node.attr in ("stdout", "stdin", "stderr", "__globals__", "__code__"):
            return f"the checking text uses `.{node.attr}`"
    return ""


def missing_names(tree: ast.Module, known: dict[str, Any]) -> list[str]:
    """Names that the text reads and does not define: functions and imports of the program."""
    read: set[str] = set()
    written: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else written).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            written.add(node.name)
        elif isinstance(node, ast.arg):
            written.add(node.arg)
        elif isinstance(node, ast.alias):
            written.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            written.add(node.name)
    return sorted(name for name in read - written if name not in known and not hasattr(builtins, name))


def namespace(tree: ast.Module, line: Line, preamble: str, entry_point: str) -> dict[str, Any]:
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
            raise FoundError(
                "unjudged", f"the preamble cannot be run: {type(problem).__name__}: {problem}"
            ) from problem
    if entry_point:
        proxy = Remote(line, entry_point, entry_point.rpartition(".")[2])
        names[entry_point.partition(".")[0]] = names["candidate"] = proxy
    for name in missing_names(tree, names):
        names[name] = __import__(name) if name in sys.stdlib_module_names else Remote(line, name, name)
    return names


def parsed(source: str) -> Any:
    """The tree of a checking text."""
    return compile(source, "checker.py", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)


def run_check(source: str, line: Line, preamble: str, entry_point: str) -> None:
    """Run the text, the function `check` if it defines one, and its unittest classes, apart from the program."""
    tree = parsed(source)
    if reason := obstacle(tree):
        raise FoundError("together", reason)
    names = namespace(tree, line, preamble, entry_point)
    run_text(tree, source, names)
    if line.broken is not None:
        raise line.broken
    if not line.calls:
        raise FoundError("unjudged", "the checking text never called the program")


def run_text(tree: Any, source: str, names: dict[str, Any]) -> None:
    """Run the text with these names, and what it defines as tests."""
    exec(compile(tree, "checker.py", "exec", dont_inherit=True), names)
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "check" in defined:
        names["check"](names["candidate"])
    if any(isinstance(node, ast.ClassDef) for node in tree.body) and "unittest" in source:
        run_unittest(names)


def run_unittest(names: dict[str, Any]) -> None:
    """Run the test classes until one fails."""
    import unittest  # noqa: PLC0415  (slow to import, and rarely used)

    class Raising(unittest.TestResult):
        """Lets the first failure out."""

        def addError(self, test: Any, err: Any) -> None:  # noqa: ARG002, N802  (unittest's name)
            raise err[1]

        addFailure = addError  # noqa: N815

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: ARG002, N802
            if err is not None:
                raise err[1]

    loader = unittest.TestLoader()
    for value in list(names.values()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == names["__name__"]:
            loader.loadTestsFromTestCase(value).run(Raising())


def finding(source: str, problem: BaseException) -> list[str]:
    """The outcome of a check that ended with an exception, and its reason."""
    where = place(source, problem)
    raised = getattr(problem, "wfdsl_raised", None)
    if isinstance(problem, FoundError):
        return [problem.outcome, problem.reason + (where if problem.outcome == "wrong" else "")]
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
    ready()
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
    ready()
    inwards, outwards = quiet_channels()
    preamble, program, source, entry_point = from_json(read_frame(inwards))
    candidate = Candidate()
    try:
        candidate.load(preamble, program)
        names = candidate.names
        sys.modules["__main__"] = sys.modules["solution"]  # where `mock.patch` looks for the program's names
        if entry_point:
            names["candidate"] = names.get(entry_point)
        run_text(parsed(source), source, names)
        found = ["right", "all checks passed"]
    except BaseException as problem:  # noqa: BLE001  (whatever ends the check is what was found)
        kinds = [kind.__name__ for kind in type(problem).__mro__]
        found = ["wrong", f"{kinds[0]}: {str(problem)[:200]}{place(source, problem)}"]
    write_frame(outwards, to_json(["found", *found]))
