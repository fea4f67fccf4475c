"""Policies: what answers questions with a pool of workers, such as a Conductor or a fixed workflow; and solutions."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any, Final, Protocol, runtime_checkable

from wfdsl.conductor.round_log import RoundLog, remarks_on, rounds_of
from wfdsl.errors import UsageError
from wfdsl.interpreter.config import RunConfig, RunRequest
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.record import Run, as_unicode, shortened
from wfdsl.interpreter.running import run
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Usage
from wfdsl.render.notebook import DrawnRun
from wfdsl.render.text import counted
from wfdsl.settings import options_of
from wfdsl.workers.pool import Pool

FORMAT: Final = "wfdsl-solution"
VERSION: Final = 1
ROOT: Final = -1
"""The index of the root Conductor. No workflow can name it: worker indices in workflows begin at 0."""
ROOT_WORKFLOW: Final = Workflow((Step(ROOT, "Answer the question."),))
"""What a question is solved by where a Conductor answers it: one step, whose nested runs are the rounds."""


@dataclass(frozen=True, slots=True, repr=False)
class Solution(DrawnRun):
    """The answer to a question, with the record of how it was found."""

    run: Run
    """The record of everything; for a Conductor its only step is the Conductor, and the rounds are nested in it."""

    def __repr__(self) -> str:
        return f"Solution(answer={shortened(self.answer)}, {counted(len(self.rounds), 'round')}, run={self.run.id!r})"

    def _to_draw(self) -> Run:
        return self.run

    @property
    def answer(self) -> str | None:
        """The answer; None if there is none."""
        return self.run.answer

    @property
    def rounds(self) -> list[Run]:
        """The workflows that ran, in order, one a round; a fixed workflow has one."""
        return list(self.run.steps[0].nested) if self.run.workflow == ROOT_WORKFLOW else [self.run]

    @property
    def log(self) -> tuple[RoundLog, ...]:
        """What the Conductor wrote and the result, one entry a round; none for a fixed workflow."""
        return rounds_of([*self.rounds, self.run] if self.run.workflow == ROOT_WORKFLOW else [])

    @property
    def usage(self) -> Usage:
        """Tokens of workers and Conductor."""
        return self.run.usage

    @property
    def paid_usd(self) -> float | None:
        """US dollars paid; None if a price is not known."""
        return self.run.paid_usd

    @property
    def list_usd(self) -> float | None:
        """US dollars by the price list; None if a price is not known."""
        return self.run.list_usd

    @property
    def events(self) -> tuple[str, ...]:
        """What was unusual, a line each: repairs, re-asks, the default workflow, refused revisions."""
        return tuple(f"round {log.round}: {line}" for log in self.log for line in remarks_on(log))

    def to_dict(self) -> dict[str, Any]:
        """The solution as plain values."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "answer": self.answer,
            "events": list(self.events),
            "rounds": [log.to_dict() for log in self.log],
            "run": self.run.to_dict(),
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """The solution as JSON text; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
        return as_unicode(json.dumps(self.to_dict(), ensure_ascii=False, indent=indent))


@runtime_checkable
class Policy(Protocol):
    """Anything that answers a question with a pool: a Conductor, a workflow, a router, a vote."""

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Answer the question; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted: there is no answer; `.run` is the partial record.
            UsageError: the policy cannot work on this pool.
        """
        ...


async def solved(policy: Policy, question: Question, pool: Pool, **options: Any) -> Solution:
    """What a policy answers; raises what `Policy.solve` does, and UsageError if your own gives something else."""
    found: Any = policy.solve(question, pool, **options) if hasattr(policy, "solve") else policy
    found = await found if isawaitable(found) else found
    if not isinstance(found, Solution):
        raise UsageError(f"{type(policy).__name__} must be a policy: solve returns a Solution (got {found!r:.60})")
    return found


async def resume_policy(policy: Policy, run_id: str, request: RunRequest, pool: Pool, **options: Any) -> Run:
    """Continue a run of a policy with the same options; what has been answered is not asked again.

    `request` is what the journal says that it was asked. `options` are as for `Policy.solve`, and replace the run's.

    Raises:
        RunFailed, BudgetExhausted, UsageError: as `Policy.solve` does.
    """
    before = {each.name: getattr(request.config, each.name) for each in options_of(RunConfig)}
    asked = {name: getattr(request, name) for name in ("answer_settings", "tools", "origin")}
    # A Conductor's own step is one level more.
    given = {**before, "max_depth": request.config.max_depth - (request.workflow == ROOT_WORKFLOW), **asked, **options}
    given["budget"] = options.get("budget") or request.budget
    return (await solved(policy, request.question, pool, run_id=run_id, **given)).run


@dataclass(frozen=True, slots=True)
class WorkflowPolicy:
    """A fixed workflow, such as a `.wf` file that `wfdsl.load` has read for the pool."""

    workflow: Workflow

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Run the workflow; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        return Solution(await run(self.workflow, question, pool, **options))


def ablated(workflow: Workflow, *, instruction: str = "", worker: int | None = None) -> Workflow:
    """The workflow with every subtask, or every worker, replaced by the one that is given.

    Source: arXiv 2512.04388, the ablations of section 5.
    """
    changes = {"subtask": instruction or None, "worker": worker}
    given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    return Workflow(tuple(replace(step, **given) for step in workflow)) if given else workflow
