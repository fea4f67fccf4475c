"""Programs that come with a checking text: HumanEval's `check(candidate)`, MBPP's asserts, unittest classes.

The text holds the expected values, so it runs in a sandbox of its own, and every call that it makes is carried over to
the sandbox of the program. The verdict comes from the checking side alone.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from wfdsl_rl.grading.code_function import WrongError, load
from wfdsl_rl.grading.sandbox.process import EndedError, TooMuchError
from wfdsl_rl.grading.verdict import Verdict

if TYPE_CHECKING:
    from wfdsl_rl.grading.sandbox.process import Inside
    from wfdsl_rl.grading.sandbox.sandbox import Slot
    from wfdsl_rl.tasks.task import CodeTests

_OUTCOMES = {"right": "right", "wrong": "wrong", "unjudged": "unjudged"}


async def judge_by_checker(program: str, tests: CodeTests, slot: Slot) -> Verdict:
    """Run the checking text against the program. The whole text has the time of one test. Raises: SandboxFailed."""
    seconds = tests.timeout_s * 2
    async with slot.processes("candidate", "checker", seconds=seconds) as (candidate, checker):
        try:
            return await _checked(program, tests, candidate, checker)
        except WrongError as problem:
            return Verdict("wrong", program, str(problem))


async def _checked(program: str, tests: CodeTests, candidate: Inside, checker: Inside) -> Verdict:
    """Load the program, and run the checking text against it. Raises: WrongError."""
    await load(candidate, program, tests, [tests.entry_point] if tests.entry_point else [])
    await checker.send(json.dumps([tests.preamble, tests.checker, tests.entry_point]).encode("ascii"))
    try:
        async with asyncio.timeout(tests.timeout_s):
            outcome, reason = await _carried(candidate, checker)
    except TimeoutError:
        raise WrongError(f"it ran past its time limit of {tests.timeout_s:g} s") from None
    return Verdict(outcome, program, reason)  # type: ignore[arg-type]


async def _carried(candidate: Inside, checker: Inside) -> tuple[str, str]:
    """Carry calls and results until the checking side has found something."""
    answered = False
    while True:
        try:
            asked = await checker.receive()
        except (EndedError, TooMuchError) as problem:
            if answered:
                raise WrongError("the check broke down on a result of the program") from problem
            return "unjudged", f"the checking text broke down: {problem}"
        kind, *rest = json.loads(asked) if asked.startswith(b'["found"') else ("ask",)
        if kind == "found":
            return _OUTCOMES[rest[0]], str(rest[1])
        await candidate.send(asked)
        try:
            await checker.send(await candidate.receive())
        except (EndedError, TooMuchError) as problem:
            raise WrongError(str(problem)) from problem
        answered = True
