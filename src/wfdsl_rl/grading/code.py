"""Does a program do what its tests ask? It is run in the sandbox; what is expected of it stays outside.

A verdict is made from values that came out, compared where the program has no hand. So a program that ends early, that
patches whatever it finds or that forges messages can only bring forward other values, and needs the right ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from wfdsl_rl.grading.code_checker import judge_by_checker
from wfdsl_rl.grading.code_function import judge_function
from wfdsl_rl.grading.code_memo import VerdictMemo, key_of
from wfdsl_rl.grading.code_stdin import judge_stdin
from wfdsl_rl.grading.sandbox import Sandbox, SandboxFailed, SandboxMissing
from wfdsl_rl.grading.sandbox.sandbox import UNSAFE
from wfdsl_rl.grading.verdict import Verdict

if TYPE_CHECKING:
    from wfdsl_rl.tasks.task import CodeTests

KNOWN = VerdictMemo()
"""What has been judged in this process."""

_JUDGES = {"stdin": judge_stdin, "function": judge_function, "program": judge_by_checker}


async def judge_program(
    program: str, tests: CodeTests, *, sandbox: Sandbox | None = None, memo: VerdictMemo | None = KNOWN
) -> Verdict:
    """Run a program's tests, until one fails.

    Without `sandbox`, one that all callers share is used. `memo` answers for programs that it has seen with the same
    tests; None runs each one again. Where programs cannot be run safely, or a run says nothing about the program, the
    verdict is unjudged and its reason says why: it is never wrong and never right.
    """
    if not program.strip():
        return Verdict("wrong", None, "the program is empty")
    try:
        sandbox = sandbox or shared_sandbox()
        verdict = await _remembered(program, tests, sandbox, memo)
    except (SandboxMissing, SandboxFailed) as problem:
        return Verdict("unjudged", program, str(problem))
    return replace(verdict, reason=f"{UNSAFE}{verdict.reason}") if sandbox.unsafe else verdict


@cache
def shared_sandbox() -> Sandbox:
    """The sandbox that is used where none is given. Raises: SandboxMissing."""
    return Sandbox()


async def _remembered(program: str, tests: CodeTests, sandbox: Sandbox, memo: VerdictMemo | None) -> Verdict:
    if memo is None:
        return await _judged(program, tests, sandbox)
    key = key_of(program, tests, sandbox.settings)
    known = memo.get(key)
    if known is not None:
        return known
    async with memo.alone(key):
        verdict = memo.get(key)
        if verdict is None:
            verdict = await _judged(program, tests, sandbox)
            if verdict.outcome != "unjudged" and "time limit" not in verdict.reason:
                memo.put(key, verdict)
        return verdict


async def _judged(program: str, tests: CodeTests, sandbox: Sandbox) -> Verdict:
    async with sandbox.slot() as slot:
        return await _JUDGES[tests.style](program, tests, slot)
