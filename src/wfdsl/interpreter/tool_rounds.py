"""Rounds of tool calls: a worker is asked again with the results of the tools that it has called, until it answers."""

from __future__ import annotations

from wfdsl.interpreter.pipeline import CallPipeline
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.interpreter.step_call import StepCall
from wfdsl.interpreter.tools import Tools, calling, results
from wfdsl.protocols import Call, Message, Reply, ToolCall


class StepSuspended(Exception):  # noqa: N818  (nothing has failed)
    """A worker has called tools whose results are not known."""


async def ask_with_tools(pipeline: CallPipeline, call: Call, tools: Tools) -> Reply:
    """The reply that calls no tools. What was said until then is in the messages of the step's call.

    Raises:
        StepSuspended: a result is not known.
        WorkerFailure, BudgetSpent, JournalFailure, UsageError: as `CallPipeline.ask` does.
    """
    handle: StepCall = call.run
    journal = handle.environment.journal
    assert journal is not None  # `run` has checked it
    rounds, known = 0, journal.tool_calls.get(call.path, ())
    while True:
        reply = await pipeline.ask(call._replace(settings={**call.settings, **tools.settings(rounds)}))
        if not reply.tool_calls:
            return reply
        handle.earlier = (*handle.earlier, reply)
        count = len(reply.tool_calls)
        issued, known = known[:count], known[count:]
        if not issued:
            issued = await journal.issue(call.path, reply.tool_calls, handle.environment.clock.now())
        handle.messages = (*call.messages, calling(reply.text, reply.tool_calls, issued))
        if any(each.result is None for each in issued):
            raise StepSuspended
        rounds += 1
        handle.messages = (*handle.messages, *results(issued))
        handle.key, handle.replayed, handle.answered_by = None, False, None
        call = call._replace(messages=handle.messages)


def pending_calls(run: Run) -> tuple[ToolCall, ...]:
    """The tool calls that a suspended run waits for, step by step."""
    return tuple(ToolCall(**call) for said in _last_words(run) for call in said["tool_calls"])


def _last_words(run: Run) -> list[Message]:
    found: list[Message] = []
    for step in run.steps:
        if step.status == "suspended":
            found += _last_words(step.nested[-1]) if step.nested else [step.messages[-1]]
    return found


def suspended_answer(run: Run) -> StepRecord | None:
    """The step that gives a run's answer, if it is suspended; inside a Conductor, that of its last round."""
    last = run.steps[-1]
    if last.status != "suspended":
        return None
    return suspended_answer(last.nested[-1]) if last.nested else last
