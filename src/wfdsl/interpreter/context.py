"""Context of a step: the chat messages that it is shown, a pure function of the workflow and the earlier responses.

Everything that a worker wrote goes into message content, never into a role: no response can change who speaks,
what is visible or which step runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Message

Question: TypeAlias = str | Sequence[Message]
QuestionFor: TypeAlias = Literal["all", "first"]


def messages_for(
    workflow: Workflow,
    step: int,
    responses: Mapping[int, str] | Sequence[str],
    question: Question,
    *,
    question_for: QuestionFor = "all",
    previous: tuple[str, str] | None = None,
) -> tuple[Message, ...]:
    """The messages of a step: the steps that it sees, ascending, then its own subtask, after the question.

    `question_for="first"` shows the question to step 0 only. `previous` is the final (subtask, response) of the
    round before; a step whose access is "all" sees it first.

    Of a conversation the last message is joined with the first message of the steps if a user wrote it; the messages
    before it keep their roles.

    Source: arXiv 2512.04388, section 3 (visible pairs as past messages of a chat). That the question is joined with
    the first user message, for every worker, is our choice.
    """
    steps, texts = workflow.steps, list[str]()
    if previous is not None and steps[step].access == ALL:
        texts += previous
    for seen in workflow.sees(step):
        texts += (steps[seen].subtask, responses[seen])
    texts.append(steps[step].subtask)
    said: Sequence[Message] = [{"role": "user", "content": question}] if isinstance(question, str) else question
    if not question or (question_for == "first" and step != 0):
        said = ()
    last = said[-1] if said and said[-1]["role"] == "user" else None
    if last is not None:
        said, texts[0] = said[:-1], f"{last['content']}\n\n{texts[0]}"
    messages: list[Message] = [
        {"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(texts)
    ]
    if last is not None and "images" in last:
        messages[0]["images"] = last["images"]
    return (*said, *messages)
