"""Majority vote: independent attempts by one worker, and the answer that most of them give.

Answers are read and compared as the graders do, without a gold answer. A policy is given nothing but the question, so
the kind of answer follows from the question and the replies.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from wfdsl.conductor.policy import Solution
from wfdsl.conductor.prompt import question_text
from wfdsl.evaluation.baselines.answer_selection import picked_from, run_and_pick
from wfdsl.evaluation.baselines.single_worker import SOLVE, alone
from wfdsl.grading.extraction import final_answer, final_code
from wfdsl.grading.mathematics import grade_math
from wfdsl.grading.text import same_text
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.worker_profile import estimate
from wfdsl.language.workflow import Step
from wfdsl.workers.pool import Pool

RULE: Final = "Give the answer that most of the attempts agree on; on a tie, the earliest of them."


@dataclass(frozen=True, slots=True)
class MajorityVote:
    """Five times the same question, and a count. Attempts without an answer have no vote."""

    worker: int = 0
    n: int = 5
    kind: AnswerKind | Literal["auto"] = "auto"
    """How answers are read and compared; `auto`: as the question and the attempts suggest."""

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Ask and count; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """

        async def pick(replies: Sequence[str]) -> int:
            kind = kind_of(question_text(question), replies) if self.kind == "auto" else self.kind
            return await majority([ballot(reply, kind) for reply in replies])

        workflow = picked_from([Step(self.worker, SOLVE)] * self.n, RULE)
        return await run_and_pick(workflow, pick, question, pool, options, picker=f"majority-vote@{self.kind}")

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every policy that knows)
        """Calls of workers for a question."""
        return self.n

    def most_usd(self, question: Question, pool: Pool) -> float | None:
        """US dollars for a question at most; None: a price is not known."""
        usd = estimate(alone(self.worker), question, pool).usd
        return None if usd is None else self.n * usd

    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {"kind": "majority-vote", "worker": self.worker, "n": self.n, "answers": self.kind}


AnswerKind: TypeAlias = Literal["math", "choice", "text", "code"]

_OPTIONS: Final = re.compile(r"(?s)(?<!\w)\(?A[).:]\s.*(?<!\w)\(?B[).:]\s")
_FENCE: Final = re.compile(r"(?m)^\s*(?:```|~~~)")
_MATH: Final = re.compile(r"[\d\\^=]")


def kind_of(question: str, replies: Sequence[str]) -> AnswerKind:
    """The kind of answer. Source: our choice.

    Code if most replies hold a fenced program, choice if the question lists options A and B, math if most final
    answers have a digit or a sign of mathematics, else text.
    """
    programs = sum(bool(_FENCE.search(reply)) and final_code(reply) is not None for reply in replies)
    if 2 * programs > len(replies):
        return "code"
    if _OPTIONS.search(question):
        return "choice"
    answers = [final_answer(reply, "text") or "" for reply in replies]
    return "math" if 2 * sum(bool(_MATH.search(answer)) for answer in answers) > len(answers) else "text"


@dataclass(frozen=True, slots=True)
class Ballot:
    """What a reply answers."""

    kind: AnswerKind
    answer: str

    async def agrees(self, other: Ballot) -> bool:
        """Whether both give the same answer.

        Raises:
            UsageError: two expressions have to be compared, and math-verify is not installed.
        """
        if self.answer == other.answer:
            return True
        if self.kind == "math":
            return (await grade_math(self.answer, other.answer)).outcome == "right"
        return self.kind == "text" and same_text(self.answer, other.answer)


def ballot(reply: str, kind: AnswerKind) -> Ballot | None:
    """What a reply answers; None if it has no final answer. Programs are equal if they are parsed alike."""
    if kind == "code":
        program = final_code(reply)
        return None if program is None else Ballot(kind, _shape_of(program))
    answer = final_answer(reply, kind)
    return None if answer is None else Ballot(kind, answer)


def _shape_of(program: str) -> str:
    """A program without comments and layout; the text itself if it cannot be parsed."""
    try:
        return ast.dump(ast.parse(program))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return program.strip()


async def majority(ballots: Sequence[Ballot | None]) -> int:
    """The index of the first ballot of the largest group of equal answers; of groups as large, the earliest one.

    Replies without an answer have no vote; if none has one, the first reply is taken.
    """
    groups = await agreeing(ballots)
    return max(groups, key=len)[0] if groups else 0


async def agreeing(ballots: Sequence[Ballot | None]) -> list[list[int]]:
    """The indices of ballots in groups of equal answers, in the order of their first; without those that have none."""
    groups: list[list[int]] = []
    for index, one in enumerate(ballots):
        if one is not None:
            await _join(groups, index, one, ballots)
    return groups


async def _join(groups: list[list[int]], index: int, one: Ballot, ballots: Sequence[Ballot | None]) -> None:
    for group in groups:
        first = ballots[group[0]]
        if first is not None and await first.agrees(one):
            group.append(index)
            return
    groups.append([index])
