"""What is sent back: the answer as a chat completion, the tokens of all calls, and which worker did what."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.interpreter.record import Run
from wfdsl.protocols import Finish, Usage
from wfdsl.server.chat_request import ChatRequest


def chat_completion(request: ChatRequest, run: Run) -> dict[str, Any]:
    """The answer of a run as a chat completion."""
    text, finish = answer_of(request, run)
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": completion_id(run.id),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": usage_of(run),
        "wfdsl": summary_of(run),
    }


def completion_id(run_id: str) -> str:
    """The id of a completion."""
    return f"chatcmpl-{run_id}"


def answer_of(request: ChatRequest, run: Run) -> tuple[str, str]:
    """The answer up to the first stop text, and OpenAI's word for how it ended."""
    assert run.answer is not None  # only a run that is done is answered with
    text, ended = run.answer, run.steps[-1].finish
    ends = [at for stop in request.stop if (at := text.find(stop)) >= 0]
    return (text[: min(ends)], "stop") if ends else (text, _FINISHES.get(ended, "stop"))


_FINISHES: dict[Finish | None, str] = {"length": "length"}


def usage_of(run: Run) -> dict[str, Any]:
    """The tokens of all calls of a run, the Conductor's included."""
    return {**_tokens(run.usage), "total_tokens": run.usage.total_tokens, **_details(run.usage)}


def cost_of(run: Run) -> str:
    """What a run cost in US dollars, for a header; `unknown` if a price is not known."""
    return "unknown" if run.paid_usd is None else f"{run.paid_usd:.6f}"


def headers_of(run: Run) -> dict[str, str]:
    """The headers that name a run and its cost."""
    return {"x-wfdsl-run": run.id, "x-wfdsl-cost": cost_of(run)}


def summary_of(run: Run) -> dict[str, Any]:
    """The run's id, what it cost, and the tokens and the cost of each step; None: a price is not known."""
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


def _less(whole: Usage, part: Usage) -> Usage:
    return Usage(
        whole.input_tokens - part.input_tokens,
        whole.output_tokens - part.output_tokens,
        whole.thinking_tokens - part.thinking_tokens,
        whole.cached_tokens - part.cached_tokens,
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
