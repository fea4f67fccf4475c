"""What the server answers with: a Conductor on the pool, or a workflow file, each under the name of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wfdsl.api import analyze
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.named import conductor_name, named_policy
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment, found_anywhere, run_options
from wfdsl.interpreter.events import Listener
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import Run
from wfdsl.language.workflow import Workflow
from wfdsl.server.chat_request import ChatRequest
from wfdsl.workers.pool import Pool

CONDUCTOR_MODEL: Final = "wfdsl"
"""The model that is the Conductor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """One model of the server."""

    id: str
    description: str
    policy: Policy
    pool: Pool
    experiment: Experiment
    origin: Mapping[str, str]
    """Where Conductor or workflow, and pool, were found; kept with each run."""

    @property
    def last_round(self) -> int | None:
        """The number of the round after which a Conductor cannot revise; None for a workflow file."""
        return self.policy.settings.max_rounds if isinstance(self.policy, Conductor) else None

    def card(self, created: int) -> dict[str, Any]:
        """The model as `/v1/models` lists it."""
        about = {"id": self.id, "object": "model", "created": created, "owned_by": "wfdsl"}
        return {**about, "description": self.description}

    async def route(self, request: ChatRequest) -> tuple[Workflow, Run | None]:
        """The workflow that would answer a request, in the pool's numbering; and the run in which a Conductor wrote it.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as a policy does.
        """
        if not isinstance(self.policy, Conductor):
            assert isinstance(self.policy, WorkflowPolicy)  # there is nothing else
            return self.policy.workflow, None
        options = run_options(self.experiment.run) | {"budget": self.experiment.budget}
        run = (await self.policy.solve(request.question, self.pool, only_plan=True, **options)).run
        workflow = analyze(run.answer or "", pool=self.pool, max_steps=None).workflow
        assert workflow is not None  # the Conductor has checked it
        return workflow, run

    async def answer(
        self,
        request: ChatRequest,
        run_id: str,
        journal: Journal | None,
        on_event: Listener | None,
        origin: Mapping[str, str],
    ) -> Run:
        """The run that answers a request; `origin` is kept with it.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as a policy does.
        """
        options = run_options(self.experiment.run)
        if request.seed is not None:
            options["seed"] = request.seed
        options |= {
            "budget": self.experiment.budget,
            "journal": journal,
            "run_id": run_id,
            "on_event": on_event,
            "answer_settings": request.settings,
            "origin": {**self.origin, **origin, "model": self.id, **request.labels},
        }
        return (await self.policy.solve(request.question, self.pool, **options)).run


def served_models(experiment: Experiment, files: list[str]) -> dict[str, ServedModel]:
    """The Conductor of the pool, and each workflow file under its stem.

    Raises:
        UsageError: something cannot be used, or two models have the same name.
        WorkflowError: a workflow is not valid.
    """
    pool, pool_name = experiment.with_pool()
    conductor = _model(CONDUCTOR_MODEL, experiment.conductor, experiment, pool, pool_name)
    found = {conductor.id: conductor}
    for file in files:
        name = Path(file).stem
        if name in found:
            raise UsageError(f"--workflow {file}: there is a model {name!r} already; give the file another name")
        if not file.endswith(".wf"):
            raise UsageError(f"--workflow {file}: must be a .wf file")
        found[name] = _model(name, ConductorConfig(model=file), experiment, pool, pool_name)
    return found


def _model(
    name: str, config: ConductorConfig, experiment: Experiment, pool: Pool, pool_name: str | None
) -> ServedModel:
    policy, solver = named_policy(config, pool), conductor_name(config, pool)
    if isinstance(policy, Conductor):
        origin, what = {"solve": found_anywhere(solver)}, f"A Conductor ({solver})"
    else:
        origin, what = {"file": str(Path(solver).absolute())}, f"The workflow {Path(solver).name}"
    origin |= {} if pool_name is None else {"pool": pool_name}
    count = len(pool.indices)
    description = f"{what} on the pool {pool.name}, which has {count} worker{'' if count == 1 else 's'}"
    return ServedModel(id=name, description=description, policy=policy, pool=pool, experiment=experiment, origin=origin)
