"""What an instruction asks for can be told from its words: a role, a part, a method, a check, a kind of question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.gym_search import vocabulary
from wfdsl_rl.gym.tiny.synthetic import CHECKS, PART_WORDINGS, WORDINGS
from wfdsl_rl.gym.world.optimum import optimum
from wfdsl_rl.gym.world.presets import preset_of
from wfdsl_rl.gym.world.profiles import DOMAINS, Domain
from wfdsl_rl.gym.world.roles import LAST, Instruction, Role, instruction_of, role_of

ROLES = {
    "plan": ["Make a plan. Do not solve it yet.", "Outline it, without solving it.", "Plan how to solve this.",
             "Break the problem down into parts.", "List the steps.",
             "Don\N{RIGHT SINGLE QUOTATION MARK}t solve it yet."],
    "solve": ["Solve the problem step by step.", "What is the final answer?", "Follow the plan above and solve it.",
              "Find all solutions of the equation.", "Write the program.", "Choose the right option.",
              "Make a plan, then solve it.", "Work through it carefully.", "Don't check anything, just answer.",
              "Do not compare the attempts; solve it yourself.", "Without checking the work above, solve it.",
              "You need not verify it; just solve."],
    "verify": ["Check the answer above.", "Verify the solution.", "Review the work and correct it if needed.",
               "Look for mistakes in the latest solution above. Then write it again without them.",
               "Using the plan, check the solution.", "Critically examine the proposed answer.",
               "Assess the solution above.", "Check it, but do not improve the style.", "Don't forget to check it.",
               "Check it. Do not just compare the numbers."],
    "refine": ["Improve the draft above.", "Refine the previous attempt.", "Fix the program.", "Rewrite it.",
               "Improve it. Do not verify anything."],
    "aggregate": ["Compare the answers and give the best one.", "Combine the proposals into one.",
                  "Find the answer that most of the sound ones agree on.",
                  "Choose the soundest of these attempts and correct its mistakes.",
                  "Decide which answer is better supported.", "Examine the answers and pick the best."],
    "none": ["Hello!", "Help with the question."],
}  # fmt: skip

PARTS = {
    1: ["Do part 1.", "Solve the first part.", "Work out part one.", "Part (1), please.", "Do the 1st part.",
        "Check the result of part 1.", "Solve part 1 of the task only.", "Start with part 1."],
    2: ["Do part two.", "Do the 2nd part.", "Do part (2).", "Part no. 2 only.", "Do step 2.",
        "Solve only the second step.",
        "Take the result of part 1 and do part 2.", "Do part 2 with the result of part 1.", "Using part 1, do part 2.",
        "Given the answer to the first part, work out the second part.", "Part 1 is done. Do part 2.",
        "Do part 2, one step at a time.", "Solve part 2. Go step by step.", "Part 1 gave 5. Do part 2.",
        "Do part 2. The result of part 1 is above.", "Do part 2, not part 1.", "Do not do part 1; do part 2."],
    3: ["With the results of parts 1 and 2, do part 3.", "Continue from part 2: do the third part.",
        "Parts 1 and 2 are done. Do part 3.", "Part (1) was solved; do part (3)."],
    LAST: ["Do the last part.", "Solve the final part.", "From part 2, do the last part."],
    0: ["Do parts 1 and 2.", "Do part 1 and part 2.", "Solve parts 1-3.", "Do the first and second part.",
        "Solve parts one, two and three.", "Solve parts 1 through 3.", "Do parts two to last.",
        "Use the result of part 1.", "Solve all parts.", "Do it in steps.",
        "Check step 2 again.", "Use 3 workers.", "Take part in 12 rounds.", "Do part 12."],
}  # fmt: skip

METHODS = {
    "steps": ["Solve it step by step.", "Work step-by-step.", "Do the moves one by one.", "One move at a time."],
    "list": ["Make a list first.", "Use a table.", "Keep a tally.", "Count with a table.", "Draw up the table."],
    "cases": ["Try small cases.", "Test it on simple examples."],
    "": ["Solve it.", "Sort the list.", "Return the longest word in a list.", "Check each step.", "Mind edge cases."],
}

CHECK_WORDS = {
    "steps": ["Check each step.", "Verify every line."],
    "again": ["Check it by doing it again.", "Verify it another way."],
    "facts": ["Check it. Some facts are needless.", "Is something irrelevant used?"],
    "edges": [
        "Mind edge cases.",
        "Check the corner cases.",
        "What does it do with an empty list?",
        "Try empty strings.",
    ],
    "": ["Check it.", "Solve it step by step."],
}

OF_A_KIND: dict[str, tuple[Domain, ...]] = {
    "Write a Python function for it.": ("code",),
    "Pick the right option.": ("choice",),
    "Give the letter of the correct answer.": ("choice",),
    "Answer with a single letter.": ("choice",),
    "Count the letters and give the answer.": DOMAINS,
    "Make a list of the letters.": DOMAINS,
    "Move each letter on, one letter at a time.": DOMAINS,
    "A check is optional.": DOMAINS,
    "Solve it.": DOMAINS,
}
"""The kinds of questions that an instruction fits."""

KNOWN = Path(__file__).parent / "instructions.json"
"""Instructions of runs behind published figures: role, part, method, check, and the kinds that they do not fit."""


@pytest.mark.parametrize(("role", "subtask"), [(role, one) for role, texts in ROLES.items() for one in texts])
def test_wordings_have_the_role_that_they_ask_for(role: Role, subtask: str) -> None:
    assert role_of(subtask) == role


@pytest.mark.parametrize(("part", "subtask"), [(part, one) for part, texts in PARTS.items() for one in texts])
def test_the_part_of_an_instruction_is_the_one_that_is_to_be_done(part: int, subtask: str) -> None:
    assert instruction_of(subtask, "math").part == part


@pytest.mark.parametrize(("method", "subtask"), [(method, one) for method, texts in METHODS.items() for one in texts])
def test_methods_are_read_from_their_words(method: str, subtask: str) -> None:
    assert instruction_of(subtask, "math").method == method


@pytest.mark.parametrize(("check", "subtask"), [(check, one) for check, texts in CHECK_WORDS.items() for one in texts])
def test_checks_are_read_from_their_words(check: str, subtask: str) -> None:
    assert instruction_of(subtask, "math").check == check


@pytest.mark.parametrize("subtask", OF_A_KIND)
def test_an_instruction_for_another_kind_of_question_is_noticed(subtask: str) -> None:
    fitting = [domain for domain in DOMAINS if not instruction_of(subtask, domain).wrong_kind]

    assert fitting == [*OF_A_KIND[subtask]]


def test_published_instructions_are_read_as_they_always_were() -> None:
    for subtask, (role, part, method, check, unfit) in json.loads(KNOWN.read_text("utf-8")).items():
        for domain in DOMAINS:
            expected = Instruction(role, domain in unfit.split(), part, method, check)
            assert instruction_of(subtask, domain) == expected, subtask


def test_the_published_instructions_are_all_that_the_gym_itself_uses() -> None:
    presets = [preset_of(name) for name in ("gym/axes", "gym/paper7")]
    searched = [text for preset in presets for family in ("", *preset.settings) for text in vocabulary(preset, family)]
    known = [optimum(preset.name) for preset in presets]
    teams = [
        found.team
        for each in known
        for lengths in (each.constants, *each.families.values())
        for found in lengths.values()
    ]
    wordings = [text for each in (WORDINGS, PART_WORDINGS) for texts in each.values() for text in texts]
    tiny = [text.format(part=part) for text in wordings for part in range(1, 6)]
    used = {*searched, *tiny, *CHECKS.values(), *(subtask for team in teams for _, subtask, _ in team)}

    assert used <= set(json.loads(KNOWN.read_text("utf-8")))
