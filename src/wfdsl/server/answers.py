"""What a request is answered with, whichever API it came by: a text, or calls of the client's tools, and which worker
did what; and a chat completion, or its chunks, of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.interpreter.record import Run, total_usd
from wfdsl.interpreter.tools import pending_calls, suspended_answer
from wfdsl.protocols import ToolCall, Usage
from wfdsl.server.api_errors import ApiError
from wfdsl.server.endpoints import DONE, as_event
from wfdsl.server.json_schema import form_problem
from wfdsl.server.live_runs import Said
from wfdsl.server.models import Turn


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a turn."""

    turn: Turn
    run: Run
    """The run; where tools are called, what there is of it."""
    text: str
    finish: str
    """OpenAI's word for how it ended: `stop`, `length`, `tool_calls`."""
    tool_calls: tuple[ToolCall, ...] = ()
    again: Run | None = None
    """The run in which the worker was asked once more, for another form of the answer."""

    @property
    def usage(self) -> Usage:
        """The tokens of this turn: of all calls, the Conductor's included."""
        before = self.turn.before  # what was paid for in earlier turns was reported then
        found = self.run.usage if before is None else self.run.usage - before.usage
        return found if self.again is None else found + self.again.usage

    @property
    def paid_usd(self) -> float | None:
        """What this turn cost, in US dollars; None if a price is not known."""
        before = 0.0 if self.turn.before is None else self.turn.before.paid_usd
        paid = total_usd(run.paid_usd for run in (self.run, self.again) if run is not None)
        return None if paid is None or before is None else max(paid - before, 0.0)

    @property
    def form_problem(self) -> str:
        """What is wrong with the form of the answer, in words; empty: nothing, or it was cut or calls tools."""
        return form_problem(self.turn.chat.form, self.text) if self.finish == "stop" else ""


def answer_of(turn: Turn, run: Run) -> Answer:
    """The answer of a run that is done, up to the first stop text; or the tool calls of one that is suspended."""
    if run.status == "suspended":
        answering = suspended_answer(run)
        text = "" if answering is None else answering.messages[-1]["content"]
        return Answer(turn, run, text, "tool_calls", pending_calls(run))
    assert run.answer is not None  # it is done
    text, finish = run.answer, "length" if run.steps[-1].finish == "length" else "stop"
    ends = [at for stop in turn.chat.stops if (at := text.find(stop)) >= 0]
    return Answer(turn, run, text[: min(ends)], "stop") if ends else Answer(turn, run, text, finish)


def usage_of(answer: Answer) -> dict[str, Any]:
    """The tokens of all calls that were made for an answer, the Conductor's included."""
    found = answer.usage
    return {
        **_tokens(found),
        "total_tokens": found.total_tokens,
        "prompt_tokens_details": {"cached_tokens": found.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": found.thinking_tokens},
    }


def summary_of(answer: Answer) -> dict[str, Any]:
    """The run's id, what it cost, and the tokens and the cost of each step; None: a price is not known."""
    about = run_summary(answer.run)
    if answer.again is not None:
        about["cost_usd"] = total_usd(run.paid_usd for run in (answer.run, answer.again))
        about["steps"] += [{"asked_again": answer.again.id, **step} for step in _steps(answer.again)]
    return about | ({"skipped": f"conductor: {answer.turn.skipped}"} if answer.turn.skipped else {})


def run_summary(run: Run) -> dict[str, Any]:
    """The same of a run that may have no answer."""
    steps = list(_conducted(run) if run.workflow == ROOT_WORKFLOW else _steps(run))
    return {"run": run.id, "cost_usd": run.paid_usd, "seconds": _rounded(run.seconds), "steps": steps}


def _conducted(run: Run) -> Iterator[dict[str, Any]]:
    """The steps of each round, after what the Conductor's own completions took."""
    root = run.steps[0]
    inside = [nested.usage for nested in root.nested]
    own = root.usage if not inside else root.usage - sum(inside, Usage())
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


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def cost_headers(answer: Answer) -> dict[str, str]:
    """The headers that name the run and its cost; `unknown` if a price is not known."""
    cost = "unknown" if answer.paid_usd is None else f"{answer.paid_usd:.6f}"
    return {"x-wfdsl-run": answer.run.id, "x-wfdsl-cost": cost}


class ChatReply:
    """The answer to a request as a chat completion; each method gives the chunks that a stream sends."""

    def __init__(self, turn: Turn, reasoning_field: str) -> None:
        self.turn = turn
        self._reasoning = reasoning_field
        self._answer: Answer
        self._about = {"id": f"chatcmpl-{turn.run_id}", "created": turn.created, "model": turn.chat.model}

    def body(self) -> dict[str, Any]:
        """The chat completion, once the answer is there."""
        return {
            **self._about,
            "object": "chat.completion",
            "choices": [_choice(self._answer)],
            "usage": usage_of(self._answer),
            "wfdsl": summary_of(self._answer),
        }

    @property
    def headers(self) -> dict[str, str]:
        """The headers that name the run and its cost."""
        return self.turn.headers | cost_headers(self._answer)

    def begin(self) -> bytes:
        """The first chunk."""
        return self._chunk({"role": "assistant", "content": ""})

    def said(self, said: Said) -> bytes:
        """A piece of the answer, or of what happens."""
        delta = {"content": "", self._reasoning: said.text} if said.reasoning else {"content": said.text}
        return self._chunk(delta)

    def keep_alive(self) -> bytes:
        """A chunk that adds nothing: some clients leave when events, not bytes, are missing for minutes."""
        return self._chunk({"content": ""})

    async def end(self, answer: Answer) -> bytes:
        """The end of the answer: its tool calls, how it ended, and what was done."""
        self._answer = answer
        calls = b"".join(self._chunk(delta) for delta in _calls(answer))
        delta = {"content": None if answer.tool_calls else ""}
        ended = [{"index": 0, "delta": delta, "finish_reason": answer.finish, "logprobs": None}]
        last = self._event(ended, wfdsl=summary_of(answer))
        usage = self._event([], usage=usage_of(answer)) if self.turn.chat.include_usage else b""
        return calls + last + usage + DONE

    def fail(self, error: ApiError) -> bytes:
        """The error as the last event."""
        return as_event(error.body())

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return self._event([{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}])

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        usage = {"usage": None} if self.turn.chat.include_usage else {}
        return as_event({**self._about, "object": "chat.completion.chunk", "choices": choices, **usage, **more})


def _choice(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.tool_calls:
        message["content"] = answer.text or None
        message["tool_calls"] = [_tool_call(call) for call in answer.tool_calls]
    return {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """A tool call as the chat API has it."""
    if call.custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _calls(answer: Answer) -> Iterator[dict[str, Any]]:
    """Deltas for the tool calls of an answer: each call's name, then what it is given."""
    for number, call in enumerate(answer.tool_calls):
        field = "input" if call.custom else "arguments"
        whole = _tool_call(call)
        about = {**whole, whole["type"]: {**whole[whole["type"]], field: ""}}
        yield {"content": None, "tool_calls": [{"index": number, **about}]}
        yield {"content": None, "tool_calls": [{"index": number, whole["type"]: {field: call.arguments}}]}
