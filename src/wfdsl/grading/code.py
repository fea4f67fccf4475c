"""Grading of programs: run in the sandbox against their tests, with a cache of verdicts.

A verdict is made from values that came out of the sandbox, compared outside. So a program that ends early, patches
whatever it finds or forges messages can only return other values, and needs the right ones.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import replace
from functools import cache

from wfdsl.grading.code_tests import run_tests
from wfdsl.grading.sandbox import Sandbox, SandboxFailed, SandboxMissing
from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.task import CodeTests

_MOST_VERDICTS = 1 << 16  # about 30 MB: our choice
_verdicts: OrderedDict[bytes, Verdict] = OrderedDict()
_lock = threading.Lock()


async def grade_program(
    program: str, tests: CodeTests, *, sandbox: Sandbox | None = None, cached: bool = True
) -> Verdict:
    """Run a program's tests until one fails. The verdict's rule names what isolated the program.

    Without `sandbox`, one that all callers share is used. A program that was graded with the same tests before has the
    same verdict, unless it is not to be `cached`. Where programs cannot be run safely, or a run says nothing about the
    program, the verdict is unjudged and its reason says why: it is never wrong and never right.
    """
    if not program.strip():
        return Verdict("wrong", None, "the program is empty")
    sandbox = sandbox or shared_sandbox()
    key = key_of(program, tests, sandbox.settings)
    with _lock:
        if cached and key in _verdicts:
            _verdicts.move_to_end(key)
            return _verdicts[key]
    try:
        async with sandbox.slot() as slot:
            verdict = replace(await run_tests(program, tests, slot), rule=f"tests in {slot.tier}")
    except (SandboxMissing, SandboxFailed) as problem:
        return Verdict("unjudged", program, str(problem))
    if verdict.outcome != "unjudged" and not verdict.timed_out:  # the machine may have been busy
        with _lock:
            _verdicts[key] = verdict
            if len(_verdicts) > _MOST_VERDICTS:
                _verdicts.popitem(last=False)
    return verdict


@cache
def shared_sandbox() -> Sandbox:
    """The sandbox that is used by default."""
    return Sandbox()


def key_of(program: str, tests: CodeTests, settings: str) -> bytes:
    """A hash of everything that a verdict depends on."""
    digest = hashlib.sha256()
    for part in (program, tests.model_dump_json(), settings):
        text = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(text) + text)
    return digest.digest()
