"""Programs that define a function: it is called in the sandbox, and its results are compared out here."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from wfdsl_rl.grading.code_comparison import same_result, shown
from wfdsl_rl.grading.sandbox.inside.values import dumps, loads
from wfdsl_rl.grading.sandbox.process import EndedError, TooMuchError
from wfdsl_rl.grading.verdict import Verdict

if TYPE_CHECKING:
    from wfdsl_rl.grading.sandbox.process import Inside
    from wfdsl_rl.grading.sandbox.sandbox import Slot
    from wfdsl_rl.tasks.task import CodeTests


class WrongError(Exception):
    """What makes a program wrong, in one line."""


class _NoValueError(Exception):
    """A result that is no data."""


async def judge_function(program: str, tests: CodeTests, slot: Slot) -> Verdict:
    """Call the function for each test until one fails. Raises: SandboxFailed."""
    async with slot.processes("candidate", seconds=tests.timeout_s * (len(tests.inputs) + 1)) as (inside,):
        try:
            await load(inside, program, tests, [tests.entry_point])
            for number, (given, expected) in enumerate(zip(tests.inputs, tests.expected, strict=True), start=1):
                problem = await _problem(inside, tests, given, expected)
                if problem:
                    return Verdict("wrong", program, f"test {number} of {len(tests.inputs)}: {problem}")
        except WrongError as problem:
            return Verdict("wrong", program, str(problem))
    return Verdict("right", program, f"all {len(tests.inputs)} tests passed")


async def load(inside: Inside, program: str, tests: CodeTests, needed: list[str]) -> None:
    """Run the program's text, which has to define what is needed. Raises: WrongError."""
    sent = json.dumps([tests.preamble, program, needed]).encode("ascii")
    kind, *rest = reply_of(await exchange(inside, sent, tests.timeout_s))
    if kind == "raised":
        raise WrongError(f"the program cannot be loaded: {raised(rest)}")
    if kind != "loaded" or rest != [[]]:
        raise WrongError(f"the program does not define {', '.join(map(str, rest[0]))}")


async def exchange(inside: Inside, payload: bytes, timeout_s: float) -> bytes:
    """The reply to a request. A program that does not take it in has as little time as one that does not answer.

    Raises: WrongError.
    """
    try:
        async with asyncio.timeout(timeout_s):
            await inside.send(payload)
            return await inside.receive()
    except TimeoutError:
        raise WrongError(f"it ran past its time limit of {timeout_s:g} s") from None
    except (EndedError, TooMuchError) as problem:
        raise WrongError(str(problem)) from problem


def reply_of(payload: bytes) -> list[Any]:
    """A reply's kind and contents. Raises: WrongError."""
    try:
        kind, *rest = json.loads(payload)
    except (ValueError, TypeError, RecursionError):
        raise WrongError("the program wrote into the channel of its results") from None
    if (kind, len(rest)) not in {("loaded", 1), ("result", 2), ("stuck", 1), ("raised", 3)}:
        raise WrongError("the program wrote into the channel of its results")
    return [kind, *rest]


def raised(rest: list[Any]) -> str:
    """An exception in a reason."""
    names, message, _ = rest
    name = names[0] if isinstance(names, list) and names else "an exception"
    return f"{name}: {message}"[:300].replace("\n", " ").removesuffix(": ")


async def _problem(inside: Inside, tests: CodeTests, given: str, expected: str) -> str:
    request = dumps(["call", tests.entry_point, json.loads(given), {}], _no_handle)
    try:
        kind, *rest = reply_of(await exchange(inside, request, tests.timeout_s))
    except WrongError as problem:
        return str(problem)
    try:
        if kind == "raised":
            return f"it raised {raised(rest)}"
        if kind != "result":
            return f"its result cannot be looked at: {str(rest[0])[:200]}"
        found = loads(json.dumps(rest[0]).encode("ascii"), _not_a_value)
    except ValueError:
        raise WrongError("the program wrote into the channel of its results") from None
    except _NoValueError as problem:
        return str(problem)
    wanted = json.loads(expected)
    return "" if same_result(found, wanted) else f"the result is {shown(found)}, not {shown(wanted)}"


def _no_handle(value: object) -> list[Any]:
    raise TypeError(f"JSON gave a value of the class {type(value).__name__}")


def _not_a_value(packed: list[Any]) -> object:
    """Raises: _NoValueError; or ValueError, if not even that can be read."""
    kind, (_, name) = packed
    raise _NoValueError(f"the result is an {shown(kind)} of the class {shown(name)}, not a value")
