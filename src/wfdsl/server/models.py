"""What the server answers with: a Conductor on the pool, or a workflow file, each under the name of a model.
`/v1/models` lists them with context and prices.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.effort import EFFORTS, Effort
from wfdsl.conductor.named import conductor_name, named_policy
from wfdsl.conductor.policy import ROOT_WORKFLOW, Policy, WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment, found_anywhere, run_options
from wfdsl.graph import graph_of
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.events import Listener
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import Run
from wfdsl.interpreter.tools import Tools
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Message
from wfdsl.render.text import counted
from wfdsl.server.api_errors import ApiError, not_supported
from wfdsl.server.chat_request import ChatRequest
from wfdsl.server.keys import Allowance
from wfdsl.server.side_requests import side_request
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

CONDUCTOR_MODEL: Final = "wfdsl"
"""The model that is the Conductor, where the configuration has no table of models."""
_EFFORT: Final = "effort"
_REPAIR: Final = (
    "Your last reply does not have the form that was asked for: {}. Give the same answer again in that form: only "
    "JSON, nothing before or after it."
)
_WITHOUT_TOOLS: Final = ("function", "transformers")
"""Providers whose workers take no tools."""


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

    def build(self) -> None:
        """Build for this event loop what the first request would wait for: clients and graphs.

        Raises:
            UsageError: a key or a package is missing.
        """
        for index in self.pool.indices:
            self.pool.worker(index)
        if isinstance(self.policy, Conductor):
            self.policy.build()
        graph_of(self.policy.workflow if isinstance(self.policy, WorkflowPolicy) else ROOT_WORKFLOW).schedule()

    def skips_conductor(self, request: ChatRequest) -> str:
        """What a chat program asks for by itself, such as a title, which is not worth a workflow: one worker answers.
        Empty: a request like any other.
        """
        is_on = self.experiment.serve.side_requests == "worker"
        if not is_on or request.tools is not None or not isinstance(self.policy, Conductor):
            return ""
        return side_request(request.question)

    def last_round(self, request: ChatRequest, asked: RunRequest | None) -> int | None:
        """The number of the round after which a Conductor cannot revise; None where there is no Conductor.

        `asked` is what the run was asked that the request continues.
        """
        policy = self._policy_of(request) if asked is None else self._policy(_effort_of(asked))
        return policy.settings.max_rounds if isinstance(policy, Conductor) else None

    def require_able(self, request: ChatRequest) -> None:
        """Refuse what no worker could do.

        Raises:
            ApiError: no worker sees images or takes tools, where the request has some.
        """
        pool, question = self.pool, request.question
        used = self.policy.workflow.steps if isinstance(self.policy, WorkflowPolicy) else ()
        own = {step.worker for step in used if isinstance(step.worker, int)}
        fixed = bool(used) and all(isinstance(step.worker, int) for step in used)
        entries = [pool.entry(index) for index in pool.indices if not fixed or index in own]
        has_images = not isinstance(question, str) and any("images" in message for message in question)
        if has_images and not any(entry.images for entry in entries):
            why = "no worker that may be asked can be shown any (images = true in the pool file says that one can)"
            raise not_supported("messages", f"images are not supported: {why}")
        if request.tools is not None and all(entry.provider in _WITHOUT_TOOLS for entry in entries):
            raise not_supported("tools", "tools are not supported: no worker of the pool takes any")

    async def answer(
        self,
        request: ChatRequest,
        run_id: str,
        journal: Journal | None,
        on_event: Listener | None,
        *,
        origin: Mapping[str, str],
        allowance: Allowance,
    ) -> Run:
        """The run that answers a request; `origin` is kept with it.

        Raises:
            RunFailed, RunSuspended, BudgetExhausted, UsageError: as a policy does.
        """
        settings = dict(request.settings)
        if isinstance(self.policy, Conductor):
            settings.pop("reasoning_effort", None)  # it has chosen the Conductor's limits
        effort = {} if request.effort is None else {_EFFORT: request.effort}
        options = {
            "journal": journal,
            "run_id": run_id,
            "on_event": on_event,
            "answer_settings": settings,
            "tools": None if request.tools is None else self._limited(request.tools),
            "origin": {**self.origin, **origin, **effort, "model": self.id, **request.labels},
        }
        return await self._run(self._policy_of(request), request.question, request.seed, allowance, options)

    async def resume(
        self,
        asked: RunRequest,
        request: ChatRequest,
        run_id: str,
        journal: Journal,
        on_event: Listener | None,
        *,
        allowance: Allowance,
    ) -> Run:
        """Continue a run that waited for the results of tools, which the journal has now.

        `asked` is what the run was asked; of the request that brings the results, only the choice of tools counts.

        Raises:
            RunFailed, RunSuspended, BudgetExhausted, UsageError: as a policy does.
        """
        assert asked.tools is not None  # it waited for them
        choice = "none" if request.tools is None else request.tools.choice
        options = {
            "journal": journal,
            "run_id": run_id,
            "on_event": on_event,
            "answer_settings": asked.answer_settings,
            "tools": self._limited(replace(asked.tools, choice=choice)),
            "origin": asked.origin,
        }
        return await self._run(self._policy(_effort_of(asked)), asked.question, asked.config.seed, allowance, options)

    async def repair(
        self,
        request: ChatRequest,
        run: Run,
        problem: str,
        *,
        journal: Journal | None,
        on_event: Listener | None,
        origin: Mapping[str, str],
        allowance: Allowance,
    ) -> Run:
        """A run in which the worker that has answered is asked once more, since its answer has a problem of its form.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as a policy does.
        """
        last = run.steps[-1]
        while last.nested:
            last = last.nested[-1].steps[-1]
        worker = self.pool.find(last.worker_name)
        assert worker is not None  # it has answered
        asked: list[Message] = (
            [{"role": "user", "content": request.question}]
            if isinstance(request.question, str)
            else list(request.question)
        )
        asked.append({"role": "assistant", "content": last.response or ""})
        again = WorkflowPolicy(Workflow((Step(worker, _REPAIR.format(problem)),)))
        options = {
            "journal": journal,
            "run_id": f"{run.id}-again",
            "on_event": on_event,
            "answer_settings": {name: each for name, each in request.settings.items() if name != "reasoning_effort"},
            "origin": {**self.origin, **origin, "model": self.id, "repairs": run.id},
        }
        return await self._run(again, tuple(asked), request.seed, allowance, options)

    async def _run(
        self, policy: Policy, question: Question, seed: int | None, allowance: Allowance, options: dict[str, Any]
    ) -> Run:
        found = run_options(self.experiment.run) | allowance.within(self.experiment.budget) | options
        if seed is not None:
            found["seed"] = seed
        return (await policy.solve(question, self.pool, **found)).run

    def _policy_of(self, request: ChatRequest) -> Policy:
        """What answers a request."""
        if self.skips_conductor(request):
            step = Step(cheapest(self.pool), "Reply to the message above.")
            return WorkflowPolicy(Workflow((step,)))
        return self._policy(request.effort)

    def _policy(self, effort: Effort | None) -> Policy:
        return self.policy.with_effort(effort) if isinstance(self.policy, Conductor) else self.policy

    def _limited(self, tools: Tools) -> Tools:
        settings = self.experiment.serve
        return replace(tools, steps=settings.tools, max_rounds=settings.max_tool_rounds)


def _effort_of(asked: RunRequest) -> Effort | None:
    return next((each for each in EFFORTS if each == asked.origin.get(_EFFORT)), None)


def cheapest(pool: Pool) -> int:
    """The worker of a pool with the lowest price for output, the first of several; one without a price comes last."""

    def price(index: int) -> float:
        prices = pool.entry(index).prices
        return inf if prices is None else prices.output

    return min((index for index in pool.indices if index not in pool.conductors), key=price)


def served_models(experiment: Experiment, files: list[str]) -> dict[str, ServedModel]:
    """The models of a server: those of the tables [serve.models.NAME], or else the Conductor of the pool; and each
    workflow file under its stem. Each worker is built, so that a key that is missing is told now.

    Models that name the same pool, or the same model as Conductor, have its clients and local servers in common.

    Raises:
        UsageError: something cannot be used, or two models have the same name.
        WorkflowError: a workflow is not valid.
    """
    found: dict[str, ServedModel] = {}
    for name, own in (experiment.models or {CONDUCTOR_MODEL: experiment}).items():
        _require_name(name, f"serve.models.{name}")
        try:
            found[name] = _model(name, own, own.serve.description, found.values())
        except UsageError as error:
            raise UsageError(f"the model {name!r}: {error}" if experiment.models else str(error)) from error
    for file in files:
        name = Path(file).stem
        if name in found:
            raise UsageError(f"--workflow {file}: there is a model {name!r} already; give the file another name")
        if not file.endswith(".wf"):
            raise UsageError(f"--workflow {file}: must be a .wf file")
        _require_name(name, f"--workflow {file}")
        found[name] = _model(name, replace(experiment, conductor=ConductorConfig(model=file)), None, found.values())
    for model in found.values():
        model.build()
    return found


def _require_name(name: str, place: str) -> None:
    if not name or not name.isprintable() or name != name.strip():
        raise UsageError(f"{place}: the name of a model is a printable text")


def _model(name: str, experiment: Experiment, description: str | None, others: Collection[ServedModel]) -> ServedModel:
    pool, pool_name = experiment.with_pool()
    pool = next((each.pool for each in others if each.origin.get("pool") == pool_name), pool)
    policy, solver = named_policy(experiment.conductor, pool), conductor_name(experiment.conductor, pool)
    if isinstance(policy, Conductor):
        policy = policy.sharing(each.policy for each in others if isinstance(each.policy, Conductor))
        origin, what = {"solve": found_anywhere(solver)}, f"A Conductor ({solver})"
    else:
        origin, what = {"file": str(Path(solver).absolute())}, f"The workflow {Path(solver).name}"
    origin |= {} if pool_name is None else {"pool": pool_name}
    count = len(pool.indices)
    about = f"{what} on the pool {pool.name}, which has {counted(count, 'worker')}"
    return ServedModel(
        id=name, description=description or about, policy=policy, pool=pool, experiment=experiment, origin=origin
    )


class ModelCards:
    """The models of a server, by their names."""

    def __init__(self, models: Mapping[str, ServedModel]) -> None:
        self._models = dict(models)
        self._created = int(time.time())

    @property
    def models(self) -> list[ServedModel]:
        """All models."""
        return list(self._models.values())

    @property
    def names(self) -> list[str]:
        """All names."""
        return list(self._models)

    def model(self, name: str) -> ServedModel:
        """A model by its name.

        Raises:
            ApiError: there is none.
        """
        if name not in self._models:
            what = f"there is no model {name!r:.80} (models: {', '.join(self._models)})"
            raise ApiError(404, what, code="model_not_found", param="model")
        return self._models[name]

    def all(self, allowed: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        """The models that a key may name; empty: all of them."""
        return [self.card(name) for name in self._models if not allowed or name in allowed]

    def card(self, name: str) -> dict[str, Any]:
        """A model as `/v1/models` lists it.

        Raises:
            ApiError: there is none.
        """
        model = self.model(name)
        asked = _asked_workers(model)
        context = model.experiment.serve.context_window or _least_context(asked)
        return {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "wfdsl",
            "description": model.description,
            **({} if context is None else {"context_window": context, "max_model_len": context}),
            "pricing": {"unit": "US dollars per million tokens", "workers": {e.name: _prices(e) for e in asked}},
        }


def _asked_workers(model: ServedModel) -> list[WorkerEntry]:
    """The workers that a model may ask, the Conductor's own model first."""
    if isinstance(model.policy, WorkflowPolicy):
        used = dict.fromkeys(step.worker for step in model.policy.workflow)
        return [model.pool.entry(index) for index in used if isinstance(index, int)]
    own = [model.policy.entry] if isinstance(model.policy, Conductor) else []
    return [*own, *(entry for entry in model.pool if entry not in own)]


def _least_context(entries: Iterable[WorkerEntry]) -> int | None:
    """The least that a worker is known to take, in tokens of prompt and reply."""
    known = [entry.options.get("context") for entry in entries]
    return min((tokens for tokens in known if isinstance(tokens, int)), default=None)


def _prices(entry: WorkerEntry) -> dict[str, float] | None:
    """None: not known."""
    return None if entry.prices is None else {"input": entry.prices.input, "output": entry.prices.output}
