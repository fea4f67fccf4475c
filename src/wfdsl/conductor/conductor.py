"""The Conductor: a model that is shown a question and numbered workers, and writes the workflow that answers it.

It is a policy (`solve`), and a worker: in a pool it is a Conductor node, whose steps run on that same pool.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from wfdsl.check import DEFAULT_MAX_STEPS
from wfdsl.conductor.notes import KEY
from wfdsl.conductor.offer import Offer, Offering
from wfdsl.conductor.policy import Solution
from wfdsl.conductor.prompt import Prompt, question_text
from wfdsl.conductor.rounds import Rounds
from wfdsl.conductor.seat import SEATED, SeatedPool, require_bounded_model
from wfdsl.conductor.settings import ConductorSettings
from wfdsl.errors import RunFailed, UsageError
from wfdsl.interpreter.nested import ConductorCall
from wfdsl.interpreter.runnable import require_runnable
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.pool import Pool, WorkerEntry

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from wfdsl.conductor.settings import Grammar
    from wfdsl.interpreter.context import Question
    from wfdsl.syntax.completion import Profile
    from wfdsl.workers.protocol import Call, Reply, Worker
    from wfdsl.workflow import Workflow


class Conductor:
    """A model with what it takes to conduct."""

    def __init__(
        self,
        model: WorkerEntry | Worker,
        *,
        entry: WorkerEntry | None = None,
        prompt: str | Prompt = "paper",
        max_rounds: int = 1,
        reasks: int = 2,
        default: Workflow | None = None,
        profile: Profile = "lenient",
        max_steps: int = DEFAULT_MAX_STEPS,
        call_factor: float | None = None,
        grammar: Grammar | None = None,
        offering: Offering | None = None,
    ) -> None:
        """Make a Conductor of a model.

        Args:
            model: Who writes workflows: the entry of a model, or any worker.
            entry: Limits, prices and longest reply of a worker that is given ready-made.
            prompt: A template set: `paper`, `tiny`, the path of your own, or one that has been loaded.
            max_rounds: How often the Conductor is shown the answer and may revise the workflow.
            reasks: How often a completion that is not valid is asked for again, with its diagnostics.
            default: What runs where no completion of the first round is valid; None: the run fails.
            profile: How completions are read; "lenient" repairs what it can, and says so.
            max_steps: The most steps of a workflow. Source: arXiv 2512.04388, section 4.
            call_factor: A revision may make at most so many times the first round's calls; None: any number.
            grammar: Bounds of a grammar for the model's server; None: the model writes freely.
            offering: Which workers are offered, and how they are numbered; None: all, under their own ordinals.

        Raises:
            UsageError: a setting is out of its range, or the template set cannot be used.
        """
        self.settings = ConductorSettings(
            prompt=Prompt.load(prompt) if isinstance(prompt, str) else prompt,
            max_rounds=max_rounds,
            reasks=reasks,
            default=default,
            profile=profile,
            max_steps=max_steps,
            call_factor=call_factor,
            grammar=_for_provider(grammar, model),
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
        seated = self._seated(question, pool, depth)
        options = {**options, "max_depth": depth + 1, "names": ("conductor",)}
        try:
            return Solution(await run(SEATED, question, seated, **options))
        except RunFailed as error:
            notes = [note.to_dict() for note in seated.unplaced]
            if notes:
                error.run = replace(error.run, settings={**error.run.settings, KEY: notes})
            raise

    def open(self) -> AbstractAsyncContextManager[Any]:
        """Keep the client of the model up inside the block, for many questions; `solve` opens it by itself."""
        return self._model.open()

    def as_worker(self, name: str, *, description: str = "") -> tuple[WorkerEntry, Conductor]:
        """The Conductor as a member for `Pool.from_workers`, under its model's limits and prices."""
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
        require_bounded_model(self._model, handle)
        async with self.open():
            model = self._model.worker(0)
            return await Rounds(self.settings, model, handle, Offer.of(handle.pool), handle.messages).finish()

    def _seated(self, question: Question, pool: Pool, depth: int) -> SeatedPool:
        text = question_text(question)
        chosen = self.offering.choose(pool, text)
        if self.settings.default is not None:
            require_runnable(self.settings.default, chosen, depth)
        return SeatedPool(chosen, self._model, self.settings, question, self.offering.numbering(chosen, text))


def _for_provider(grammar: Grammar | None, model: WorkerEntry | Worker) -> Grammar | None:
    """The grammar in the dialect that a model's provider takes; refused where a provider would ignore it."""
    if grammar is None or not isinstance(model, WorkerEntry):
        return grammar
    if model.provider in ("anthropic", "google") or (model.provider == "openai" and model.base_url is None):
        raise UsageError(
            f'worker "{model.name}": {model.provider} takes no grammar; leave the grammar out, '
            f"or use a local model or a server of your own (base_url)"
        )
    return replace(grammar, dialect="llguidance") if model.provider == "transformers" else grammar


def _pool_of_one(model: WorkerEntry | Worker, entry: WorkerEntry | None) -> Pool:
    if isinstance(model, WorkerEntry):
        return Pool([model])
    return Pool.from_workers([(entry or WorkerEntry(name="conductor", provider="function", retries=0), model)])
