"""Python examples of a page: statements run in order, and what they print or are worth compared with what is shown.

A value is shown after the statement as `# -> value`, what a `print` prints as `# text`; what a block prints besides
is in a `text` block right after it. Functions whose names begin with `test_` are tests, and are called.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
from typing import Any

_SHOWN = re.compile(r"#\s*->\s*(?P<value>.*\S)")
_SHOWN_PRINT = re.compile(r"#\s*(?:->\s*)?(?P<value>.*\S)")


class PythonSession:
    """The namespace and the event loop that the examples of a page share."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"__name__": "__example__"}
        self._runner = asyncio.Runner()

    def close(self) -> None:
        """Close the event loop."""
        self._runner.close()

    def run(self, text: str, place: str) -> str:
        """Run a block; what it printed, without what `# ->` comments have claimed."""
        printed = io.StringIO()
        for statement in parsed(text, place).body:
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                value = self.value(statement, place)
                self._call_test(statement)
            shown = shown_value(text, statement)
            if shown is None:
                printed.write(out.getvalue())
                continue
            actual = out.getvalue().rstrip("\n") if out.getvalue() else repr(value)
            assert actual == shown, (
                f"{place}: `{ast.unparse(statement)}` gives\n  {actual}\nand the page shows\n  {shown}"
            )
        return printed.getvalue()

    def _call_test(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_"):
            self._names[statement.name]()

    def value(self, statement: ast.stmt, place: str) -> Any:
        """What a statement is worth; None if it is not an expression."""
        if isinstance(statement, ast.Expr):
            code = compile(ast.Expression(statement.value), place, "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        else:
            code = compile(ast.Module([statement], []), place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = eval(code, self._names)
        return self._runner.run(value) if code.co_flags & inspect.CO_COROUTINE else value


def parsed(text: str, place: str) -> ast.Module:
    """The statements of a block; top-level `await` is fine."""
    tree = compile(text, place, "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.Module)
    return tree


def shown_value(text: str, statement: ast.stmt) -> str | None:
    """The value that the page shows after a statement."""
    assert statement.end_lineno is not None
    assert statement.end_col_offset is not None
    line = text.splitlines()[statement.end_lineno - 1].encode()
    is_print = ast.unparse(statement).startswith("print(")
    shown = (_SHOWN_PRINT if is_print else _SHOWN).search(line[statement.end_col_offset :].decode())
    return shown["value"] if shown else None
