"""Who answers questions, on which pool and how: what `solve` makes of its options, for one question or for many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from wfdsl.api import analyze_path
from wfdsl.cli.conducting import names_a_workflow
from wfdsl.cli.configuration import experiment_of, given, parameters_of, require_no_parameters
from wfdsl.cli.inputs import require_workflow
from wfdsl.cli.run import names_of
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.named import named_conductor
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.experiment.conducting import conducting_of

if TYPE_CHECKING:
    import argparse

    from wfdsl.api import Checked
    from wfdsl.conductor.policy import Solution
    from wfdsl.experiment.experiment import Experiment
    from wfdsl.interpreter.context import Question
    from wfdsl.interpreter.running import RunOptions
    from wfdsl.language.workflow import Workflow
    from wfdsl.workers.pool import Pool


class FixedWorkflow(NamedTuple):
    """A `.wf` file that stands where a Conductor could: it is run on every question as it is."""

    checked: Checked

    @property
    def workflow(self) -> Workflow:
        """The workflow."""
        assert self.checked.workflow is not None, "only what holds a workflow is made one"
        return self.checked.workflow


Solver: TypeAlias = Conductor | FixedWorkflow


@dataclass(frozen=True, slots=True)
class Solving:
    """Everything but the question."""

    solver: Solver
    pool: Pool
    origin: dict[str, str]
    """Where workflow or Conductor, and the pool, were found, for whoever goes on with a run."""
    experiment: Experiment

    async def solve(self, question: Question, options: RunOptions) -> Solution:
        """The solution of a question.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as a policy does.
        """
        if isinstance(self.solver, Conductor):
            return await self.solver.solve(question, self.pool, **options)
        named: RunOptions = {**options, "names": names_of(self.solver.checked)}
        return await WorkflowPolicy(self.solver.workflow).solve(question, self.pool, **named)


def solving_of(args: argparse.Namespace) -> Solving:
    """What options and configuration describe.

    Raises:
        UsageError: something cannot be used.
        WorkflowError: a workflow that they name is not valid.
    """
    experiment = experiment_of(args)
    pool, pool_name = experiment.with_pool()
    solver = _solver(experiment, pool, args)
    found = "solve" if isinstance(solver, Conductor) else "file"
    origin = {found: experiment.conductor.model} | ({} if pool_name is None else {"pool": pool_name})
    return Solving(solver, pool, origin, experiment)


def _solver(experiment: Experiment, pool: Pool, args: argparse.Namespace) -> Solver:
    table = experiment.conductor
    if not names_a_workflow(table):
        require_no_parameters(args, "a Conductor has no parameters")
        return named_conductor(table.model, conducting_of(table, pool))
    idle = [option for key, option in given(args, "conductor").items() if key != "model"]
    if idle:
        raise UsageError(f"{table.model} is run as it is, and nobody is asked for a workflow: leave out {idle[0]}")
    return FixedWorkflow(require_workflow(analyze_path(table.model, pool=pool, params=parameters_of(args))))
