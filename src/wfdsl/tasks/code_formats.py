"""Formats of data sets whose answers are programs: HumanEval, MBPP, BigCodeBench, LiveCodeBench, tests of trainers.

LiveCodeBench packs its private tests: JSON in a pickle, zlib and base64. A pickle can run any code when it is loaded,
so it may hold one text and name no class or function. The unpacked size is limited.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import pickle
import zlib
from collections.abc import Iterable
from typing import Any, NoReturn

from wfdsl.tasks.conversion import BadRow, Origin, Values, first, parsed, text, texts
from wfdsl.tasks.task import CodeTests, Task

_BIGCODEBENCH_TIMEOUT_S = 60.0  # our choice: its tests fit models and draw plots

_LARGEST_UNPACKED = 1 << 30  # bytes, unpacked: the largest of release_v6 has some hundred million; a zip bomb has more

_CONTEST_MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json"),
)
_CONTEST_IMPORTS = "".join(f"from {name} import *\n" for name in (*_CONTEST_MODULES, "typing", "builtins")) + (
    f"import {', '.join(_CONTEST_MODULES)}\nsys.setrecursionlimit(50_000)\n"
)
"""Names that solutions of programming contests use without importing them. The built-in ones come last, since others
hide some of them (`pow`, `open`). Source: the modules and the limit that LiveCodeBench's own runner gives programs."""


def humaneval(row: Values, origin: Origin) -> Task:
    """HumanEval: a signature with its docstring to complete, and a `check` function."""
    prompt, entry_point = text(row, "prompt"), text(row, "entry_point")
    return origin.task(
        f"Complete this Python function. Answer with the whole function in one code block.\n\n{_block(prompt)}",
        prompt + text(row, "canonical_solution"),
        "code",
        given_id=text(row, "task_id"),
        tests=CodeTests(
            style="program",
            entry_point=entry_point,
            preamble=prompt,
            checker=f"{text(row, 'test')}\n\ncheck({entry_point})\n",
        ),
    )


def mbpp(row: Values, origin: Origin) -> Task:
    """MBPP, full and sanitized: the tests are shown with the question; those of the challenge list are not.

    A program that only knows the shown tests passes them. So of the training split just the first one is shown: it
    names the function.
    """
    code, given = text(row, "code"), texts(row.get("test_list"), "test_list")
    if not given:
        raise BadRow('"test_list" is empty')
    shown = given[:1] if origin.split == "train" else given
    hidden = texts(row.get("challenge_test_list") or [], "challenge_test_list")
    hidden = (*given[len(shown) :], *hidden)
    imports = texts(row.get("test_imports") or [], "test_imports")
    setup = str(row.get("test_setup_code") or "")
    return origin.task(
        f"{text(row, 'text', 'prompt').strip()} Answer with one Python code block that passes these tests:\n\n"
        + _block("\n".join(shown)),
        code,
        "code",
        given_id=text(row, "task_id"),
        tests=CodeTests(
            style="program",
            entry_point=_tested_function(code, shown),
            checker="\n".join([*imports, setup, *shown, *hidden, ""]),
        ),
        metadata={"hidden_tests": len(hidden)},
    )


def bigcodebench(row: Values, origin: Origin) -> Task:
    """BigCodeBench: the instruction is asked, the tests are a `unittest` class."""
    signature = text(row, "complete_prompt", "code_prompt")
    return origin.task(
        text(row, "instruct_prompt", "complete_prompt"),
        signature + str(row.get("canonical_solution") or ""),
        "code",
        given_id=text(row, "task_id"),
        tests=CodeTests(
            style="program",
            entry_point=text(row, "entry_point"),
            preamble=signature,
            checker=text(row, "test"),
            timeout_s=_BIGCODEBENCH_TIMEOUT_S,
        ),
        metadata={"libraries": row.get("libs")},
    )


def livecodebench(row: Values, origin: Origin) -> Task:
    """LiveCodeBench: programs that read standard input, or methods of `Solution`; public and private tests."""
    cases = [*_cases(row, "public_test_cases"), *_cases(row, "private_test_cases")]
    if not cases:
        raise BadRow("it has no test cases")
    return origin.task(
        _contest_question(row),
        "",
        "code",
        given_id=text(row, "question_id"),
        tests=_tests_of(row, cases),
        metadata={
            "level": row.get("difficulty"),
            "platform": row.get("platform"),
            "title": row.get("question_title"),
            "date": str(row.get("contest_date") or "")[:10],
        },
    )


def _block(code: str) -> str:
    return f"```python\n{code.strip()}\n```"


def _tested_function(code: str, tests: tuple[str, ...]) -> str:
    """The function of the solution that the first test calls; empty if that cannot be told."""
    try:
        defined = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
        called = {
            node.func.id
            for node in ast.walk(ast.parse(tests[0]))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return next((name for name in reversed(defined) if name in called), "")


def _cases(row: Values, column: str) -> list[dict[str, str]]:
    value = row.get(column)
    if value in (None, ""):
        return []
    if column == "private_test_cases" and isinstance(value, str) and value.lstrip()[:1] not in ("[", "{"):
        value = _unpacked(value)
    cases = parsed(value, column)
    if not isinstance(cases, list):
        raise BadRow(f'"{column}" is not a list of cases')
    for case in cases:
        if not (isinstance(case, dict) and isinstance(case.get("input"), str) and isinstance(case.get("output"), str)):
            raise BadRow(f'"{column}" is not a list of cases with "input" and "output"')
    return cases


def _contest_question(row: Values) -> str:
    statement, starter = text(row, "question_content").strip(), str(row.get("starter_code") or "").strip()
    if starter:
        return (
            f"{statement}\n\nComplete this code. Answer with all of it in one Python code block.\n\n{_block(starter)}"
        )
    return (
        f"{statement}\n\nWrite a Python program that reads standard input and prints its answer to standard output. "
        "Answer with the whole program in one code block."
    )


def tests_in(value: Any) -> CodeTests | None:
    """The tests in a value of a trainer's row: inputs and outputs, cases, or asserts; None if it has none.

    Raises:
        BadRow: there are not as many outputs as inputs.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = parsed(value, "tests")
        except BadRow:
            return None
    if isinstance(value, dict) and (inner := first(value, "ground_truth", "test_cases", "tests")) is not None:
        return tests_in(inner)
    if isinstance(value, dict) and isinstance(value.get("inputs"), list) and isinstance(value.get("outputs"), list):
        return _of_lists(value["inputs"], value["outputs"], str(value.get("fn_name") or ""))
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(case, dict) and "input" in case and "output" in case for case in value):
        name = str(first(value[0], "fn_name", "func_name") or "")
        return _of_lists([case["input"] for case in value], [case["output"] for case in value], name)
    if all(isinstance(case, str) and case.lstrip().startswith("assert") for case in value):
        return CodeTests(style="program", checker="\n".join(value) + "\n")
    return None


def _of_lists(inputs: list[Any], outputs: list[Any], name: str) -> CodeTests:
    """Of standard input and output, or of the function that the tests name."""
    if len(inputs) != len(outputs):
        raise BadRow(f"its tests have {len(inputs)} inputs and {len(outputs)} outputs")
    if not name:
        return _contest("", map(_lines, inputs), map(_lines, outputs))
    wraps = all(isinstance(each, list) and len(each) == 1 for each in outputs)
    return _contest(name, map(json.dumps, inputs), (json.dumps(each[0] if wraps else each) for each in outputs))


def _lines(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _contest(name: str, inputs: Iterable[str], expected: Iterable[str]) -> CodeTests:
    """Tests that call a function with JSON lists of arguments, if it has a name; else a program with standard input."""
    return CodeTests(
        style="function" if name else "stdin",
        entry_point=name,
        inputs=tuple(inputs),
        expected=tuple(expected),
        preamble=_CONTEST_IMPORTS,
    )


def _tests_of(row: Values, cases: list[dict[str, str]]) -> CodeTests:
    known = parsed(row.get("metadata") or "{}", "metadata")
    name = str(known.get("func_name") or "") if isinstance(known, dict) else ""
    inputs, outputs = [case["input"] for case in cases], [case["output"] for case in cases]
    if not name:
        return _contest("", inputs, outputs)
    method = f"Solution.{name}" if "class Solution" in str(row.get("starter_code") or "") else name
    return _contest(method, map(_arguments, inputs), map(_one_json, outputs))


def _arguments(lines: str) -> str:
    """The list of arguments, of which the data set has one a line."""
    return "[" + ", ".join(_one_json(line) for line in lines.strip().split("\n")) + "]"


def _one_json(value: str) -> str:
    parsed(value, "test case")
    return value.strip()


class _Plain(pickle.Unpickler):
    """Loads built-in values only: without a class or function a pickle can run nothing."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise BadRow(f'"private_test_cases" holds a pickle of more than one text ({module}.{name}): it is not loaded')


def _unpacked(value: str) -> str:
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(value, validate=True), _LARGEST_UNPACKED)
        if unpacker.unconsumed_tail:
            raise BadRow(f'"private_test_cases" unpacks to more than {_LARGEST_UNPACKED >> 30} GiB: it is not read')
        found = _Plain(io.BytesIO(data)).load()
    except BadRow:
        raise
    except Exception as error:  # whatever bytes that are nothing of this kind make of it
        raise BadRow(f'"private_test_cases" is neither JSON nor packed JSON: {error}') from error
    if not isinstance(found, str):
        raise BadRow('"private_test_cases" holds a pickle of more than one text')
    return found
