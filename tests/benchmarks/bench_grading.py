"""How often graders lose right replies and accept wrong ones, and how long a grading takes.

The tables of replies are in tests/grading/data; a README says how they were written. Beside this grader: math-verify
for mathematics, and the last number, letter or line, as lm-evaluation-harness takes it (`flexible-extract`).
"""

import asyncio
import math
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from math_verify import parse, verify  # type: ignore[import-untyped]

from tests.grading.tables import TABLES, cases
from wfdsl import Task, grade
from wfdsl.grading.text import same_text

ADVERSARIAL = 100_000
PIECES = [
    "1", "1,", "e1", ",", "...", " ", "\n", "{", "}", "(", "$", "\\", "\\boxed{", "\\frac", "\\text{", "-", "=", "^",
    "*",
    "A", "(B)",
    "or ", "and ", "not ", "the answer is ", "Answer: ", "million ", "<answer>",
    "no, ", "是", "答案", "wait ",
    "\\sqrt{2}",
    "x", "<", "[", "]", "%", "√", "\\pm ", "\u202e",
    "0", "9" * 30, "the number of ", "\\infty", "\\cup",
]  # fmt: skip
_NUMBER = re.compile(r"-?[$0-9.,]{2,}|-?[0-9]+")
_LETTER = re.compile(r"(?i:answer is|answer:)\s*\(?([A-J])\b|\(([A-J])\)|\b([A-J])\b")
Judge = Callable[[Task, str], Awaitable[str]]


def main() -> None:
    """Print the tables."""
    asyncio.run(_measure())


async def _measure() -> None:
    judges: dict[str, Judge] = {"wfdsl": _ours, "math-verify": _math_verify, "lm-eval": _lm_eval}
    for table in TABLES:
        for name, judge in judges.items():
            await _print_rates(table, name, judge)
    await _print_times()


async def _print_rates(table: str, name: str, judge: Judge) -> None:
    counts = Counter[tuple[str, bool, str]]()
    for case in cases(table):
        counts[case.form, case.is_right, await judge(case.task, case.reply)] += 1
    for form in ("form", "prose"):
        right, wrong = (
            {said: counts[form, truth, said] for said in ("right", "wrong", "unanswered")} for truth in (True, False)
        )
        print(
            f"{table:16} {name:12} {form:6} right refused {_rate(right, 'wrong')}"
            f"  unanswered {_rate(right, 'unanswered')}  wrong accepted {_rate(wrong, 'right')}"
        )


def _rate(counts: dict[str, int], said: str) -> str:
    total = sum(counts.values())
    share, z = counts[said] / total, 1.96  # Wilson's interval, 95 %
    middle, width = share + z * z / (2 * total), z * math.sqrt(share * (1 - share) / total + z * z / (4 * total**2))
    low, high = ((middle + sign * width) / (1 + z * z / total) for sign in (-1, 1))
    return f"{counts[said]:3} of {total} = {share:5.1%} ({max(low, 0):.1%} to {high:.1%})"


async def _ours(task: Task, reply: str) -> str:
    verdict = await grade(task, reply)
    return "unanswered" if verdict.is_unanswered else "right" if verdict.outcome == "right" else "wrong"


async def _math_verify(task: Task, reply: str) -> str:
    if task.kind != "math":
        return await _lm_eval(task, reply)
    gold, answer = parse(f"${task.gold}$", parsing_timeout=None), parse(reply, parsing_timeout=None)
    if not answer:
        return "unanswered"
    return "right" if verify(gold, answer, timeout_seconds=None) else "wrong"


async def _lm_eval(task: Task, reply: str) -> str:
    if task.kind == "text":
        last = (reply.strip().splitlines() or [""])[-1].removeprefix("Answer: ")
        return "right" if any(same_text(gold, last) for gold in task.golds) else "wrong"
    found = (_LETTER if task.kind == "choice" else _NUMBER).findall(reply)
    if not found:
        return "unanswered"
    if task.kind == "choice":
        return "right" if "".join(found[-1]) == task.gold else "wrong"
    return "right" if found[-1].strip("$.,").replace(",", "") == task.gold else "wrong"


async def _print_times() -> None:
    made, times = random.Random(7), []
    tasks = list({case.task.id: case.task for case in cases("replies")}.values())
    await grade(tasks[0], "\\boxed{x}")
    for number in range(ADVERSARIAL):
        reply = "".join(made.choices(PIECES, k=made.randrange(1, 60)))
        start = time.perf_counter()
        await grade(tasks[number % len(tasks)], reply)
        times.append(time.perf_counter() - start)
    times.sort()
    shown = {name: 1000 * times[int(share * ADVERSARIAL)] for name, share in (("median", 0.5), ("99 %", 0.99))}
    print(f"{ADVERSARIAL} texts of pieces:", ", ".join(f"{name} {ms:.2f} ms" for name, ms in shown.items()), end="")
    print(f", longest {times[-1]:.2f} s")
