"""Roles: what an instruction asks for can be told from its words."""

from __future__ import annotations

import pytest

from wfdsl_rl.gym.world.roles import Role, instruction_of, role_of

WORDINGS = {
    "plan": ["Make a plan. Do not solve it yet.", "Outline it, without solving it.", "Plan how to solve this.",
             "Break the problem down into parts.", "List the steps."],
    "solve": ["Solve the problem step by step.", "What is the final answer?", "Follow the plan above and solve it.",
              "Find all solutions of the equation.", "Write the program.", "Choose the right option.",
              "Make a plan, then solve it.", "Work through it carefully."],
    "verify": ["Check the answer above.", "Verify the solution.", "Review the work and correct it if needed.",
               "Look for mistakes in the latest solution above. Then write it again without them.",
               "Using the plan, check the solution."],
    "refine": ["Improve the draft above.", "Refine the previous attempt.", "Fix the program.", "Rewrite it."],
    "aggregate": ["Compare the answers and give the best one.", "Combine the proposals into one.",
                  "Find the answer that most of the sound ones agree on.",
                  "Choose the soundest of these attempts and correct its mistakes.",
                  "Decide which answer is better supported."],
    "none": ["Hello!", "Help with the question."],
}  # fmt: skip


@pytest.mark.parametrize(("role", "subtask"), [(role, one) for role, texts in WORDINGS.items() for one in texts])
def test_wordings_have_the_role_that_they_ask_for(role: Role, subtask: str) -> None:
    assert role_of(subtask) == role


def test_an_instruction_for_another_kind_of_question_is_noticed() -> None:
    assert instruction_of("Write a Python function for it.", "math").wrong_kind
    assert not instruction_of("Write a Python function for it.", "code").wrong_kind
    assert instruction_of("Pick the right option.", "text").wrong_kind
    assert not instruction_of("Solve it.", "code").wrong_kind
