"""The Conductor: a model that is shown a question and numbered workers, and writes the workflow that answers it.

It is a policy (`solve`), and a worker: in a pool it is a Conductor node, whose steps run on that same pool. A question
is solved by a run of one step, whose worker is the root Conductor: its rounds are nested runs, so budget, journal,
events, resuming and records work as for every run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, cast

from wfdsl.conductor.config import ConductorConfig, Effort
from wfdsl.conductor.listing import WorkerListing, offered_workers, shuffled_numbers
from wfdsl.conductor.policy import ROOT, ROOT_WORKFLOW, Solution
from wfdsl.conductor.prompt import Prompt, question_text
from wfdsl.conductor.round_log import KEY, RoundLog
from wfdsl.conductor.rounds import Rounds
from wfdsl.conductor.settings import resolve
from wfdsl.errors import UsageError
from wfdsl.interpreter.conductor_node import ConductorCall
from wfdsl.interpreter.config import RunConfig, split_options
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.record import BudgetExhausted, RunFailed
from wfdsl.interpreter.running import check_arguments, checked_question, run, wait_for
from wfdsl.interpreter.worker_profile import profile_of, require_priced
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Call, Reply, Worker, WorkerPool
from wfdsl.settings import changed
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool, entry_of_model, lists_models


class Conductor:
    """A model that writes workflows, with its configuration."""

    def __init__(
        self,
        model: str | WorkerEntry | Worker,
        *,
        entry: WorkerEntry | None = None,
        config: ConductorConfig | None = None,
        prompt: str | Prompt | None = None,
        default: Workflow | None = None,
        **options: Any,
    ) -> None:
        """Make a Conductor of a model.

        Args:
            model: Who writes workflows: a model by its name ("openai:gpt-5"), the entry of a model, or any worker.
            entry: Limits, prices and longest reply of a worker that is given ready-made.
            config: How it conducts. Which model it names does not count here.
            prompt: Replaces the configuration's template set by name, or by one that has been loaded.
            default: Replaces the configuration's default workflow by one that has been loaded.
            options: Fields of `ConductorConfig` that replace the configuration's, such as `max_rounds=0`.

        Raises:
            UsageError: there is no such model or option, or an option, the template set or the grammar cannot be used.
            WorkflowError: the default workflow is not valid, or three lists cannot say it.
        """
        model = _model(model)
        known = model if isinstance(model, WorkerEntry) else entry
        self._resolve = partial(resolve, entry=known, prompt=prompt, default=default)
        self.config = changed(config or ConductorConfig(), options)
        self.settings = self._resolve(self.config)
        entry = entry or WorkerEntry(name="conductor", provider="function", retries=0)
        self._model = Pool([model]) if isinstance(model, WorkerEntry) else Pool.from_workers([(entry, model)])
        self._by_effort: dict[Effort, Conductor] = {}

    def changed(self, **settings: Any) -> Conductor:
        """The same Conductor with other `ConductorSettings`, such as another prompt than it was trained with."""
        other = copy(self)
        other.settings = replace(self.settings, **settings)
        return other

    @property
    def entry(self) -> WorkerEntry:
        """The entry of its model."""
        return self._model.entry(0)

    def with_effort(self, effort: Effort | None) -> Conductor:
        """The same Conductor, of the same model, with another effort; None leaves it as it is.

        Raises:
            UsageError: the grammar does not allow any workflow within the effort's limits.
        """
        if effort is None or effort == self.config.effort:
            return self
        found = self._by_effort.get(effort)
        if found is None:
            found = copy(self)
            found.config = replace(self.config, effort=effort)
            found.settings = self._resolve(found.config)
            self._by_effort[effort] = found
        return found

    def build(self) -> None:
        """Build the client of its model for this event loop, which the first question does otherwise.

        Raises:
            UsageError: a key or a package is missing.
        """
        self._model.worker(0)

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Answer a question with the workers of a pool. Options as for `wfdsl.run`; `names` are the Conductor's.

        A run id that the journal knows is resumed: what has been answered is not asked again.

        Raises:
            RunFailed: a worker failed for good, or no completion was a valid workflow; `.run` is the partial record.
            BudgetExhausted: the budget does not cover the next call; `.run` holds the rounds so far.
            UsageError: the pool cannot be used in this way.
        """
        check_arguments({"pool": pool})
        question = checked_question(question)
        if not question:
            raise UsageError("question must not be empty")
        config, others = split_options(options)
        rooted = _RootPool(self, question, pool, config)
        # The root Conductor is not a step of a written workflow, so the time limit of steps is not for it.
        config = replace(config, max_depth=config.max_depth + 1, step_timeout_s=None)
        try:
            return Solution(await run(ROOT_WORKFLOW, question, rooted, config, **{**others, "names": ("conductor",)}))
        except (RunFailed, BudgetExhausted) as error:
            logs = [log.to_dict() for log in rooted.unplaced]
            if logs:
                error.run = replace(error.run, settings={**error.run.settings, KEY: logs})
            raise

    def solve_sync(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """`solve`, for code that has no event loop.

        Raises:
            RunFailed, BudgetExhausted: as `solve` does.
            UsageError: an event loop is running already; or as `solve` does.
        """
        return wait_for(self.solve(question, pool, **options), "conductor.solve(...)")

    def open(self) -> AbstractAsyncContextManager[Any]:
        """Keep the client of the model up inside the block, for many questions; `solve` opens it by itself."""
        return self._model.open()

    def as_worker(self, name: str, *, description: str = "") -> tuple[WorkerEntry, Conductor]:
        """The Conductor as a member for `Pool.from_workers`, under its model's limits and prices.

        Raises:
            UsageError: it is offered a subset of workers: a node is offered the pool of the run that it is in.
        """
        self._require_whole_pool()
        about = {"name": name, "description": description, "provider": "conductor"}
        return self.entry.model_copy(update=about), self

    async def __call__(self, call: Call) -> Reply:
        """Answer as a Conductor node: the question is the step's own messages. Outside of a run its model answers.

        Raises:
            WorkerFailure, RunFailed, BudgetExhausted: there is no answer.
            UsageError: this is not a Conductor node: the worker's provider in its pool has to be "conductor".
        """
        handle = call.run
        if handle is None:
            async with self.open():
                return await self._model.worker(0)(call)
        if not isinstance(handle, ConductorCall):
            raise UsageError('a Conductor in a pool needs the provider "conductor", so that its step can run workflows')
        self._require_whole_pool()
        handle.provider = self.entry.provider
        async with self.open():
            return await self._rounds(handle, handle.record.messages).finish()

    def _rounds(self, handle: ConductorCall, question: Question, numbers: Mapping[int, int] | None = None) -> Rounds:
        """The rounds in which it answers a step; `numbers` are those of the workers as it is shown them.

        Raises:
            UsageError: its model has no known price, under a budget in dollars.
        """
        tracker = handle.environment.budget
        if tracker is not None:
            require_priced([profile_of(self._model, 0)], tracker.budget)
        listing = WorkerListing.of(handle.pool, numbers)
        return Rounds(self.settings, self._model.worker(0), handle, listing, question)

    def _require_whole_pool(self) -> None:
        config = self.config
        if config.without or config.pick is not None or config.shuffle:
            raise UsageError(
                "a Conductor in a pool is offered the whole pool of its run: leave out without, pick and shuffle, and "
                "set them where the run begins"
            )


def _model(model: Any) -> WorkerEntry | Worker:
    """What conducts, with the entry of a model that is given by its name.

    Raises:
        UsageError: it is not a model.
    """
    if isinstance(model, str) and lists_models(model):
        return entry_of_model(model)
    if isinstance(model, Pool) or not (isinstance(model, WorkerEntry) or callable(model)):
        raise UsageError(
            'a Conductor is made of a model: write Conductor("openai:gpt-5"), or pass a WorkerEntry or a worker '
            f"(got {model!r}); wfdsl.conductor.named.named_conductor knows all names that --conductor takes"
        )
    return cast("WorkerEntry | Worker", model)


class _RootPool:
    """A pool with the root Conductor at index -1, next to the workers that it is offered.

    It answers one question, whatever its step is told.
    """

    def __init__(self, conductor: Conductor, question: Question, pool: Pool, config: RunConfig) -> None:
        """`config` is that of the workers' steps.

        Raises:
            UsageError: no worker can be offered, or the default workflow cannot run on those that are.
        """
        text = question_text(question)
        self._pool = offered_workers(conductor.config, pool, text)
        if conductor.settings.default is not None:
            require_runnable(conductor.settings.default, self._pool, config.max_depth)
        self._conductor = conductor
        self._question = question
        self._numbers = shuffled_numbers(conductor.config, self._pool, text)
        self._step_timeout_s = config.step_timeout_s
        self.name = pool.name
        self.indices = (ROOT, *self._pool.indices)
        self.conductors = (ROOT, *self._pool.conductors)
        self.unplaced: list[RoundLog] = []
        """Logs of rounds that no run holds."""

    async def _answer(self, call: Call) -> Reply:
        handle: ConductorCall = call.run
        config = replace(handle.request.config, step_timeout_s=self._step_timeout_s)
        handle.request = replace(handle.request, config=config)
        rounds = self._conductor._rounds(handle, self._question, self._numbers)
        self.unplaced = rounds.unplaced
        return await rounds.finish()

    def entry(self, index: int) -> WorkerEntry:
        """The entry of a worker, or of the Conductor's model."""
        return self._conductor.entry if index == ROOT else self._pool.entry(index)

    def worker(self, index: int) -> Worker:
        """A worker, or the Conductor."""
        if index == ROOT:
            return self._answer
        try:
            return self._pool.worker(index)
        except UsageError as error:
            raise UsageError(f"{error}; or leave it out (conductor.without)") from error

    def subset(self, indices: Iterable[int]) -> WorkerPool:
        """Some of the workers, never the root Conductor."""
        return self._pool.subset(index for index in indices if index != ROOT)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[_RootPool]:
        """Keep the clients of workers and model up inside the block."""
        async with self._pool.open(), self._conductor.open():
            yield self
