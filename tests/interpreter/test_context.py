"""What a step is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wfdsl import Step, Workflow
from wfdsl.interpreter.context import messages_for

if TYPE_CHECKING:
    from wfdsl.protocols import Message

THREE = Workflow((Step(0, "Plan."), Step(1, "Solve.", (0,)), Step(0, "Check.", "all")))
RESPONSES = ["a plan", "a solution", ""]


def test_visible_steps_come_in_order_as_pairs_behind_the_question() -> None:
    messages = messages_for(THREE, 2, RESPONSES, "What is 2+2?")

    assert messages == (
        {"role": "user", "content": "What is 2+2?\n\nPlan."},
        {"role": "assistant", "content": "a plan"},
        {"role": "user", "content": "Solve."},
        {"role": "assistant", "content": "a solution"},
        {"role": "user", "content": "Check."},
    )


def test_the_question_can_be_kept_to_the_first_step() -> None:
    first = messages_for(THREE, 0, RESPONSES, "Q", question_for="first")
    second = messages_for(THREE, 1, RESPONSES, "Q", question_for="first")

    assert first[0]["content"] == "Q\n\nPlan."
    assert second[0]["content"] == "Plan."


def test_a_conversation_keeps_its_roles_and_its_last_question_is_joined_with_the_first_user_message() -> None:
    conversation: list[Message] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "What is 2+2?"},
    ]

    messages = messages_for(THREE, 1, RESPONSES, conversation)

    assert messages[:3] == tuple(conversation[:3])
    assert messages[3:] == (
        {"role": "user", "content": "What is 2+2?\n\nPlan."},
        {"role": "assistant", "content": "a plan"},
        {"role": "user", "content": "Solve."},
    )


@pytest.mark.parametrize("question", ["", []])
def test_an_empty_question_adds_nothing(question: str | list[Message]) -> None:
    assert messages_for(THREE, 0, RESPONSES, question) == ({"role": "user", "content": "Plan."},)


def test_only_a_step_that_sees_all_is_shown_the_round_before_and_first() -> None:
    every = messages_for(THREE, 2, RESPONSES, "Q", previous=("Answer it.", "42"))
    listed = messages_for(THREE, 1, RESPONSES, "Q", previous=("Answer it.", "42"))

    assert every[:2] == ({"role": "user", "content": "Q\n\nAnswer it."}, {"role": "assistant", "content": "42"})
    assert listed[0]["content"] == "Q\n\nPlan."
