"""The rows that a trainer reads, and the completions that it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.prompt import Prompt
from wfdsl.interpreter.context import QuestionFor
from wfdsl.language.check import AccessScheme
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool

Row: TypeAlias = dict[str, Any]
"""What a trainer reads: `prompt` (messages), `task` (its id), `row` (a number), `split`, and the workers offered:
`shown` are their indices in the prompt, `true` the pool's indices of the same workers."""


def row_of(
    task: Task,
    offer: WorkerListing,
    prompt: Prompt,
    *,
    number: int,
    max_steps: int,
    access: AccessScheme = "lists",
    question_for: QuestionFor = "all",
    split: str = "train",
) -> Row:
    """The row of a task: the prompt's messages, and what the reward function needs to know of them."""
    messages = prompt.ask(task.question, offer, max_steps=max_steps, question_for=question_for, access=access)
    return {
        "prompt": [dict(each) for each in messages],
        "row": number,
        "task": task.id,
        "split": split,
        "shown": list(offer.indices),
        "true": [offer.pool_indices[index] for index in offer.indices],
    }


def offer_of(row: Mapping[str, Any], pool: Pool) -> WorkerListing:
    """The workers that a row's prompt lists."""
    return WorkerListing.of(pool.subset(sorted(row["true"])), dict(zip(row["shown"], row["true"], strict=True)))


def text_of(completion: Any) -> str:
    """The text of a completion, which may be a chat; a message without text, such as a tool call, has none."""
    if isinstance(completion, str):
        return completion
    content = completion[0].get("content") if completion else None
    if isinstance(content, str) or not content:
        return content or ""
    return "".join(part.get("text", "") for part in content)


def number_of(row: Mapping[str, Any]) -> Any:
    """What tells a row from others: its number, or its task in a data set of somebody's own."""
    return row.get("row", row["task"])
