"""The rounds of a Conductor: it writes a workflow, sees the answer, and may revise the workflow.

A round is one workflow of the conversation; round 0 is the first. All that a worker wrote reaches the Conductor inside
one user message, and only what the Conductor's own model wrote is ever read as a workflow.

Source: arXiv 2512.04388 (recursion in the same conversation, three empty lists, "all" shows the previous final pair,
capped rounds). Re-asks, the default workflow and that an invalid revision keeps the previous answer are our choice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

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
from wfdsl.conductor.workflow_tool import ToolWriter
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
        self._config = settings.config
        self._model = model if settings.tool is None else ToolWriter(model)
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
        assert last.answer is not None  # a run that is done has an answer
        return Reply(last.answer, last.steps[-1].finish or "stop")

    async def _round(self, number: int) -> bool:
        """One round; whether a workflow ran, so that it may be revised."""
        written: list[Completion] = []
        try:
            checked = await self._write(number, written)
        except CAUSES as cause:
            if self._runs and isinstance(cause, WorkerFailure):
                self._keep(self._log(number, "kept-failed", tuple(written), str(cause)))
                return False
            self._log_lost(number, tuple(written), str(cause))
            raise
        return await self._act(number, checked, tuple(written))

    async def _write(self, number: int, written: list[Completion]) -> Checked:
        """Ask for a workflow, again if it is not valid; what came is added to `written`."""
        messages, asked_with = self._messages, self._call_settings(number)
        for _ in range(self._config.reasks + 1):
            try:
                reply = await self._handle.ask(self._model, messages, round_number=number, settings=asked_with)
                checked = self._analyzed(reply.text, number)
                completion, problems = completion_of(reply, checked), problems_of(checked)
            except UnusableReply as failure:
                checked, problems = self._analyzed("", number), f"- {failure}"
                completion = Completion("", "invalid", (str(failure),), "empty")
            written.append(completion)
            if checked.ok:
                break
            said: Message = {"role": "assistant", "content": completion.text or _NOTHING}
            messages = (*messages, said, self._settings.prompt.reask(problems))
        return checked

    def _log_lost(self, number: int, written: tuple[Completion, ...], reason: str) -> None:
        """Keep completions that were paid for, where the next one failed."""
        if not written:
            return
        log = self._log(number, "failed", written, reason)
        if self._runs:
            self._keep(log)
        else:
            self.unplaced.append(log)

    def _call_settings(self, number: int) -> dict[str, Any]:
        writing = self._settings.tool or self._settings.grammar
        if writing is None:
            return {}
        return writing.call_settings(self._listing.indices, self._settings.max_steps, recursion=number > 0)

    def _analyzed(self, text: str, number: int) -> Checked:
        return analyze(
            text,
            pool=self._listing,
            max_steps=self._settings.max_steps,
            profile=self._config.profile,
            access=self._config.access,
            recursion=number > 0,
            depth_left=self._handle.level.depth,
        )

    async def _act(self, number: int, checked: Checked, written: tuple[Completion, ...]) -> bool:
        """Do what the completion says; whether a workflow ran, so that it may be revised."""
        if checked.workflow is not None:
            written_one, settings = self._listing.to_pool(checked.workflow), self._settings
            workflow = ablated(written_one, instruction=settings.instruction, worker=settings.worker)
            excess = self._excess(workflow)
            if not excess:
                return await self._run(number, workflow, self._log(number, "ran", written), written[-1].text)
            self._keep(self._log(number, "kept-over-limit", written, excess))
        elif checked.ok:
            self._keep(self._log(number, "kept", written))
        elif number > 0:
            self._keep(self._log(number, "kept-invalid", written, "; ".join(written[-1].problems)))
        else:
            return await self._run_default(written)
        return False

    async def _run_default(self, written: tuple[Completion, ...]) -> bool:
        default = self._settings.default
        if default is None:
            self.unplaced.append(self._log(0, "failed", written, NO_WORKFLOW))
            raise self._no_workflow(written)
        require_runnable(default, self._handle.pool, self._handle.level.depth)
        text = print_completion(self._listing.from_pool(default))
        return await self._run(0, default, self._log(0, "ran-default", written), text)

    async def _run(self, number: int, workflow: Workflow, log: RoundLog, text: str) -> bool:
        """Run a workflow; whether it gave an answer. A failed revision leaves the previous answer."""
        handle, before = self._handle, len(self._handle.record.nested)
        previous = self._previous()
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
        assert run.answer is not None  # a run that is done has an answer
        self._runs.append(run)
        left = self._settings.max_rounds - number - 1
        self._messages = (
            *self._messages,
            {"role": "assistant", "content": text},
            self._settings.prompt.revise(
                run.answer,
                max_steps=self._settings.max_steps,
                rounds_left=max(left, 0),
                max_chars=self._config.max_response_chars,
            ),
        )
        return True

    def _previous(self) -> tuple[str, str] | None:
        """The final (subtask, response) of the previous round."""
        if not self._runs:
            return None
        last = self._runs[-1].steps[-1]
        assert last.response is not None  # a run that is done has an answer
        return self._runs[-1].workflow[-1].subtask, last.response

    def _keep(self, log: RoundLog) -> None:
        """Leave the answer as it is, and say so with the last run."""
        nested = self._handle.record.nested
        self._handle.record.nested = (*nested[:-1], add_round(nested[-1], log))

    def _excess(self, workflow: Workflow) -> str:
        """Why a revision asks for too many calls; empty if it does not."""
        factor = self._config.call_factor
        if factor is None or not self._runs:
            return ""
        first, wanted = self._calls(self._runs[0].workflow), self._calls(workflow)
        if wanted <= factor * first:
            return ""
        return f"the revision makes {wanted} calls, more than {factor:g} times the {first} of round 0"

    def _calls(self, workflow: Workflow) -> int:
        return len(workflow) if self._handle.request.config.run_dead_steps else graph_of(workflow).calls

    def _log(self, number: int, result: RoundResult, written: tuple[Completion, ...], reason: str = "") -> RoundLog:
        numbering = tuple(sorted(self._listing.pool_indices.items()))
        return RoundLog(number, result, written, self._settings.prompt.fingerprint, numbering, reason)

    def _no_workflow(self, written: tuple[Completion, ...]) -> WorkerFailure:
        problems, cure = "; ".join(written[-1].problems), "a grammar or a stronger model"
        if self._settings.grammar is not None:
            cure = "a server that applies the grammar (`wfdsl pools check --deep` says whether it does)"
        return WorkerFailure(
            f"{UNWRITTEN}{counted(len(written), 'completion')}; the last one: {problems}; "
            f"give a default workflow, more re-asks, or {cure}",
            retryable=False,
        )
