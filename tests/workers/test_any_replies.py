"""Answers with anything in any field: a reply with counts that can be stored, or a failure, and never another error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workers.wire import KINDS, good_body, good_events

from wfdsl.protocols import WorkerFailure
from wfdsl.workers.anthropic_api import MessagesAnswer
from wfdsl.workers.openai_api import ChatAnswer, ResponsesAnswer

if TYPE_CHECKING:
    from random import Random

ANSWERS: dict[str, Any] = {"chat": ChatAnswer, "responses": ResponsesAnswer, "anthropic": MessagesAnswer}
ODD: list[Any] = [None, True, 0, -1, 1, 2**53, 2**53 + 1, 10**400, 1.5, float("inf"), "", "x", "\ud800", "9" * 5000]
ODD += ["length", "tool_calls", [], {}, [None], ["x"], {"a": 1}, {"code": "9" * 5000}]
QUESTION = ({"role": "user", "content": "What is it?"},)


def _changed(value: Any, random: Random) -> Any:
    if random.random() < 0.1:
        return random.choice(ODD)
    if isinstance(value, dict):
        return {name: _changed(part, random) for name, part in value.items() if random.random() < 0.95}
    if isinstance(value, list):
        return [_changed(part, random) for part in value if random.random() < 0.95]
    return value


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
@given(random=st.randoms(use_true_random=False))
def test_whatever_an_answer_holds_it_is_a_reply_or_a_failure(kind: str, streams: bool, random: Random) -> None:
    answer = ANSWERS[kind]()
    try:
        if streams:
            for event in good_events(kind):
                changed = _changed(event, random)
                if isinstance(changed, dict):
                    answer.piece(changed)
        else:
            changed = _changed(good_body(kind), random)
            answer.whole(changed if isinstance(changed, dict) else {})
        reply = answer.reply(QUESTION)
    except WorkerFailure:
        return
    usage = reply.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.thinking_tokens, usage.cached_tokens)
    assert all(0 <= number < 2**56 for number in counts)
