"""Majority vote: independent attempts by one worker, and the answer that most of them give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from wfdsl.conductor.prompt import question_text
from wfdsl.language.workflow import Step
from wfdsl_rl.baselines.alone import SOLVE
from wfdsl_rl.baselines.answers import ballot, kind_of, majority
from wfdsl_rl.baselines.picking import picked_from, run_and_pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.conductor.policy import Solution
    from wfdsl.interpreter.context import Question
    from wfdsl.interpreter.running import RunOptions
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.baselines.answers import AnswerKind

RULE: Final = "Give the answer that most of the attempts agree on; on a tie, the earliest of them."


@dataclass(frozen=True, slots=True)
class MajorityVote:
    """Five times the same question, and a count. Attempts without an answer have no vote."""

    worker: int = 0
    n: int = 5
    kind: AnswerKind | Literal["auto"] = "auto"
    """How answers are read and compared; `auto`: as the question and the attempts suggest."""

    async def solve(self, question: Question, pool: Pool, **options: Unpack[RunOptions]) -> Solution:
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

    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {"kind": "majority-vote", "worker": self.worker, "n": self.n, "answers": self.kind}
