"""What is sent back: the answer as a chat completion, the tokens of all calls, and which worker did what."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.interpreter.record import Run, total_usd
from wfdsl.interpreter.tool_rounds import pending_calls, suspended_answer
from wfdsl.protocols import Finish, ToolCall, Usage
from wfdsl.server.api_errors import ApiError
from wfdsl.server.chat_request import ChatRequest
from wfdsl.server.turn import Answer, less


def chat_completion(request: ChatRequest, answers: Sequence[Answer]) -> dict[str, Any]:
    """The answers to a request as a chat completion."""
    return {
        "id": completion_id(answers[0].run.id),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "choices": [_choice(answer) for answer in answers],
        "usage": usage_of(*answers),
        "wfdsl": summaries_of(answers),
    }


def _choice(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.tool_calls:
        message["content"] = answer.text or None
        message["tool_calls"] = [tool_call(call) for call in answer.tool_calls]
    return {"index": answer.choice, "message": message, "finish_reason": answer.finish, "logprobs": None}


def tool_call(call: ToolCall) -> dict[str, Any]:
    """A tool call as the chat API has it."""
    if call.custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def completion_id(run_id: str) -> str:
    """The id of a completion."""
    return f"chatcmpl-{run_id}"


def answer_of(request: ChatRequest, run: Run, before: Run | None = None, choice: int = 0) -> Answer:
    """The answer of a run that is done, up to the first stop text; or the tool calls of one that is suspended.

    Raises:
        ApiError: it is not of the form that was asked for.
    """
    if run.status == "suspended":
        answering = suspended_answer(run)
        text = "" if answering is None else answering.messages[-1]["content"]
        return Answer(run, text, "tool_calls", pending_calls(run), before, choice)
    assert run.answer is not None  # it is done
    text, finish = run.answer, _FINISHES.get(run.steps[-1].finish, "stop")
    ends = [at for stop in request.stop if (at := text.find(stop)) >= 0]
    if ends:
        text, finish = text[: min(ends)], "stop"
    if finish == "stop" and "response_format" in request.settings:
        _require_json(text, run)
    return Answer(run, text, finish, before=before, choice=choice)


def _require_json(text: str, run: Run) -> None:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        raise ApiError(
            502,
            "the answer is not JSON, though response_format asked for it; ask again, or use workers that keep to it",
            code="response_format_not_kept",
            run=run,
        ) from None


_FINISHES: dict[Finish | None, str] = {"length": "length"}


def usage_of(*answers: Answer) -> dict[str, Any]:
    """The tokens of all calls that were made for these answers, the Conductors' included."""
    found = sum((answer.usage for answer in answers), Usage())
    return {**_tokens(found), "total_tokens": found.total_tokens, **_details(found)}


def cost_of(*answers: Answer) -> str:
    """What answers cost in US dollars, for a header; `unknown` if a price is not known."""
    paid = total_usd(answer.paid_usd for answer in answers)
    return "unknown" if paid is None else f"{paid:.6f}"


def headers_of(*answers: Answer) -> dict[str, str]:
    """The headers that name the runs and their cost."""
    return {"x-wfdsl-run": ",".join(answer.run.id for answer in answers), "x-wfdsl-cost": cost_of(*answers)}


def summaries_of(answers: Sequence[Answer]) -> dict[str, Any]:
    """What was done: of one answer its summary, of several the summary of each."""
    found = [summary_of(answer.run) for answer in answers]
    return found[0] if len(found) == 1 else {"runs": found}


def summary_of(run: Run) -> dict[str, Any]:
    """The run's id, what it cost, and the tokens and the cost of each step; None: a price is not known."""
    steps = list(_conducted(run) if run.workflow == ROOT_WORKFLOW else _steps(run))
    return {"run": run.id, "cost_usd": run.paid_usd, "seconds": _rounded(run.seconds), "steps": steps}


def _conducted(run: Run) -> Iterator[dict[str, Any]]:
    """The steps of each round, after what the Conductor's own completions took."""
    root = run.steps[0]
    inside = [nested.usage for nested in root.nested]
    own = root.usage if not inside else less(root.usage, sum(inside, Usage()))
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
