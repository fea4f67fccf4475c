"""Grading of programs: run in the sandbox against their tests.

A verdict is made from values that came out of the sandbox, compared outside. So a program that ends early, patches
whatever it finds or forges messages can only return other values, and needs the right ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from wfdsl.grading.code_tests import run_tests
from wfdsl.grading.sandbox import Sandbox, SandboxFailed, SandboxMissing
from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.task import CodeTests


async def grade_program(program: str, tests: CodeTests, *, sandbox: Sandbox | None = None) -> Verdict:
    """Run a program's tests until one fails. The verdict's rule names what isolated the program.

    Without `sandbox`, one that all callers share is used. Where programs cannot be run safely, or a run says nothing
    about the program, the verdict is unjudged and its reason says why: it is never wrong and never right.
    """
    if not program.strip():
        return Verdict("wrong", None, "the program is empty")
    try:
        async with (sandbox or shared_sandbox()).slot() as slot:
            return replace(await run_tests(program, tests, slot), rule=f"tests in {slot.tier}")
    except (SandboxMissing, SandboxFailed) as problem:
        return Verdict("unjudged", program, str(problem))


@cache
def shared_sandbox() -> Sandbox:
    """The sandbox that is used by default."""
    return Sandbox()
