"""What the server answers with: a Conductor on the pool, or a workflow file, each under the name of a model, and the
runs with which they answer requests.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import EFFORTS, ConductorConfig
from wfdsl.conductor.named import conductor_name, named_policy
from wfdsl.conductor.policy import ROOT_WORKFLOW, Policy, WorkflowPolicy, solved
from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment, origin_of, run_options
from wfdsl.graph import graph_of
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.events import Listener
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import Run, RunSuspended
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Message
from wfdsl.server.api_errors import not_supported
from wfdsl.server.chat_request import ChatRequest
from wfdsl.server.keys import Caller
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

CONDUCTOR_MODEL: Final = "wfdsl"
"""The model that is the Conductor."""
_EFFORT: Final = "effort"
_REPAIR: Final = (
    "Your last reply does not have the form that was asked for: {}. Give the same answer again in that form: only "
    "JSON, nothing before or after it."
)
_WITHOUT_TOOLS: Final = ("function", "transformers")
"""Providers whose workers take no tools."""
_HEAD: Final = 400
"""Characters from the beginning of a message in which the instructions are. Our choice."""
_SIDE_REQUESTS: Final[Mapping[str, str]] = {
    "a title": r"### Task:\s+Generate a concise, 3-5 word title"
    r"|(Please |Provide )?(generate )?a concise, 5-word-or-less title for the conversation"  # LibreChat
    r"|You are a (title generator|professional conversation summarizer)"  # opencode, LobeChat
    r"|You are an assistant skilled in conversation\. You need to summarize .{0,60} title",  # Cherry Studio
    "tags": r"### Task:\s+Generate 1-3 broad tags",
    "follow-up questions": r"### Task:\s+Suggest 3-5 relevant follow-up questions",
    "search queries": r"### Task:\s+Analyze the chat history to determine the necessity of generating search quer",
    "a completion of what is typed": r"### Task:\s+You are an autocompletion system",
    "an emoji": r"Your task is to reflect the speaker's likely facial expression through a fitting emoji",
}
"""How requests begin that chat programs send by themselves; where no program is named, Open WebUI's."""
_FLAGS: Final = re.IGNORECASE | re.DOTALL


@dataclass(frozen=True, slots=True)
class Turn:
    """One request and the run that answers it."""

    chat: ChatRequest
    model: ServedModel
    caller: Caller
    run_id: str
    origin: Mapping[str, str]
    """What is kept with the run: where its model was found, the request's digest, the name of its key."""
    linger_s: Callable[[], float]
    """For how many seconds the run may continue when its client leaves."""
    _: KW_ONLY
    skipped: str = ""
    """Why no Conductor is asked, if the model has one; empty: it is."""
    asked: RunRequest | None = None
    """What the run was asked that waited for the results of a client's tools, and that the request continues."""
    before: Run | None = None
    """What there is of it."""
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def headers(self) -> dict[str, str]:
        """The headers that name the run, and say that the Conductor was skipped."""
        return {"x-wfdsl-run": self.run_id, **({"x-wfdsl-skipped": "conductor"} if self.skipped else {})}

    @property
    def policy(self) -> Policy:
        """What answers."""
        if self.skipped:
            return WorkflowPolicy(Workflow((Step(cheapest(self.model.pool), "Reply to the message above."),)))
        policy, effort = self.model.policy, self.chat.effort
        if self.asked is not None:
            effort = next((each for each in EFFORTS if each == self.asked.origin.get(_EFFORT)), None)
        return policy.with_effort(effort) if isinstance(policy, Conductor) else policy

    @property
    def last_round(self) -> int | None:
        """The number of the round after which a Conductor cannot revise; None where there is no Conductor."""
        policy = self.policy
        return policy.settings.max_rounds if isinstance(policy, Conductor) else None

    async def run(self, journal: Journal | None, on_event: Listener) -> Run:
        """The run that answers, done or suspended. One that continues keeps what it was asked: of the request that
        brings the results, only the choice of tools counts.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as a policy does.
        """
        chat, asked, serve = self.chat, self.asked, self.model.experiment.serve
        question, seed, tools, settings = chat.question, chat.seed, chat.offered, self._settings
        effort = {} if chat.effort is None else {_EFFORT: chat.effort}
        origin: Mapping[str, str] = {**self.origin, **effort, **chat.labels}
        if asked is not None:
            assert asked.tools is not None  # it waited for them
            assert journal is not None  # it was found there
            await journal.add_results(chat.results)
            question, seed, settings, origin = asked.question, asked.config.seed, asked.answer_settings, asked.origin
            tools = replace(asked.tools, choice="none" if chat.offered is None else chat.offered.choice)
        tools = tools and replace(tools, steps=serve.tools, max_rounds=serve.max_tool_rounds)
        about = {"journal": journal, "run_id": self.run_id, "on_event": on_event, "origin": origin}
        try:
            return await self._solved(self.policy, question, seed, tools=tools, answer_settings=settings, **about)
        except RunSuspended as suspended:
            return suspended.run

    async def again(self, run: Run, problem: str, journal: Journal | None, on_event: Listener) -> Run:
        """A run in which the worker that has answered is asked once more, since its answer has a problem of its form.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as a policy does.
        """
        question, last = self.chat.question, run.steps[-1]
        while last.nested:
            last = last.nested[-1].steps[-1]
        worker = self.model.pool.find(last.worker_name)
        assert worker is not None  # it has answered
        asked: list[Message] = [{"role": "user", "content": question}] if isinstance(question, str) else [*question]
        asked.append({"role": "assistant", "content": last.response or ""})
        policy = WorkflowPolicy(Workflow((Step(worker, _REPAIR.format(problem)),)))
        origin = {**self.origin, "repairs": run.id}
        about = {"journal": journal, "run_id": f"{run.id}-again", "on_event": on_event, "origin": origin}
        return await self._solved(policy, tuple(asked), self.chat.seed, answer_settings=self._settings, **about)

    @property
    def _settings(self) -> Mapping[str, Any]:
        """Settings of the call that gives the answer; a request's effort has chosen a Conductor's limits."""
        without = "reasoning_effort" if isinstance(self.model.policy, Conductor) else None
        return {name: value for name, value in self.chat.settings.items() if name != without}

    async def _solved(self, policy: Policy, question: Question, seed: int | None, **options: Any) -> Run:
        experiment = self.model.experiment
        seeded = {} if seed is None else {"seed": seed}
        options = {**run_options(experiment.run), **self.caller.within(experiment.budget), **seeded, **options}
        return (await solved(policy, question, self.model.pool, **options)).run


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """One model of the server."""

    id: str
    policy: Policy
    pool: Pool
    experiment: Experiment
    origin: Mapping[str, str]
    """Where Conductor or workflow, and pool, were found; kept with each run."""
    created: int = field(default_factory=lambda: int(time.time()))

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

    def skips_conductor(self, request: ChatRequest, caller: Caller) -> str:
        """What a chat program asks for by itself, such as a title, which is not worth a workflow: one worker answers.
        Empty: a request like any other, or one whose key measures.

        It is known by how the instructions begin, never by its limits: a request for little text may be a measurement.
        """
        measures = caller.limits is not None and caller.limits.evaluation
        is_on = self.experiment.serve.side_requests == "worker" and isinstance(self.policy, Conductor)
        if measures or not is_on or request.offered is not None:
            return ""
        question = request.question
        texts = [question] if isinstance(question, str) else [each["content"] for each in (question[0], question[-1])]
        heads = [text.lstrip()[:_HEAD] for text in texts]
        found = (what for what, sign in _SIDE_REQUESTS.items() for head in heads if re.match(sign, head, _FLAGS))
        return next(found, "")

    def require_able(self, request: ChatRequest) -> None:
        """Refuse what no worker could do.

        Raises:
            ApiError: no worker sees images or takes tools, where the request has some.
        """
        question = request.question
        has_images = not isinstance(question, str) and any("images" in message for message in question)
        if has_images and not any(entry.images for entry in self.workers):
            why = "no worker that may be asked can be shown any (images = true in the pool file says that one can)"
            raise not_supported("messages", f"images are not supported: {why}")
        if request.offered is not None and all(entry.provider in _WITHOUT_TOOLS for entry in self.workers):
            raise not_supported("tools", "tools are not supported: no worker of the pool takes any")

    @property
    def workers(self) -> list[WorkerEntry]:
        """The workers that steps may be given to."""
        used = {step.worker for step in self.policy.workflow} if isinstance(self.policy, WorkflowPolicy) else set()
        is_open = not all(isinstance(worker, int) for worker in used)  # a Conductor node may give steps to any worker
        return [self.pool.entry(index) for index in self.pool.indices if not used or is_open or index in used]

    def card(self) -> dict[str, Any]:
        """The model as `/v1/models` lists it."""
        asked = [*self.workers, *([self.policy.entry] if isinstance(self.policy, Conductor) else [])]
        known = [each.options.get("context") for each in asked]
        context = min((tokens for tokens in known if isinstance(tokens, int)), default=None)
        return {
            "id": self.id,
            "object": "model",
            "created": self.created,
            "owned_by": "wfdsl",
            **({} if context is None else {"context_window": context, "max_model_len": context}),
        }


def cheapest(pool: Pool) -> int:
    """The worker of a pool with the lowest price for output, the first of several; one without a price comes last."""

    def price(index: int) -> float:
        prices = pool.entry(index).prices
        return inf if prices is None else prices.output

    return min((index for index in pool.indices if index not in pool.conductors), key=price)


def served_models(experiment: Experiment, files: list[str]) -> dict[str, ServedModel]:
    """The models of a server: the Conductor of the pool, and each workflow file under its stem. Each worker is built,
    so that a key that is missing is told now.

    Raises:
        UsageError: something cannot be used, or two models have the same name.
        WorkflowError: a workflow is not valid.
    """
    pool, pool_name = experiment.with_pool()
    experiment = replace(experiment, pool=pool, pool_name=pool_name)
    found = {CONDUCTOR_MODEL: _model(CONDUCTOR_MODEL, experiment, experiment.conductor, pool)}
    for file in files:
        name = Path(file).stem
        if name in found:
            raise UsageError(f"--workflow {file}: there is a model {name!r} already; give the file another name")
        if not file.endswith(".wf"):
            raise UsageError(f"--workflow {file}: must be a .wf file")
        if not name.isprintable() or name != name.strip():
            raise UsageError(f"--workflow {file}: the name of a model is a printable text")
        found[name] = _model(name, experiment, ConductorConfig(model=file), pool)
    for model in found.values():
        model.build()
    return found


def _model(name: str, experiment: Experiment, config: ConductorConfig, pool: Pool) -> ServedModel:
    policy, solver = named_policy(config, pool), conductor_name(config, pool)
    origin = origin_of(solver, config, experiment.pool_name)
    return ServedModel(id=name, policy=policy, pool=pool, experiment=experiment, origin=origin)
