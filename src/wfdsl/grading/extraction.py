"""What a reply answers: its stated answer, or the program that a code task needs."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from wfdsl.grading.statements import AnswerKind, Asked, final_statement
from wfdsl.language.reasoning import after_reasoning

_BLOCK = re.compile(
    r"(?ms)^([ \t]*)(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n`]*(?:\n|\Z)(.*?)"
    r"(?:^[ \t]*\2[`~]*(?![ \t]*[\w+#.-])[^\n`]*$|\Z)"
)
"""Margin, fence, tag and code; the last block may have no end."""
_PYTHON = frozenset({"", "python", "python3", "py", "py3", "ipython", "ipython3", "sage"})
_READS = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\(\s*0|\bfileinput\b")
_PRINTS = re.compile(r"\bprint\s*\(|\bstdout\b")
_EXPRESSIONS = (ast.Expr, ast.AnnAssign, ast.Pass, ast.Raise)
"""What makes no text a program: `Paris`, `42` and `Answer: 42` are Python too."""
_PROGRAM = re.compile(r"(?m)^(?:(?:async\s+)?def\s+\w+\s*\(|(?:class|import)\s+\w|from\s+\w[\w.]*\s+import\s|@\w)")
_UNFENCED = re.compile(r"\[BEGIN\](.*?)(?:\[DONE\]|\Z)|<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)
LONGEST_PROGRAM = 200_000  # characters of a reply without a fence that are tried as a program: our choice
_MOST_CUTS = 5  # of the end of a reply, to find the program in it: our choice


def final_answer(
    text: str, kind: AnswerKind | Literal["code"], *, choices: Sequence[str] = (), question: str = ""
) -> str | None:
    """The answer that a reply states: an expression, letters joined by commas, words or a program; None without one."""
    if kind == "code":
        return final_code(text)
    found = final_statement(text, Asked(kind, question, tuple(choices)))
    return found.value if found else None


def final_code(text: str, *, wanted: str = "", reads_input: bool = False) -> str | None:
    """The final program of a reply, or None.

    Of the fenced blocks that are Python: the last that defines `wanted` (a function, or `Class.method`), or where a
    program `reads_input`, the last that does, else the last that prints. Tagged blocks come before untagged ones, and
    one that does not parse counts only if none does. Without a fence: what is between `[BEGIN]` and `[DONE]` or in an
    `<answer>` tag, the whole reply if it is a program, or its part from the first definition or import on.
    """
    text = _unwrapped(after_reasoning(text))
    unquoted = re.sub(r"^> ?", "", text, flags=re.MULTILINE)
    fenced = list(_BLOCK.finditer(text)) or list(_BLOCK.finditer(unquoted))
    # a fence inside a list item is indented, and so is all that it holds
    dedented = ((found[3].lower(), re.sub(rf"^{found[1]}", "", found[4], flags=re.MULTILINE)) for found in fenced)
    blocks: list[tuple[str, str]] = [(tag, code) for tag, code in dedented if tag in _PYTHON and code.strip()]
    if not blocks:
        return None if fenced else _unfenced(text)
    name = re.escape(wanted.split(".", 1)[0])
    definition = re.compile(rf"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+{name}\b|^{name}[ \t]*=", re.MULTILINE)

    def fitness(block: tuple[str, str]) -> tuple[bool, ...]:
        tag, code = block
        is_wanted, is_python = bool(wanted and definition.search(code)), not isinstance(_parsed(code), int)
        reads, prints = (reads_input and bool(form.search(code)) for form in (_READS, _PRINTS))
        return is_wanted, is_python, reads, prints, bool(tag)

    return max(reversed(blocks), key=fitness)[1]


def _unwrapped(text: str) -> str:
    """The program of a reply that is a JSON object with one under `code`, `program`, `solution` or `answer`."""
    inner = text.strip().removeprefix("```json").removesuffix("```").strip()
    with suppress(ValueError, RecursionError, AttributeError):
        given: dict[str, object] = json.loads(inner)
        parts = map(given.get, ("code", "program", "solution", "answer"))
        return next((code for code in parts if isinstance(code, str)), text)
    return text


def _parsed(code: str) -> ast.Module | int:
    """The tree of a program, or of a function's body; else the line at which it is none."""
    try:
        return ast.parse(code if code[:1] not in (" ", "\t") else "if True:\n" + code)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 0


def _unfenced(text: str) -> str | None:
    if marked := list(_UNFENCED.finditer(text)):
        text = (marked[-1][1] or marked[-1][2] or "").strip("\n")
    elif not isinstance(_parsed(text), ast.Module) and (begun := _PROGRAM.search(text)):
        lines = text[begun.start() :][:LONGEST_PROGRAM].splitlines(keepends=True)
        for _ in range(_MOST_CUTS):  # up to what is not Python any more, such as an explanation after the program
            if not isinstance(line := _parsed("".join(lines)), int):
                break
            lines = lines[: max(min(line, len(lines)) - 1, 0)]
        text = "".join(lines).rstrip() + "\n"
    tree = _parsed(text) if text.strip() and len(text) <= LONGEST_PROGRAM else 0
    is_program = not isinstance(tree, int) and not all(isinstance(node, _EXPRESSIONS) for node in tree.body)
    return text if is_program else None
