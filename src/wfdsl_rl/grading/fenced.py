"""The program in a reply: the last fenced block that defines what is wanted."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from wfdsl_rl.grading.final_part import final_part

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_PROGRAM = 200_000
"""How many characters of a reply without a fence are tried as a program. Our choice."""
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n`]*$", re.MULTILINE)
_PYTHON = frozenset({"", "python", "python3", "py", "py3"})


def final_code(text: str, *, wanted: str = "") -> str | None:
    """The final program of a reply, or None.

    Precedence: the last fenced block that defines `wanted` (a function, or `Class.method`); the last block in Python;
    without any fence, the whole reply if it is a program or the indented body of a function. A block that is cut off
    at the end of the reply counts.
    """
    text = final_part(text)
    blocks = [code for language, code in _blocks(text) if language.lower() in _PYTHON and code.strip()]
    if not blocks:
        return None if _FENCE.search(text) else _bare(text)
    definition = _definition(wanted)
    defining = [code for code in blocks if definition.search(code)] if wanted else []
    return (defining or blocks)[-1]


def _definition(wanted: str) -> re.Pattern[str]:
    name = re.escape(wanted.split(".", 1)[0])
    return re.compile(rf"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+{name}\b|^{name}[ \t]*=", re.MULTILINE)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            yield opened[2], _without_margin(text[opened.end() + 1 : fence.start()], opened)
            opened = None
    if opened is not None:
        yield opened[2], _without_margin(text[opened.end() + 1 :], opened)


def _without_margin(code: str, fence: re.Match[str]) -> str:
    """A fence inside a list item is indented, and so is all that it holds."""
    margin = fence[0][: len(fence[0]) - len(fence[0].lstrip())]
    if not margin:
        return code
    return "".join(line.removeprefix(margin) for line in code.splitlines(keepends=True))


def _bare(text: str) -> str | None:
    if not text.strip() or len(text) > LONGEST_PROGRAM:
        return None
    is_body = text[0] in " \t"
    try:
        tree = ast.parse("if True:\n" + text if is_body else text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return text if any(isinstance(node, _STATEMENTS) for node in tree.body) else None


_STATEMENTS = (
    ast.Assign, ast.AsyncFunctionDef, ast.AugAssign, ast.ClassDef, ast.For, ast.FunctionDef, ast.If, ast.Import,
    ast.ImportFrom, ast.Return, ast.Try, ast.While, ast.With,
)  # fmt: skip
"""What makes a text a program: `Paris` and `42` are expressions of Python too."""
