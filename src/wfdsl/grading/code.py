"""Grading of programs by tests in the sandbox: standard input, calls of a function, or a checking text.

A verdict is made from values that came out of the sandbox, compared outside by the rules of LiveCodeBench's own runner.
So a program that ends early, patches whatever it finds or forges messages can only return other values. A checking text
(HumanEval's `check(candidate)`, MBPP's asserts, unittest classes) holds the expected values, so it runs in a sandbox of
its own. Every call that it makes is carried to the sandbox of the program; its verdict is the checking side's alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from itertools import zip_longest
from math import isclose, isnan
from typing import Any, Final, get_args

from wfdsl.grading.sandbox import Sandbox, SandboxFailed, SandboxMissing
from wfdsl.grading.sandbox.inside.values import MALFORMED, pack, to_json
from wfdsl.grading.sandbox.process import BrokenOffError, Inside, time_limit
from wfdsl.grading.sandbox.sandbox import Slot
from wfdsl.grading.verdict import Outcome, Verdict
from wfdsl.tasks.task import CodeTests

_FUTURE: Final = re.compile(r"^from __future__ import [^\n]*", re.MULTILINE)
_OUTCOMES: Final[dict[str, Outcome]] = {outcome: outcome for outcome in get_args(Outcome)}
_FORGED: Final = "the program wrote into the channel of its results"
_REPLIES: Final[dict[str, tuple[type, ...]]] = {
    "loaded": (list,),
    "result": (object, list),
    "stuck": (str,),
    "raised": (list, str, bool),
    "found": (str, str),
}
"""What each kind of reply holds."""
_MISSING: Final = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
_PACKAGES: Final = frozenset(
    {"bs4", "cv2", "dateutil", "django", "docx", "faker", "flask", "folium", "geopandas", "keras", "librosa", "lxml"}
    | {"matplotlib", "more_itertools", "networkx", "nltk", "numba", "numpy", "openpyxl", "pandas", "PIL", "psutil"}
    | {"pytz", "regex", "requests", "rsa", "scipy", "seaborn", "skimage", "sklearn", "sortedcontainers", "statsmodels"}
    | {"sympy", "tensorflow", "textblob", "torch", "wordcloud", "xmltodict", "yaml", "Crypto", "cryptography"}
)
"""What programs of the usual benchmarks import. Other names do not exist: a program that imports them is wrong."""
_SHOWN: Final = 120  # characters of a value in a reason
_RELATIVE: Final = 1e-9  # what the order of a sum may change, and no more. Our choice
_LONGEST_NUMBER: Final = 400  # characters
_ROUNDED: Final = re.compile(r"\.\d{6}")
_ROUNDING: Final = Decimal("1e-6")  # the difference of two decimals of six digits or more. Our choice


class _WrongError(Exception):
    """What makes a program wrong, in one line."""

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.timed_out = timed_out


async def grade_program(program: str, tests: CodeTests, *, sandbox: Sandbox | None = None) -> Verdict:
    """Run a program's tests until one fails. The verdict's rule names what isolated the program.

    Without `sandbox`, one that all callers share is used. Where programs cannot be run safely, or a run says nothing
    about the program, the verdict is unjudged and its reason says why: it is never wrong and never right.
    """
    if not program.strip():
        return Verdict("wrong", None, "the program is empty")
    try:
        async with (sandbox or shared_sandbox()).slot() as slot:
            return replace(await run_tests(program, tests, slot), rule=f"tests in {slot.isolation.tier}")
    except (SandboxMissing, SandboxFailed) as problem:
        return Verdict("unjudged", program, str(problem))


@cache
def shared_sandbox(packages: str | None = None) -> Sandbox:
    """The sandbox that is used by default, or the one with packages."""
    return Sandbox(packages=packages)


async def run_tests(program: str, tests: CodeTests, slot: Slot) -> Verdict:
    """Run the tests of a program until one fails. Raises: SandboxFailed."""
    try:
        if tests.style == "stdin":
            source = _after_preamble(program, tests.preamble)
            return await _each_test(program, tests, partial(_check_run, slot, source, tests.timeout_s))
        if tests.style == "function":
            return await _run_function(program, tests, slot)
        return await _run_checker(program, tests, slot)
    except _WrongError as problem:
        reason = str(problem)
        if (missing := _MISSING.search(reason)) and missing[1] in _PACKAGES:
            lacking = f"the program needs the package {missing[1]}: name an environment that has it (sandbox packages)"
            return Verdict("unjudged", program, lacking)
        if slot.isolation.tier == "Landlock" and "PermissionError" in reason:
            return Verdict("unjudged", program, f"the sandbox without namespaces refuses what it does: {reason}")
        return Verdict("wrong", program, reason, problem.timed_out)


async def _run_function(program: str, tests: CodeTests, slot: Slot) -> Verdict:
    """Programs that define a function, which is called in the sandbox."""
    async with slot.processes("candidate", seconds=tests.timeout_s * (len(tests.inputs) + 1)) as (inside,):
        await _load(inside, program, tests, [tests.entry_point])
        return await _each_test(program, tests, partial(_check_call, inside, tests))


async def _run_checker(program: str, tests: CodeTests, slot: Slot) -> Verdict:
    """Programs with a checking text. The whole text has the time of one test."""
    seconds = tests.timeout_s * 2
    async with slot.processes("candidate", "checker", seconds=seconds) as (candidate, checker):
        await _load(candidate, program, tests, [tests.entry_point] if tests.entry_point else [])
        await checker.send(to_json([tests.preamble, tests.checker, tests.entry_point]))
        async with _judged(tests.timeout_s, candidate, checker):
            outcome, reason = await _carry_calls(candidate, checker)
    return await _run_together(program, tests, slot, reason) if outcome is None else Verdict(outcome, program, reason)


async def _run_together(program: str, tests: CodeTests, slot: Slot, why: str) -> Verdict:
    """Programs whose checking text has to be in their own process, where they could forge what it finds."""
    async with slot.processes("together", seconds=tests.timeout_s) as (inside,):
        sent = [tests.preamble, program, tests.checker, tests.entry_point]
        _, outcome, reason = await _exchange(inside, sent, tests.timeout_s, "found")
    if outcome != "right":
        raise _WrongError(reason)
    return Verdict("right", program, f"{reason} in the program's own process, which it could forge: {why}")


async def _each_test(program: str, tests: CodeTests, check: Callable[[str, str], Awaitable[None]]) -> Verdict:
    """Check each input with its expected result. Raises: _WrongError, with the number of the test."""
    count = len(tests.inputs)
    for number, (given, expected) in enumerate(zip(tests.inputs, tests.expected, strict=True), start=1):
        try:
            await check(given, expected)
        except _WrongError as problem:
            raise _WrongError(f"test {number} of {count}: {problem}", timed_out=problem.timed_out) from problem
    return Verdict("right", program, f"all {count} tests passed")


@asynccontextmanager
async def _judged(timeout_s: float, *insides: Inside) -> AsyncIterator[None]:
    """An exchange within a time limit. Raises: _WrongError, also if a process breaks off."""
    try:
        async with time_limit(insides, timeout_s):
            yield
    except TimeoutError:
        raise _past_limit(timeout_s) from None
    except BrokenOffError as problem:
        raise _WrongError(str(problem)) from problem


def _past_limit(timeout_s: float) -> _WrongError:
    return _WrongError(f"it ran past its time limit of {timeout_s:g} s", timed_out=True)


def _after_preamble(program: str, preamble: str) -> str:
    """Both as one text. Imports from the future come first, as Python requires; lines of the program stay lines."""
    if not preamble:
        return program
    futures = "".join(f"{line}\n" for line in _FUTURE.findall(program))
    return f"{futures}{preamble}{_FUTURE.sub('', program)}"


async def _check_run(slot: Slot, source: str, timeout_s: float, given: str, expected: str) -> None:
    """A program that reads its input and prints, in a new process. Raises: _WrongError."""
    ran = await slot.run(source, stdin=given, timeout_s=timeout_s)
    if ran.ending == "timeout":
        raise _past_limit(timeout_s)
    if ran.ending == "output":
        raise _WrongError("it wrote more than it may")
    if ran.exit_code:
        lines = ran.errors.strip().splitlines()
        raise _WrongError(f"it ended with exit code {ran.exit_code}" + (f": {lines[-1][:200]}" if lines else ""))
    if difference := output_difference(ran.output.decode("utf-8", "replace"), expected):
        raise _WrongError(difference)


async def _load(inside: Inside, program: str, tests: CodeTests, needed: list[str]) -> None:
    """Run the program's text, which has to define what is needed. Raises: _WrongError."""
    kind, *rest = await _exchange(inside, [tests.preamble, program, needed], tests.timeout_s, "loaded", "raised")
    if kind == "raised":
        raise _WrongError(f"the program cannot be loaded: {_raised(rest)}")
    if not all(name in needed for name in rest[0]):
        raise _WrongError(_FORGED)
    if rest[0]:
        raise _WrongError(f"the program does not define {', '.join(rest[0])}")


async def _check_call(inside: Inside, tests: CodeTests, given: str, expected: str) -> None:
    """A call of the function that was loaded. Raises: _WrongError."""
    request = pack(["call", tests.entry_point, json.loads(given), {}], lambda _: [])  # JSON needs no handles
    kind, *rest = await _exchange(inside, request, tests.timeout_s, "result", "stuck", "raised")
    if kind == "raised":
        raise _WrongError(f"it raised {_raised(rest)}")
    if kind == "stuck":
        raise _WrongError(f"its result cannot be looked at: {rest[0][:200]}")
    try:
        found = read_result(rest[0])
    except MALFORMED:
        raise _WrongError(_FORGED) from None
    wanted = json.loads(expected)
    if not same_result(found, wanted):
        raise _WrongError(f"the result is {shown(found)}, not {shown(wanted)}")


async def _exchange(inside: Inside, request: list[Any], timeout_s: float, *kinds: str) -> list[Any]:
    """The reply to a request, of one of these kinds, with its contents.

    Taking the request in counts as time of the program. Raises: _WrongError.
    """
    async with _judged(timeout_s, inside):
        await inside.send(to_json(request))
        received = await inside.receive()
    try:
        kind, *rest = json.loads(received)
        is_reply = kind in kinds and len(rest) == len(_REPLIES[kind]) and all(map(isinstance, rest, _REPLIES[kind]))
    except MALFORMED:
        is_reply = False
    if not is_reply:
        raise _WrongError(_FORGED)
    return [kind, *rest]


def _raised(rest: list[Any]) -> str:
    """An exception in a reason."""
    names, message, _ = rest
    name = names[0] if names and isinstance(names[0], str) else "an exception"
    return f"{name}: {message}"[:300].replace("\n", " ").removesuffix(": ")


def read_result(packed: Any) -> Any:
    """A result as far as JSON can be equal to it, with the texts that JSON has for the keys of dictionaries.

    Others are not made here, nor are keys of other kinds: they can be chosen so that it takes minutes.

    Raises: _WrongError, or one of MALFORMED.
    """
    if not isinstance(packed, list | dict):
        return packed
    kind, content = packed
    if kind in ("int", "float"):
        return int(content, 16) if kind == "int" else float(content)
    if kind not in ("list", "tuple", "dict"):
        said = content[1] if kind in ("object", "iterator") else kind
        raise _WrongError(f"the result is of the class {shown(said)}, not a value of JSON")
    parts = list(map(read_result, content))
    if kind != "dict":
        return parts if kind == "list" else tuple(parts)
    named = dict(zip(map(_key, parts[::2]), parts[1::2], strict=True))
    if len(named) * 2 < len(parts):
        raise _WrongError("the result has two keys that are the same text in JSON")
    return named


async def _carry_calls(candidate: Inside, checker: Inside) -> tuple[Outcome | None, str]:
    """Carry calls to the program and results back, until the checking side has an outcome and its reason.

    There is no outcome where the text has to be in the program's own process.

    Raises: _WrongError, BrokenOffError.
    """
    answered = False
    while True:
        try:
            asked = await checker.receive()
        except BrokenOffError as problem:
            if answered:
                raise _WrongError("the check broke down on a result of the program") from problem
            return "unjudged", f"the checking text broke down: {problem}"
        if asked.startswith(b'["found"'):
            _, outcome, reason = json.loads(asked)
            return _OUTCOMES.get(outcome), str(reason)
        await candidate.send(asked)
        await checker.send(await candidate.receive())
        answered = True


def output_difference(output: str, expected: str) -> str:
    """Where two outputs differ, in one line; empty if they do not.

    Spaces at the ends of lines, and empty lines at the ends of the text, do not count. Two lines of numbers are equal
    if their numbers are, so that `1.0` is `1`; decimals of six digits after the point may differ by 1e-6.
    """
    found, wanted = ([line.strip() for line in text.strip().split("\n")] for text in (output, expected))
    for number, (one, other) in enumerate(zip_longest(found, wanted), start=1):
        if one is None:
            return f"the output ends after {number - 1} of {len(wanted)} lines"
        if other is None:
            return f"the output has {len(found)} lines, not {len(wanted)}"
        words, other_words = one.split(), other.split()
        if one != other and not (len(words) == len(other_words) and all(map(_same_number, words, other_words))):
            return f"line {number} of the output is {shown(one)}, not {shown(other)}"
    return ""


def _same_number(one: str, other: str) -> bool:
    if one == other or max(len(one), len(other)) > _LONGEST_NUMBER:
        return one == other
    is_rounded = _ROUNDED.search(one) and _ROUNDED.search(other)  # as in contests; LiveCodeBench's runner refuses it
    try:
        found, wanted = Decimal(one), Decimal(other)
        return found == wanted or bool(is_rounded and abs(found - wanted) <= _ROUNDING * max(Decimal(1), abs(wanted)))
    except ArithmeticError:  # no numbers, or too large for a difference
        return False


def same_result(found: Any, expected: Any) -> bool:
    """Whether a result that was read is the expected JSON value.

    A tuple is a list; floats may differ by what rounding does.
    """
    if isinstance(found, list | tuple) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same_result, found, expected))
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same_result(found[key], expected[key]) for key in found)
    if {type(found), type(expected)} in ({float}, {int, float}):
        return _close(found, expected)
    return type(found) is type(expected) and bool(found == expected)


def _close(found: float, expected: float) -> bool:
    try:
        return isclose(found, expected, rel_tol=_RELATIVE, abs_tol=1e-12) or (isnan(found) and isnan(expected))
    except OverflowError:  # an integer that no float can hold
        return False


def _key(key: object) -> str:
    """A key as JSON has it, which knows texts only."""
    return json.dumps(key) if key is None or isinstance(key, bool) else _written(key, str)


def shown(value: object) -> str:
    """A value in a reason: short, and one line."""
    text = _written(value, repr)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"


def _written(value: object, write: Callable[[object], str]) -> str:
    """A value as text. Python refuses to write integers of more than 4,300 digits, and values that are too deep."""
    try:
        return write(value)
    except (ValueError, RecursionError):
        return f"a value of the class {type(value).__name__} that is too large to show"
