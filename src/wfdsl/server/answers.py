"""What a request is answered with, whichever API it came by: a text, or calls of the client's tools, and which worker
did what.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.interpreter.record import Run, total_usd
from wfdsl.interpreter.tools import pending_calls, suspended_answer
from wfdsl.protocols import Finish, ToolCall, Usage
from wfdsl.server.chat_request import ChatRequest
from wfdsl.server.json_schema import form_problem


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a turn."""

    run: Run
    """The run; where tools are called, what there is of it."""
    text: str
    finish: str
    """OpenAI's word for how it ended: `stop`, `length`, `tool_calls`, `content_filter`."""
    tool_calls: tuple[ToolCall, ...] = ()
    before: Run | None = None
    """The run as an earlier turn left it; what was paid for then has been reported then."""
    skipped: str = ""
    """Why no Conductor was asked."""
    again: Run | None = None
    """The run in which the worker was asked once more, for another form of the answer."""

    @property
    def usage(self) -> Usage:
        """The tokens of this turn: of all calls, the Conductor's included."""
        found = self.run.usage if self.before is None else _less(self.run.usage, self.before.usage)
        return found if self.again is None else found + self.again.usage

    @property
    def paid_usd(self) -> float | None:
        """What this turn cost, in US dollars; None if a price is not known."""
        before = 0.0 if self.before is None else self.before.paid_usd
        paid = total_usd(run.paid_usd for run in (self.run, self.again) if run is not None)
        return None if paid is None or before is None else max(paid - before, 0.0)

    def form_problem(self, request: ChatRequest) -> str:
        """What is wrong with the form of the answer, in words; empty: nothing, or it was cut or calls tools."""
        return form_problem(request.settings.get("response_format"), self.text) if self.finish == "stop" else ""

    def repaired(self, request: ChatRequest, again: Run) -> Answer:
        """The same, with what the worker answered when it was asked once more."""
        found = answer_of(request, again)
        return replace(self, text=found.text, finish=found.finish, again=again)


def _less(whole: Usage, part: Usage) -> Usage:
    """The tokens of a whole without those of a part."""
    return Usage(
        whole.input_tokens - part.input_tokens,
        whole.output_tokens - part.output_tokens,
        whole.thinking_tokens - part.thinking_tokens,
        whole.cached_tokens - part.cached_tokens,
    )


def answer_of(request: ChatRequest, run: Run, before: Run | None = None, *, skipped: str = "") -> Answer:
    """The answer of a run that is done, up to the first stop text; or the tool calls of one that is suspended."""
    if run.status == "suspended":
        answering = suspended_answer(run)
        text = "" if answering is None else answering.messages[-1]["content"]
        return Answer(run, text, "tool_calls", pending_calls(run), before, skipped)
    assert run.answer is not None  # it is done
    text, finish = run.answer, _FINISHES.get(run.steps[-1].finish, "stop")
    ends = [at for stop in request.stop if (at := text.find(stop)) >= 0]
    if ends:
        text, finish = text[: min(ends)], "stop"
    return Answer(run, text, finish, before=before, skipped=skipped)


_FINISHES: dict[Finish | None, str] = {"length": "length"}


def usage_of(answer: Answer) -> dict[str, Any]:
    """The tokens of all calls that were made for an answer, the Conductor's included."""
    found = answer.usage
    return {**_tokens(found), "total_tokens": found.total_tokens, **_details(found)}


def summary_of(answer: Answer) -> dict[str, Any]:
    """The run's id, what it cost, and the tokens and the cost of each step; None: a price is not known."""
    about = run_summary(answer.run)
    if answer.again is not None:
        about["cost_usd"] = total_usd(run.paid_usd for run in (answer.run, answer.again))
        about["steps"] += [{"asked_again": answer.again.id, **step} for step in _steps(answer.again)]
    return about | ({"skipped": f"conductor: {answer.skipped}"} if answer.skipped else {})


def run_summary(run: Run) -> dict[str, Any]:
    """The same of a run that may have no answer."""
    steps = list(_conducted(run) if run.workflow == ROOT_WORKFLOW else _steps(run))
    return {"run": run.id, "cost_usd": run.paid_usd, "seconds": _rounded(run.seconds), "steps": steps}


def _conducted(run: Run) -> Iterator[dict[str, Any]]:
    """The steps of each round, after what the Conductor's own completions took."""
    root = run.steps[0]
    inside = [nested.usage for nested in root.nested]
    own = root.usage if not inside else _less(root.usage, sum(inside, Usage()))
    known = root.paid_usd, *(nested.paid_usd for nested in root.nested)
    costs = [cost for cost in known if cost is not None]
    usd = None if len(costs) < len(known) else max(costs[0] - sum(costs[1:]), 0.0)
    yield {"step": "conductor", "worker": root.worker_name, **_tokens(own), "cost_usd": usd}
    for number, nested in enumerate(root.nested):
        for step in _steps(nested):
            yield {"round": number, **step}


def _steps(run: Run) -> Iterator[dict[str, Any]]:
    for step in run.steps:
        if step.started is not None:
            yield {
                "step": run.name_of(step.step),
                "worker": step.worker_name,
                "seconds": _rounded(step.seconds),
                **_tokens(step.usage),
                "cost_usd": step.paid_usd,
            }


def _tokens(usage: Usage) -> dict[str, int]:
    return {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}


def _details(usage: Usage) -> dict[str, dict[str, int]]:
    return {
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def cost_headers(answer: Answer) -> dict[str, str]:
    """The headers that name the run and its cost; `unknown` if a price is not known."""
    cost = "unknown" if answer.paid_usd is None else f"{answer.paid_usd:.6f}"
    return {"x-wfdsl-run": answer.run.id, "x-wfdsl-cost": cost}
