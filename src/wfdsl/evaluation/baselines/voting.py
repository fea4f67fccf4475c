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
from wfdsl.evaluation.baselines.answer_selection import Selection
from wfdsl.evaluation.baselines.baseline import SOLVE, Baseline, worker_option
from wfdsl.grading.extraction import final_answer, final_code
from wfdsl.grading.mathematics import grade_math
from wfdsl.grading.text import same_text
from wfdsl.interpreter.context import Question
from wfdsl.language.workflow import Step, Workflow
from wfdsl.settings import option
from wfdsl.workers.pool import Pool

RULE: Final = "Give the answer that most of the attempts agree on; on a tie, the earliest of them."


AnswerKind: TypeAlias = Literal["math", "choice", "text", "code"]


@dataclass(frozen=True, slots=True)
class MajorityVote(Baseline):
    """Independent attempts by one worker; the answer that most give, on a tie the earliest of them."""

    name = "majority-vote"
    calls = "n"
    source = "Self-consistency, arXiv 2203.11171"
    simplifies = "temperature is the worker's own; programs agree only if they are parsed alike"
    worker: int = worker_option()
    n: int = option(5, "attempts", ge=1)
    kind: Literal["auto", "math", "choice", "text", "code"] = option(
        "auto", "how answers are read; auto: by question and attempts"
    )

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Ask and count; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """

        async def pick(replies: Sequence[str]) -> int:
            kind = kind_of(question_text(question), replies) if self.kind == "auto" else self.kind
            return await majority([ballot(reply, kind) for reply in replies])

        selection = Selection([self.worker] * self.n, pick, RULE, f"majority-vote@{self.kind}")
        return await selection.run(question, pool, **options)

    def dearest(self, pool: Pool) -> list[Workflow]:  # noqa: ARG002  (as every baseline)
        """All attempts."""
        return [Workflow((Step(self.worker, SOLVE),) * self.n)]


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
    groups: list[tuple[Ballot, list[int]]] = []
    for index, one in enumerate(ballots):
        if one is None:
            continue
        for first, group in groups:
            if await first.agrees(one):
                group.append(index)
                break
        else:
            groups.append((one, [index]))
    return max(groups, key=lambda pair: len(pair[1]))[1][0] if groups else 0
