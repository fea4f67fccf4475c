"""One Conductor at work: it writes a workflow, sees what came of it, and may revise it.

All that a worker wrote reaches the Conductor inside one user message, and only what the Conductor's own model wrote is
ever read as a workflow.

Source: arXiv 2512.04388 (recursion in the same conversation, three empty lists, "all" shows the previous final pair,
capped rounds). Re-asks, the default workflow and that an invalid revision keeps the answer before are our choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wfdsl.api import Checked, analyze
from wfdsl.conductor.notes import Completion, RoundNote, add_note, completion_of, problems_of
from wfdsl.graph import graph_of
from wfdsl.interpreter.execution import CAUSES, require_runnable
from wfdsl.language.completion import print_completion
from wfdsl.protocols import Reply, WorkerFailure

if TYPE_CHECKING:
    from wfdsl.conductor.notes import Outcome
    from wfdsl.conductor.offer import Offer
    from wfdsl.conductor.settings import ConductorSettings
    from wfdsl.interpreter.conductor_node import ConductorCall
    from wfdsl.interpreter.context import Question
    from wfdsl.interpreter.record import Run
    from wfdsl.language.workflow import Workflow
    from wfdsl.protocols import Worker


class Rounds:
    """The rounds of one Conductor's call: the first workflow and its revisions."""

    def __init__(
        self, settings: ConductorSettings, model: Worker, handle: ConductorCall, offer: Offer, question: Question
    ) -> None:
        self._settings = settings
        self._model = model
        self._handle = handle
        self._offer = offer
        self._question = question
        self._messages = settings.prompt.ask(question, offer, max_steps=settings.max_steps)
        self._runs: list[Run] = []
        self.unplaced: list[RoundNote] = []
        """Notes of rounds that ran nothing, where no run came before that could hold them."""

    async def finish(self) -> Reply:
        """Go through the rounds; the answer is that of the last workflow that ran.

        Raises:
            WorkerFailure: the Conductor's model gave no reply, or no workflow that can be run.
            RunFailed, BudgetExhausted: a workflow's run ended without an answer.
        """
        for number in range(self._settings.max_rounds + 1):
            checked, written = await self._write(number)
            if not await self._act(number, checked, written):
                break
        last = self._runs[-1]
        assert last.answer is not None  # a run that is done has an answer
        return Reply(last.answer, last.steps[-1].finish or "stop")

    async def _write(self, number: int) -> tuple[Checked, tuple[Completion, ...]]:
        """Ask for a workflow, again if it is not valid."""
        messages, asked_with = self._messages, self._call_settings(number)
        written: list[Completion] = []
        for _ in range(self._settings.reasks + 1):
            try:
                reply = await self._handle.ask(self._model, messages, round_number=number, settings=asked_with)
            except CAUSES as cause:
                self._note_lost(number, tuple(written), str(cause))
                raise
            checked = self._analyzed(reply.text, number)
            written.append(completion_of(reply, checked))
            if checked.ok:
                break
            again = self._settings.prompt.reask(problems_of(checked))
            messages = (*messages, {"role": "assistant", "content": reply.text}, again)
        return checked, tuple(written)

    def _note_lost(self, number: int, written: tuple[Completion, ...], reason: str) -> None:
        """Keep completions that were paid for, where no further one could be had."""
        if not written:
            return
        note = self._note(number, "failed", written, reason)
        if self._runs:
            self._keep(note)
        else:
            self.unplaced.append(note)

    def _call_settings(self, number: int) -> dict[str, Any]:
        grammar = self._settings.grammar
        if grammar is None:
            return {}
        return grammar.call_settings(self._offer.ordinals, self._settings.max_steps, recursion=number > 0)

    def _analyzed(self, text: str, number: int) -> Checked:
        return analyze(
            text,
            pool=self._offer,
            max_steps=self._settings.max_steps,
            profile=self._settings.profile,
            recursion=number > 0,
            depth_left=self._handle.depth,
        )

    async def _act(self, number: int, checked: Checked, written: tuple[Completion, ...]) -> bool:
        """Do what the completion says; whether a workflow ran, so that it may be revised."""
        if checked.workflow is not None:
            workflow = self._offer.to_pool(checked.workflow)
            excess = self._excess(workflow)
            if not excess:
                await self._run(number, workflow, self._note(number, "ran", written), written[-1].text)
                return True
            self._keep(self._note(number, "kept-over-limit", written, excess))
        elif checked.ok:
            self._keep(self._note(number, "kept", written))
        elif number > 0:
            self._keep(self._note(number, "kept-invalid", written, "; ".join(written[-1].problems)))
        else:
            return await self._run_default(written)
        return False

    async def _run_default(self, written: tuple[Completion, ...]) -> bool:
        default = self._settings.default
        if default is None:
            self.unplaced.append(self._note(0, "failed", written, "no valid workflow, and no default workflow"))
            raise _no_workflow(written)
        require_runnable(default, self._handle.pool, self._handle.depth)
        text = print_completion(self._offer.from_pool(default))
        await self._run(0, default, self._note(0, "ran-default", written), text)
        return True

    async def _run(self, number: int, workflow: Workflow, note: RoundNote, text: str) -> None:
        handle, before = self._handle, len(self._handle.nested)
        previous = self._previous()
        try:
            run = await handle.run(workflow, self._question, round_number=number, previous=previous)
        finally:
            handle.nested = (*handle.nested[:before], *(add_note(each, note) for each in handle.nested[before:]))
        assert run.answer is not None  # a run that is done has an answer
        self._runs.append(run)
        left = self._settings.max_rounds - number - 1
        self._messages = (
            *self._messages,
            {"role": "assistant", "content": text},
            self._settings.prompt.revise(run.answer, max_steps=self._settings.max_steps, rounds_left=max(left, 0)),
        )

    def _previous(self) -> tuple[str, str] | None:
        """The final (subtask, response) of the round before."""
        if not self._runs:
            return None
        last = self._runs[-1].steps[-1]
        assert last.response is not None  # a run that is done has an answer
        return self._runs[-1].workflow[-1].subtask, last.response

    def _keep(self, note: RoundNote) -> None:
        """Leave the answer as it is, and say so with the last run."""
        nested = self._handle.nested
        self._handle.nested = (*nested[:-1], add_note(nested[-1], note))

    def _excess(self, workflow: Workflow) -> str:
        """Why a revision asks for too many calls; empty if it does not."""
        factor = self._settings.call_factor
        if factor is None or not self._runs:
            return ""
        first, wanted = self._calls(self._runs[0].workflow), self._calls(workflow)
        if wanted <= factor * first:
            return ""
        return f"the revision makes {wanted} calls, more than {factor:g} times the first round's {first}"

    def _calls(self, workflow: Workflow) -> int:
        return len(workflow) if self._handle.environment.config.run_dead_steps else graph_of(workflow).calls

    def _note(self, number: int, outcome: Outcome, written: tuple[Completion, ...], reason: str = "") -> RoundNote:
        numbering = tuple(sorted(self._offer.true.items()))
        return RoundNote(number, outcome, written, self._settings.prompt.stamp, numbering, reason)


def _no_workflow(written: tuple[Completion, ...]) -> WorkerFailure:
    count = f"{len(written)} completion{'' if len(written) == 1 else 's'}"
    problems = "; ".join(written[-1].problems)
    return WorkerFailure(
        f"no valid workflow in {count}; the last one: {problems}; "
        "give a default workflow, more re-asks, a grammar or a stronger model",
        retryable=False,
    )
