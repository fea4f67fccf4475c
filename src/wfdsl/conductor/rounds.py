"""The rounds of a Conductor: it writes a workflow, sees the answer, and may revise the workflow.

A round is one workflow of the conversation; round 0 is the first. All that a worker wrote reaches the Conductor inside
one user message, and only what the Conductor's own model wrote is ever read as a workflow.

Source: arXiv 2512.04388 (recursion in the same conversation, three empty lists, "all" shows the previous final pair,
capped rounds). Re-asks, the default workflow and that an invalid revision keeps the previous answer are our choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wfdsl.api import Checked, analyze
from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.policy import ablated
from wfdsl.conductor.round_log import (
    NO_WORKFLOW,
    UNWRITTEN,
    Completion,
    RoundLog,
    RoundResult,
    add_round,
    completion_of,
    problems_of,
)
from wfdsl.conductor.settings import ConductorSettings
from wfdsl.conductor.workflow_tool import completing
from wfdsl.graph import graph_of
from wfdsl.interpreter.conductor_node import ConductorCall
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.execution import CAUSES, require_runnable
from wfdsl.interpreter.limits import UnusableReply
from wfdsl.interpreter.record import Run, RunFailed
from wfdsl.language.completion import print_completion
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Message, Reply, Worker, WorkerFailure
from wfdsl.render.text import counted

_NOTHING: Final = "(an empty reply)"
"""What is shown of an empty completion: some providers refuse empty messages."""


class Rounds:
    """The rounds of one Conductor's call: the first workflow and its revisions."""

    def __init__(
        self,
        settings: ConductorSettings,
        model: Worker,
        handle: ConductorCall,
        listing: WorkerListing,
        question: Question,
    ) -> None:
        self._settings = settings
        self._model = model if settings.tool is None else completing(model)
        self._handle = handle
        self._listing = listing
        self._question = question
        self._messages = settings.prompt.ask(
            question,
            listing,
            max_steps=settings.max_steps,
            question_for=handle.request.config.question_for,
            access=settings.config.access,
            effort=settings.config.effort,
        )
        self._runs: list[Run] = []
        self.unplaced: list[RoundLog] = []
        """Rounds that ran nothing, where there is no earlier run to hold them."""

    async def finish(self) -> Reply:
        """Go through the rounds; the answer is the answer of the last workflow that ran.

        Raises:
            WorkerFailure: the Conductor's model gave no reply, or no workflow that can be run.
            RunFailed, BudgetExhausted: a workflow's run ended without an answer.
        """
        for number in range(self._settings.max_rounds + 1):
            if not await self._round(number):
                break
        last = self._runs[-1]
        return Reply(_answer(last), last.steps[-1].finish or "stop")

    async def _round(self, number: int) -> bool:
        """One round; whether a workflow ran, so that it may be revised."""
        written: list[Completion] = []
        try:
            checked = await self._write(number, written)
        except CAUSES as cause:
            if self._runs and isinstance(cause, WorkerFailure):
                return self._keep(number, "kept-failed", written, str(cause))
            if written:  # they were paid for
                self._keep(number, "failed", written, str(cause))
            raise
        if checked.workflow is not None:
            own, settings = self._listing.to_pool(checked.workflow), self._settings
            workflow = ablated(own, instruction=settings.instruction, worker=settings.worker)
            if excess := self._excess(workflow):
                return self._keep(number, "kept-over-limit", written, excess)
            return await self._run(number, workflow, self._log(number, "ran", written), written[-1].text)
        if checked.ok:
            return self._keep(number, "kept", written)
        if number > 0:
            return self._keep(number, "kept-invalid", written, "; ".join(written[-1].problems))
        default = self._settings.default
        if default is None:
            self._keep(number, "failed", written, NO_WORKFLOW)
            raise self._no_workflow(written)
        require_runnable(default, self._handle.pool, self._handle.level.depth)
        text = print_completion(self._listing.from_pool(default))
        return await self._run(number, default, self._log(number, "ran-default", written), text)

    async def _write(self, number: int, written: list[Completion]) -> Checked:
        """Ask for a workflow, again if it is not valid; what came is added to `written`."""
        settings, handle, messages = self._settings, self._handle, self._messages
        form, recursion = settings.tool or settings.grammar, number > 0
        indices, steps = self._listing.indices, settings.max_steps
        asked_with = {} if form is None else form.call_settings(indices, steps, recursion=recursion)
        for _ in range(settings.config.reasks + 1):
            unusable = ""
            try:
                reply = await handle.ask(self._model, messages, round_number=number, settings=asked_with)
            except UnusableReply as failure:
                reply, unusable = Reply("", "empty"), str(failure)
            checked = analyze(
                reply.text,
                pool=self._listing,
                max_steps=steps,
                profile=settings.config.profile,
                access=settings.config.access,
                recursion=recursion,
                depth_left=handle.level.depth,
            )
            completion = completion_of(reply, checked)
            written.append(replace(completion, problems=(unusable,)) if unusable else completion)
            if checked.ok:
                break
            said: Message = {"role": "assistant", "content": reply.text or _NOTHING}
            problems = f"- {unusable}" if unusable else problems_of(checked)
            messages = (*messages, said, settings.prompt.reask(problems))
        return checked

    async def _run(self, number: int, workflow: Workflow, log: RoundLog, text: str) -> bool:
        """Run a workflow; whether it gave an answer. A failed revision leaves the previous answer."""
        handle, before, settings = self._handle, len(self._handle.record.nested), self._settings
        last = self._runs[-1] if self._runs else None
        previous = None if last is None else (last.workflow[-1].subtask, _answer(last))
        try:
            run = await handle.run(workflow, self._question, round_number=number, previous=previous)
        except RunFailed as failed:
            if not self._runs:
                raise
            log = replace(log, result="kept-failed", reason=str(failed))
            return False
        finally:
            nested = handle.record.nested
            handle.record.nested = (*nested[:before], *(add_round(each, log) for each in nested[before:]))
        self._runs.append(run)
        revise = settings.prompt.revise(
            _answer(run),
            max_steps=settings.max_steps,
            rounds_left=max(settings.max_rounds - number - 1, 0),
            max_chars=settings.config.max_response_chars,
        )
        self._messages = (*self._messages, {"role": "assistant", "content": text}, revise)
        return True

    def _keep(self, number: int, result: RoundResult, written: Sequence[Completion], reason: str = "") -> bool:
        """Leave the answer as it is, and keep the log with the last run, if there is one; False: no workflow ran."""
        log, nested = self._log(number, result, written, reason), self._handle.record.nested
        if self._runs:
            self._handle.record.nested = (*nested[:-1], add_round(nested[-1], log))
        else:
            self.unplaced.append(log)
        return False

    def _excess(self, workflow: Workflow) -> str:
        """Why a revision asks for too many calls; empty if it does not."""
        factor, counts_all = self._settings.config.call_factor, self._handle.request.config.run_dead_steps
        if factor is None or not self._runs:
            return ""
        both = (self._runs[0].workflow, workflow)
        first, wanted = (len(each) if counts_all else len(graph_of(each).live) for each in both)
        excess = f"the revision makes {wanted} calls, more than {factor:g} times the {first} of round 0"
        return excess if wanted > factor * first else ""

    def _log(self, number: int, result: RoundResult, written: Sequence[Completion], reason: str = "") -> RoundLog:
        numbering = tuple(sorted(self._listing.pool_indices.items()))
        return RoundLog(number, result, tuple(written), self._settings.prompt.fingerprint, numbering, reason)

    def _no_workflow(self, written: Sequence[Completion]) -> WorkerFailure:
        problems, cure = "; ".join(written[-1].problems), "a grammar or a stronger model"
        if self._settings.grammar is not None:
            cure = "a server that applies the grammar (`wfdsl pools check --deep` says whether it does)"
        return WorkerFailure(
            f"{UNWRITTEN}{counted(len(written), 'completion')}; the last one: {problems}; "
            f"give a default workflow, more re-asks, or {cure}",
            retryable=False,
        )


def _answer(run: Run) -> str:
    assert run.answer is not None  # a run that is done has an answer
    return run.answer
