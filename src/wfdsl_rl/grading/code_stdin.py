"""Programs that read their input and print: one fresh process for each test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wfdsl_rl.grading.code_comparison import output_difference
from wfdsl_rl.grading.sandbox.sandbox import run_in
from wfdsl_rl.grading.verdict import Verdict

if TYPE_CHECKING:
    from wfdsl_rl.grading.sandbox.sandbox import Ran, Slot
    from wfdsl_rl.tasks.task import CodeTests


_FUTURE: Final = re.compile(r"^from __future__ import [^\n]*", re.MULTILINE)


async def judge_stdin(program: str, tests: CodeTests, slot: Slot) -> Verdict:
    """Run all tests until one fails. Raises: SandboxFailed."""
    source = _after_preamble(program, tests.preamble)
    for number, (given, expected) in enumerate(zip(tests.inputs, tests.expected, strict=True), start=1):
        ran = await run_in(slot, source, stdin=given, timeout_s=tests.timeout_s)
        problem = _problem(ran, expected, tests.timeout_s)
        if problem:
            return Verdict("wrong", program, f"test {number} of {len(tests.inputs)}: {problem}")
    return Verdict("right", program, f"all {len(tests.inputs)} tests passed")


def _after_preamble(program: str, preamble: str) -> str:
    """One text of both. Imports from the future go first, as Python wants them; lines of the program stay lines."""
    if not preamble:
        return program
    futures = "".join(f"{line}\n" for line in _FUTURE.findall(program))
    return f"{futures}{preamble}{_FUTURE.sub('', program)}"


def _problem(ran: Ran, expected: str, timeout_s: float) -> str:
    if ran.ending == "timeout":
        return f"it ran past its time limit of {timeout_s:g} s"
    if ran.ending == "output":
        return "it wrote more than it may"
    if ran.exit_code:
        return f"it ended with exit code {ran.exit_code}{_last_line(ran.errors)}"
    return output_difference(ran.output.decode("utf-8", "replace"), expected)


def _last_line(errors: str) -> str:
    lines = errors.strip().splitlines()
    return f": {lines[-1][:200]}" if lines else ""
