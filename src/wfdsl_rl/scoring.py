"""Scoring a completion: parse it strictly, run its workflow on a pool, grade the answer, look up the reward.

Only the writer's mistake and a wrong answer lower the score. A worker that failed and an answer that could not be
graded say nothing about the completion, so it gets no score. A spent budget ends everything.

Source: arXiv 2512.04388, section 4 (parse, run, compare). The outcomes `unjudged` and `failed` are our choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from wfdsl.api import analyze
from wfdsl.conductor.offer import Offer
from wfdsl.errors import RunFailed
from wfdsl.interpreter.record import Run
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Workflow
from wfdsl.workers.pool import Pool
from wfdsl_rl.grading.grade import grade
from wfdsl_rl.grading.verdict import Verdict
from wfdsl_rl.tasks.task import Task

Outcome: TypeAlias = Literal["invalid", "wrong", "right", "unjudged", "failed"]
"""The result of a completion: `invalid` cannot be parsed; `wrong` and `right` have an answer that was graded;
`unjudged` has one that could not be graded; `failed` has none, because a worker failed."""

NO_SCORE: Final[frozenset[Outcome]] = frozenset({"unjudged", "failed"})
"""Outcomes that say nothing about the completion."""


def right_share(outcomes: Iterable[Outcome]) -> float | None:
    """The share of right ones among the outcomes that have a score; None without any."""
    known = [outcome for outcome in outcomes if outcome not in NO_SCORE]
    return known.count("right") / len(known) if known else None


@dataclass(frozen=True, slots=True)
class Scored:
    """A completion after it was run and graded."""

    outcome: Outcome
    workflow: Workflow | None = None
    """What it says, in the pool's worker indices; None if it is invalid or keeps the previous round's answer."""
    run: Run | None = None
    """The record of its run; None if nothing ran."""
    verdict: Verdict | None = None
    """What the grader said; None if nothing was graded."""
    kept: bool = False
    """Whether it keeps the previous round's answer, by three empty lists."""
    problems: tuple[str, ...] = ()
    """The codes of its diagnostics, or why there is no score."""

    @property
    def has_score(self) -> bool:
        """Whether the outcome is the completion's own, rather than a worker's or a grader's failure."""
        return self.outcome not in NO_SCORE

    @property
    def pair(self) -> tuple[str, str] | None:
        """The last step's subtask and response, which the next round is shown; None without a response."""
        if self.run is None or self.run.answer is None:
            return None
        return self.run.workflow[-1].subtask, self.run.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardValues:
    """The reward of each outcome. Only their differences matter to GRPO.

    Source of the defaults: arXiv 2512.04388, section 4.
    """

    invalid: float = 0.0
    """Lists that cannot be parsed."""
    wrong: float = 0.5
    """A workflow whose answer is wrong."""
    right: float = 1.0
    step: float = 0.0
    """Added for each step of a valid workflow: below 0, the price of a call. Our choice: the paper has none."""

    def of(self, scored: Scored) -> float | None:
        """The reward; None if the outcome has no score, so that the sample is left out."""
        if not scored.has_score:
            return None
        steps = 0 if scored.workflow is None else len(scored.workflow)
        return {"invalid": self.invalid, "wrong": self.wrong, "right": self.right}[scored.outcome] + self.step * steps

    def mean(self, executions: Iterable[Scored]) -> float | None:
        """The mean reward of a completion's executions; None if none of them has a score."""
        known = [reward for scored in executions if (reward := self.of(scored)) is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """What a Conductor may not decide. Source: arXiv 2512.04388, the ablations of section 5."""

    instruction: str = ""
    """What every worker is told instead of its subtask; empty: its subtask."""
    worker: int | None = None
    """The index of the worker that every step asks, whatever the Conductor wrote; None: as it wrote."""
    binary_access: bool = False
    """Whether a step may only see nothing or everything, as in the paper's main text."""

    def problem(self, workflow: Workflow) -> str | None:
        """Why a workflow is refused; None if it is not."""
        if self.binary_access and any(step.access not in ((), ALL) for step in workflow):
            return "access-not-binary"
        return None

    def applied(self, workflow: Workflow) -> Workflow:
        """The workflow with the ablated parts replaced."""
        if not self.instruction and self.worker is None:
            return workflow
        return Workflow(
            tuple(
                replace(
                    step,
                    subtask=self.instruction or step.subtask,
                    worker=step.worker if self.worker is None else self.worker,
                )
                for step in workflow
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """How one completion becomes an outcome."""

    max_steps: int = DEFAULT_MAX_STEPS
    options: RunOptions | None = None
    """How workflows are run: as for `wfdsl.run`, except for `sample`, `run_id` and `previous`."""
    sandbox: Any = None
    """Where programs are graded; None: the shared one."""
    ablation: Ablation = Ablation()
    """What the Conductor may not decide, to measure what its decision is worth."""
    grades: bool = True
    """Whether answers are graded; if not, every answer is unjudged."""

    async def score(
        self,
        completion: str,
        task: Task,
        offer: Offer,
        pool: Pool,
        *,
        sample: str,
        run_id: str | None = None,
        previous: tuple[str, str] | None = None,
    ) -> Scored:
        """Score a completion; `previous` is the final (subtask, response) of the round before, in a revision.

        Runs of one `sample` draw the same random numbers; `run_id` is the name of this one, `sample` unless given.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: the pool cannot run workflows at all, or the task's grader cannot be used.
        """
        checked = analyze(
            completion, pool_size=offer, max_steps=self.max_steps, recursion=previous is not None, depth_left=0
        )
        if not checked.ok:
            return Scored("invalid", problems=tuple(found.code for found in checked.diagnostics if found.is_error))
        if checked.workflow is None:
            assert previous is not None  # only a revision may have three empty lists
            return await self._graded(Scored("unjudged", kept=True), task, previous[1])
        refused = self.ablation.problem(checked.workflow)
        if refused is not None:
            return Scored("invalid", problems=(refused,))
        workflow = self.ablation.applied(offer.to_pool(checked.workflow))
        return await self.execute(workflow, task, pool, sample=sample, run_id=run_id, previous=previous)

    async def execute(
        self,
        workflow: Workflow,
        task: Task,
        pool: Pool,
        *,
        sample: str,
        run_id: str | None = None,
        previous: tuple[str, str] | None = None,
    ) -> Scored:
        """Score a workflow, in the pool's worker indices, by running it once.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: the pool cannot run workflows at all, or the task's grader cannot be used.
        """
        options = RunOptions(**(self.options or RunOptions()))
        options["sample"], options["run_id"] = sample, run_id or sample
        options["previous"] = previous
        try:
            record = await run(workflow, task.question, pool, **options)
        except RunFailed as error:
            return Scored("failed", workflow, error.run, problems=(str(error),))
        assert record.answer is not None  # a run that is done has an answer
        return await self._graded(Scored("unjudged", workflow, record), task, record.answer)

    async def _graded(self, answered: Scored, task: Task, answer: str) -> Scored:
        if not self.grades:
            return answered
        verdict = await grade(task, answer, sandbox=self.sandbox)
        problems = (verdict.reason,) if verdict.outcome == "unjudged" else ()
        return replace(answered, outcome=verdict.outcome, verdict=verdict, problems=problems)
