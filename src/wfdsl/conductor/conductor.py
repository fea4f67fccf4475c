"""The Conductor: a model that is shown a question and numbered workers, and writes the workflow that answers it.

It is a policy (`solve`), and a worker: in a pool it is a Conductor node, whose steps run on that same pool.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from wfdsl.conductor.checkpoint import asked, usual_rounds
from wfdsl.conductor.grammar_fit import fitted
from wfdsl.conductor.notes import KEY
from wfdsl.conductor.offer import Offer, Offering
from wfdsl.conductor.policy import Solution
from wfdsl.conductor.prompt import question_text
from wfdsl.conductor.rounds import Rounds
from wfdsl.conductor.seat import SEATED, SeatedPool, require_bounded_model
from wfdsl.conductor.settings import ConductorSettings
from wfdsl.errors import UsageError
from wfdsl.interpreter.conductor_node import ConductorCall
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.record import BudgetExhausted, RunFailed
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from wfdsl.conductor.prompt import Prompt
    from wfdsl.conductor.settings import Grammar
    from wfdsl.interpreter.context import Question
    from wfdsl.language.check import Profile
    from wfdsl.language.workflow import Workflow
    from wfdsl.protocols import Call, Reply, Worker


class Conductor:
    """A model with what it takes to conduct."""

    def __init__(
        self,
        model: WorkerEntry | Worker,
        *,
        entry: WorkerEntry | None = None,
        prompt: str | Prompt | None = None,
        max_rounds: int | None = None,
        reasks: int = 2,
        default: Workflow | None = None,
        profile: Profile = "lenient",
        max_steps: int | None = None,
        call_factor: float | None = None,
        grammar: Grammar | None = None,
        offering: Offering | None = None,
    ) -> None:
        """Make a Conductor of a model.

        Args:
            model: Who writes workflows: the entry of a model, or any worker.
            entry: Limits, prices and longest reply of a worker that is given ready-made.
            prompt: A template set: `paper`, `tiny`, the path of your own, or one that has been loaded; None: what a
                checkpoint was trained with, `paper` for all others.
            max_rounds: How often the Conductor is shown the answer and may revise the workflow; None: 1, and what it
                was trained for where a checkpoint says so.
            reasks: How often a completion that is not valid is asked for again, with its diagnostics.
            default: What runs where no completion of the first round is valid; None: the run fails.
            profile: How completions are read; "lenient" repairs what it can, and says so.
            max_steps: The most steps of a workflow; None: what a checkpoint was trained with, 5 for all others.
                Source: arXiv 2512.04388, section 4.
            call_factor: A revision may make at most so many times the first round's calls; None: any number.
            grammar: Bounds of a grammar that the model is held to; None: the model writes freely.
            offering: Which workers are offered, and how they are numbered; None: all, under their own ordinals.

        Raises:
            UsageError: a setting is out of its range, or the template set cannot be used.
        """
        known = model if isinstance(model, WorkerEntry) else entry
        prompt, max_steps, trained_rounds = asked(known, prompt=prompt, max_steps=max_steps)
        self.settings = ConductorSettings(
            prompt=prompt,
            max_rounds=usual_rounds(trained_rounds) if max_rounds is None else max_rounds,
            reasks=reasks,
            default=default,
            profile=profile,
            max_steps=max_steps,
            call_factor=call_factor,
            grammar=None if grammar is None else fitted(grammar, known, max_steps),
        )
        self.offering = offering or Offering()
        self._model = _pool_of_one(model, entry)

    @property
    def entry(self) -> WorkerEntry:
        """The entry of its model."""
        return self._model.entry(0)

    async def solve(self, question: Question, pool: Pool, **options: Unpack[RunOptions]) -> Solution:
        """Answer a question with the workers of a pool. Options as for `wfdsl.run`; `names` are the Conductor's.

        A run id that the journal knows is gone on with: what has been answered is not asked again.

        Raises:
            RunFailed: a worker failed for good, or no completion was a valid workflow; `.run` is the partial record.
            BudgetExhausted: the budget does not cover the next call; `.run` holds the rounds so far.
            UsageError: the pool cannot be used in this way.
        """
        depth = options.get("max_depth", 1)
        seated = self._seated(question, pool, depth, options.get("step_timeout_s"))
        # The seat is no step of anybody's workflow, so the time limit of steps is not for it.
        options = {**options, "max_depth": depth + 1, "names": ("conductor",), "step_timeout_s": None}
        try:
            return Solution(await run(SEATED, question, seated, **options))
        except (RunFailed, BudgetExhausted) as error:
            notes = [note.to_dict() for note in seated.unplaced]
            if notes:
                error.run = replace(error.run, settings={**error.run.settings, KEY: notes})
            raise

    def open(self) -> AbstractAsyncContextManager[Any]:
        """Keep the client of the model up inside the block, for many questions; `solve` opens it by itself."""
        return self._model.open()

    def as_worker(self, name: str, *, description: str = "") -> tuple[WorkerEntry, Conductor]:
        """The Conductor as a member for `Pool.from_workers`, under its model's limits and prices.

        Raises:
            UsageError: it has an offering of its own: a node is offered the pool of the run that it is in.
        """
        self._require_whole_pool()
        about = {"name": name, "description": description, "provider": "conductor"}
        return self.entry.model_copy(update=about), self

    def offer(self, question: Question, pool: Pool) -> Offer:
        """The workers as the Conductor is shown them for a question.

        Raises:
            UsageError: nobody can be offered.
        """
        text = question_text(question)
        chosen = self.offering.choose(pool, text)
        return Offer.of(chosen, self.offering.numbering(chosen, text))

    async def __call__(self, call: Call) -> Reply:
        """Answer as a Conductor node: the question is the step's own messages. Outside of a run its model answers.

        Raises:
            WorkerFailure, RunFailed, BudgetExhausted: there is no answer.
            UsageError: this is no Conductor node: the worker's provider in its pool has to be "conductor".
        """
        handle = call.run
        if handle is None:
            async with self.open():
                return await self._model.worker(0)(call)
        if not isinstance(handle, ConductorCall):
            raise UsageError('a Conductor in a pool needs the provider "conductor", so that its step can run workflows')
        self._require_whole_pool()
        require_bounded_model(self._model, handle)
        async with self.open():
            model = self._model.worker(0)
            return await Rounds(self.settings, model, handle, Offer.of(handle.pool), handle.messages).finish()

    def _require_whole_pool(self) -> None:
        if self.offering != Offering():
            raise UsageError("a Conductor in a pool is offered that pool: leave workers out where the run begins")

    def _seated(self, question: Question, pool: Pool, depth: int, step_timeout_s: float | None) -> SeatedPool:
        text = question_text(question)
        chosen = self.offering.choose(pool, text)
        if self.settings.default is not None:
            require_runnable(self.settings.default, chosen, depth)
        order = self.offering.numbering(chosen, text)
        return SeatedPool(chosen, self._model, self.settings, question, order, step_timeout_s=step_timeout_s)


def _pool_of_one(model: WorkerEntry | Worker, entry: WorkerEntry | None) -> Pool:
    if isinstance(model, WorkerEntry):
        return Pool([model])
    return Pool.from_workers([(entry or WorkerEntry(name="conductor", provider="function", retries=0), model)])
