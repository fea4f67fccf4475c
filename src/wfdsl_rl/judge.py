"""A completion and its task -> what came of it: read strictly, run on the pool, graded against the gold answer.

Only a writer's mistake and a wrong answer are judged. A worker that failed and a grader that could not tell are none of
the Conductor's doing: `missing`, which no reward is given for. A budget that is spent ends everything.

Source: arXiv 2512.04388, section 4 (parse, run, compare). `missing` is our choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from wfdsl.api import analyze
from wfdsl.errors import RunFailed
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Workflow
from wfdsl_rl.grading.grade import grade

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wfdsl.conductor.offer import Offer
    from wfdsl.interpreter.record import Run
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.grading.verdict import Verdict
    from wfdsl_rl.tasks.task import Task

Fate: TypeAlias = Literal["invalid", "wrong", "right", "missing"]
"""What became of a completion."""


def right_share(fates: Iterable[Fate]) -> float | None:
    """The share of right answers among what was judged; None if nothing was."""
    judged = [fate for fate in fates if fate != "missing"]
    return judged.count("right") / len(judged) if judged else None


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a completion."""

    fate: Fate
    workflow: Workflow | None = None
    """What it says, in the pool's own numbering; None if it is invalid or keeps the answer before."""
    run: Run | None = None
    """What happened; None if nothing ran."""
    verdict: Verdict | None = None
    """What the grader said; None if nothing was graded."""
    kept: bool = False
    """Whether it keeps the answer of the round before, by three empty lists."""
    problems: tuple[str, ...] = ()
    """The codes of its diagnostics, or why the outcome is missing."""

    @property
    def pair(self) -> tuple[str, str] | None:
        """The last step's subtask and response, which a further round is shown; None without a response."""
        if self.run is None or self.run.answer is None:
            return None
        return self.run.workflow[-1].subtask, self.run.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """What a Conductor is not let decide. Source: arXiv 2512.04388, the ablations of section 5."""

    instruction: str = ""
    """What every worker is told in place of its subtask; empty: its subtask."""
    worker: int | None = None
    """The ordinal that every step asks, whatever the Conductor wrote; None: as it wrote."""
    binary_access: bool = False
    """Whether a step may see nothing or everything only, as in the paper's main text."""

    def problem(self, workflow: Workflow) -> str | None:
        """Why a workflow is not let pass; None if it is."""
        if self.binary_access and any(step.access not in ((), ALL) for step in workflow):
            return "access-not-binary"
        return None

    def applied(self, workflow: Workflow) -> Workflow:
        """The workflow without what was taken."""
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
class Judge:
    """How completions are judged."""

    max_steps: int = DEFAULT_MAX_STEPS
    options: RunOptions | None = None
    """How workflows are run: as for `wfdsl.run`, but for `sample`, `run_id` and `previous`."""
    sandbox: Any = None
    """Where programs are graded; None: the shared one."""
    ablation: Ablation = Ablation()
    """What is taken from the Conductor, to see what it is worth."""
    grades: bool = True
    """Whether answers are graded; if not, the outcome of whatever came to an answer is missing."""

    async def judge(
        self,
        completion: str,
        task: Task,
        offer: Offer,
        pool: Pool,
        *,
        sample: str,
        run_id: str | None = None,
        previous: tuple[str, str] | None = None,
    ) -> Judged:
        """Judge a completion; `previous` is the final pair of the round before, in a second round.

        Runs of one `sample` have the same luck; `run_id` is the name of this one, `sample` unless given.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: the pool cannot run workflows at all, or the task's grader is no grader.
        """
        checked = analyze(
            completion, pool_size=offer, max_steps=self.max_steps, recursion=previous is not None, depth_left=0
        )
        if not checked.ok:
            return Judged("invalid", problems=tuple(found.code for found in checked.diagnostics if found.is_error))
        if checked.workflow is None:
            assert previous is not None  # only a second round may have three empty lists
            return await self._graded(Judged("missing", kept=True), task, previous[1])
        refused = self.ablation.problem(checked.workflow)
        if refused is not None:
            return Judged("invalid", problems=(refused,))
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
    ) -> Judged:
        """Judge a workflow, in the pool's own numbering, by running it once.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: the pool cannot run workflows at all, or the task's grader is no grader.
        """
        options = RunOptions(**(self.options or RunOptions()))
        options["sample"], options["run_id"] = sample, run_id or sample
        options["previous"] = previous
        try:
            record = await run(workflow, task.question, pool, **options)
        except RunFailed as error:
            return Judged("missing", workflow, error.run, problems=(str(error),))
        assert record.answer is not None  # a run that is done has an answer
        return await self._graded(Judged("missing", workflow, record), task, record.answer)

    async def _graded(self, judged: Judged, task: Task, answer: str) -> Judged:
        if not self.grades:
            return judged
        verdict = await grade(task, answer, sandbox=self.sandbox)
        fate: Fate = "missing" if verdict.outcome == "unjudged" else verdict.outcome
        problems = (verdict.reason,) if fate == "missing" else ()
        return Judged(fate, judged.workflow, judged.run, verdict, judged.kept, problems)
