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

    Source: arXiv 2512.04388, section 3 (visible pairs as past messages of a chat). That the question is joined with
    the first user message, for every worker, is our choice.
    """
    steps = workflow.steps
    messages: list[Message] = []
    if previous is not None and steps[step].access == ALL:
        messages.append({"role": "user", "content": previous[0]})
        messages.append({"role": "assistant", "content": previous[1]})
    for seen in workflow.sees(step):
        messages.append({"role": "user", "content": steps[seen].subtask})
        messages.append({"role": "assistant", "content": responses[seen]})
    messages.append({"role": "user", "content": steps[step].subtask})
    if question_for == "all" or step == 0:
        return after_question(question, messages)
    return tuple(messages)


def after_question(question: Question, messages: list[Message]) -> tuple[Message, ...]:
    """The messages with the question before them, inside their first user message.

    Of a conversation the last message is joined with the first user message if a user wrote it; the messages before
    it keep their roles.
    """
    if isinstance(question, str):
        return _joined(question, messages) if question else tuple(messages)
    if not question:
        return tuple(messages)
    last = question[-1]
    if last["role"] != "user":
        return (*question, *messages)
    joined = _joined(last["content"], messages)
    if "images" in last:
        joined[0]["images"] = last["images"]
    return (*question[:-1], *joined)


def _joined(text: str, messages: list[Message]) -> tuple[Message, ...]:
    first = messages[0]
    messages[0] = {"role": first["role"], "content": f"{text}\n\n{first['content']}"}
    return tuple(messages)
