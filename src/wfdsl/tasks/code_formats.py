"""Formats of data sets whose answers are programs: HumanEval, MBPP, BigCodeBench, LiveCodeBench, tests of trainers.

LiveCodeBench packs its private tests: JSON in a pickle, zlib and base64. A pickle can run any code when it is loaded,
so it may name no class or function. The unpacked size is limited.
"""

from __future__ import annotations

import base64
import io
import json
import pickle
import re
import zlib
from contextlib import suppress
from typing import Any, NoReturn

from wfdsl.tasks.conversion import BadRow, Origin, Values, first, parsed, text, texts
from wfdsl.tasks.task import Task

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
    question = f"Complete this Python function. Answer with the whole function in one code block.\n\n{_block(prompt)}"
    checker = f"{text(row, 'test')}\n\ncheck({entry_point})\n"
    tests = {"entry_point": entry_point, "preamble": prompt, "checker": checker}
    return _checked(row, origin, question, prompt + text(row, "canonical_solution"), tests)


def mbpp(row: Values, origin: Origin) -> Task:
    """MBPP, full and sanitized: the tests are shown with the question; those of the challenge list are not.

    A program that only knows the shown tests passes them. So of the training split just the first one is shown: it
    names the function.
    """
    code, given = text(row, "code"), texts(row.get("test_list"), "test_list")
    if not given:
        raise BadRow('"test_list" is empty')
    shown = given[:1] if origin.split == "train" else given
    hidden = (*given[len(shown) :], *texts(row.get("challenge_test_list") or [], "challenge_test_list"))
    imports = texts(row.get("test_imports") or [], "test_imports")
    checker = "\n".join([*imports, str(row.get("test_setup_code") or ""), *shown, *hidden, ""])
    asked = f"{text(row, 'text', 'prompt').strip()} Answer with one Python code block that passes these tests:\n\n"
    defined = reversed(re.findall(r"^def (\w+)", code, re.MULTILINE))
    called = re.findall(r"(\w+)\s*\(", shown[0])
    tests = {"entry_point": next((name for name in defined if name in called), ""), "checker": checker}
    return _checked(row, origin, asked + _block("\n".join(shown)), code, tests, hidden_tests=len(hidden))


def bigcodebench(row: Values, origin: Origin) -> Task:
    """BigCodeBench: the instruction is asked, the tests are a `unittest` class."""
    signature = text(row, "complete_prompt", "code_prompt")
    gold = signature + str(row.get("canonical_solution") or "")
    question = text(row, "instruct_prompt", "complete_prompt")
    tests = {
        "entry_point": text(row, "entry_point"),
        "preamble": signature,
        "checker": text(row, "test"),
        "timeout_s": _BIGCODEBENCH_TIMEOUT_S,
    }
    return _checked(row, origin, question, gold, tests, libraries=row.get("libs"))


def livecodebench(row: Values, origin: Origin) -> Task:
    """LiveCodeBench: programs that read standard input, or methods of `Solution`; public and private tests."""
    cases = [case for column in ("public_test_cases", "private_test_cases") for case in _cases(row, column)]
    if not cases:
        raise BadRow("it has no test cases")
    inputs: list[Any] = [case["input"] for case in cases]
    outputs: list[Any] = [case["output"] for case in cases]
    starter = str(row.get("starter_code") or "").strip()
    known = parsed(row.get("metadata") or "{}", "metadata")
    name = str(known.get("func_name") or "") if isinstance(known, dict) else ""
    if name:  # an input has one argument a line
        name = f"Solution.{name}" if "class Solution" in starter else name
        inputs = [[parsed(line, "test case") for line in one.strip().split("\n")] for one in inputs]
        outputs = [parsed(one, "test case") for one in outputs]
    if starter:
        asked = f"Complete this code. Answer with all of it in one Python code block.\n\n{_block(starter)}"
    else:
        asked = "Write a Python program that reads standard input and prints its answer to standard output. "
        asked += "Answer with the whole program in one code block."
    return origin.task(
        f"{text(row, 'question_content').strip()}\n\n{asked}",
        "",
        "code",
        given_id=text(row, "question_id"),
        tests=_contest(name, inputs, outputs),
        metadata={
            "level": row.get("difficulty"),
            "platform": row.get("platform"),
            "title": row.get("question_title"),
            "date": str(row.get("contest_date") or "")[:10],
        },
    )


def tests_in(value: Any) -> dict[str, Any] | None:
    """The tests in a value of a trainer's row: inputs and outputs, cases, or asserts; None if it has none."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(BadRow):
            value = parsed(value, "tests")
    if isinstance(value, dict) and (inner := first(value, "ground_truth", "test_cases", "tests")) is not None:
        return tests_in(inner)
    if isinstance(value, dict) and isinstance(value.get("inputs"), list) and isinstance(value.get("outputs"), list):
        return _of_lists(value.get("fn_name"), value["inputs"], value["outputs"])
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(case, dict) and "input" in case and "output" in case for case in value):
        name = first(value[0], "fn_name", "func_name")
        return _of_lists(name, [case["input"] for case in value], [case["output"] for case in value])
    if all(isinstance(case, str) and case.lstrip().startswith("assert") for case in value):
        return {"style": "program", "checker": "\n".join(value) + "\n"}
    return None


def _of_lists(name: Any, inputs: list[Any], outputs: list[Any]) -> dict[str, Any]:
    """Of standard input and output, or of a function, whose results may each be in a list."""
    if name and all(isinstance(each, list) and len(each) == 1 for each in outputs):
        outputs = [each[0] for each in outputs]
    return _contest(str(name or ""), inputs, outputs)


def _contest(name: str, inputs: list[Any], outputs: list[Any]) -> dict[str, Any]:
    """Tests that call a function with lists of arguments, if it has a name; else a program with standard input."""
    write = json.dumps if name else _lines
    return {
        "style": "function" if name else "stdin",
        "entry_point": name,
        "inputs": list(map(write, inputs)),
        "expected": list(map(write, outputs)),
        "preamble": _CONTEST_IMPORTS,
    }


def _lines(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _checked(row: Values, origin: Origin, question: str, gold: str, tests: Values, **metadata: Any) -> Task:
    """A task whose tests are a checking text."""
    made = {"style": "program", **tests}  # the fields of a `CodeTests`, which the task checks
    return origin.task(question, gold, "code", given_id=text(row, "task_id"), tests=made, metadata=metadata)


def _block(code: str) -> str:
    return f"```python\n{code.strip()}\n```"


def _cases(row: Values, column: str) -> list[dict[str, str]]:
    value = row.get(column)
    if value in (None, ""):
        return []
    if isinstance(value, str) and value.lstrip()[:1] not in ("[", "{"):
        value = _unpacked(value, column)
    cases = parsed(value, column)
    is_list = isinstance(cases, list) and all(isinstance(case, dict) for case in cases)
    if not is_list or not all(isinstance(case.get(name), str) for case in cases for name in ("input", "output")):
        raise BadRow(f'"{column}" is not a list of cases with "input" and "output"')
    return list(cases)


class _Plain(pickle.Unpickler):
    """Loads built-in values only: without a class or function a pickle can run nothing."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise ValueError(f"a pickle that names {module}.{name}, which is not loaded")


def _unpacked(value: str, column: str) -> Any:
    """The text in a pickle, zlib and base64."""
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(value, validate=True), _LARGEST_UNPACKED)
        if unpacker.unconsumed_tail:
            raise ValueError(f"more than {_LARGEST_UNPACKED >> 30} GiB")
        return _Plain(io.BytesIO(data)).load()
    except Exception as error:  # whatever bytes that are nothing of this kind make of it
        raise BadRow(f'"{column}" is neither JSON nor packed JSON: {error}') from error
