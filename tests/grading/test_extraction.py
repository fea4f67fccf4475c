"""Finding the final answer in any reply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfdsl.grading.extraction import final_answer, final_code
from wfdsl.language.reasoning import after_reasoning

WORDS = ["the", "train", "left", "early", "and", "nobody", "saw", "how", "many", "people", "when", "rain", "began"]
PROSE = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join), max_size=4).map(". ".join)
INTEGERS = st.integers(min_value=-(10**9), max_value=10**9)
TEXT = st.text(max_size=400) | st.lists(
    st.sampled_from([
        "\\boxed{", "}", "{", "answer", " is ", ":", "\n", "$", "$$", "\\[", "\\]", "(", ")", "A", "B", "a", "**",
        "```", "```python\n", "<think>", "</think>", "<answer>", "</answer>", "####", "5", "1,234", "3/4", ".", ",",
        " or ", "%", "\\frac", "\\text{", "=", "-", "The answer is", "not ", "option ", "\x00", "\ud800", "é", "x",
    ]), max_size=60,
).map("".join)  # fmt: skip


@given(before=PROSE, after=PROSE, number=INTEGERS)
def test_a_number_that_is_claimed_is_found_in_any_prose(before: str, after: str, number: int) -> None:
    replies = [
        f"{before}\nThe answer is {number}.\n{after}",
        f"{before}. Answer: {number}\n\n{after}",
        f"{before} \\boxed{{{number}}} {after}",
        f"{before}\n#### {number}\n{after}",
        f"{before} <answer>{number}</answer> {after}",
    ]

    found = [final_answer(reply, "math") for reply in replies]

    assert found == [str(number)] * 5


@given(before=PROSE, after=PROSE, letter=st.sampled_from("ABCD"))
def test_a_letter_that_is_claimed_is_found_in_any_prose(before: str, after: str, letter: str) -> None:
    replies = [
        f"{before}\nThe answer is ({letter}).\n{after}",
        f"{before}. Answer: {letter}\n\n{after}",
        f"{before} \\boxed{{{letter}}} {after}",
        f"{before}\nOption {letter} is correct. {after}",
    ]

    found = [final_answer(reply, "choice") for reply in replies]

    assert found == [letter] * 4


@given(prose=PROSE, number=INTEGERS)
def test_without_a_claim_the_last_number_is_found(prose: str, number: int) -> None:
    found = final_answer(f"First 77 {prose}. So {number} apples. {prose}", "math")

    assert found == str(number)


@pytest.mark.parametrize("kind", ["math", "choice", "text", "code"])
@given(text=TEXT)
def test_any_text_has_an_answer_or_none(kind: str, text: str) -> None:
    found = final_answer(text, kind)  # type: ignore[arg-type]  # one of the kinds

    assert found is None or found.strip()


@pytest.mark.parametrize(
    "piece",
    [
        "\\boxed{",
        "\\boxed{1}",
        "{",
        "$",
        "$1",
        "1",
        "1,",
        "answer ",
        "the answer is ",
        "*",
        "(",
        "<think>",
        "A, ",
        "```\n",
        "1 or ",
        "\\[",
    ],
)
@pytest.mark.parametrize("kind", ["math", "choice", "text"])
def test_a_megabyte_of_anything_is_read(kind: str, piece: str) -> None:
    found = final_answer(piece * (1_000_000 // len(piece)), kind)  # type: ignore[arg-type]  # one of the kinds

    assert found is None or len(found) <= 20_000


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The answer is 7. \\boxed{8}", "8"),
        ("\\boxed{8}. So the answer is 7.", "7"),
        ("\\boxed{8}. This answer is reasonable.", "8"),
        ("\\boxed{8}. We may check our answer: $8 + 1 = 9$, fine.", "8"),
        ("\\boxed{\\boxed{8}}", "8"),
        ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("\\boxed{7} is too small, so I try again.\n\\boxed{8}", "8"),
        ("\\boxed{7} and \\boxed{8}", "7, 8"),
        ("\\boxed{8} = \\boxed{8}", "8"),
        ("\\boxed{8", "8"),
        ("The answer is:\n\n$$\n8\n$$", "8"),
        ("### Final Answer\n\n**8**", "8"),
        ("Together: 3 + 5 = 8", "8"),
        ("\\[ x = 8 \\]", "8"),
        ("7 or 8", "7 or 8"),
        ("She pays $5 and gets $8", "$8"),
        ("nothing", None),
        ("", None),
    ],
)
def test_the_last_claim_counts_and_then_the_last_number(reply: str, answer: str | None) -> None:
    assert final_answer(reply, "math") == answer


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        ("no thinking", "no thinking"),
        ("<think>5</think>6", "6"),
        ("5</think>6", "6"),
        ("<think>5", ""),
        ("<think>a</think>5<think>b</think>6", "6"),
        ("[THINK]5[/THINK]6", "6"),
        ("<|channel|>analysis<|message|>5<|end|>6", "6"),
        ("<Reasoning >5", ""),
        ("6</details>", "6</details>"),
    ],
)
def test_thinking_is_no_part_of_the_answer(reply: str, part: str) -> None:
    assert after_reasoning(reply) == part


def test_the_last_block_that_defines_what_is_wanted_is_the_program() -> None:
    reply = (
        "A draft:\n```python\ndef area(r):\n    return r\n```\n"
        "Better:\n```python\ndef area(r):\n    return 3 * r\n```\n"
        "Use it:\n```python\nprint(area(2))\n```\n```text\n6\n```"
    )

    programs = final_code(reply, wanted="area"), final_code(reply), final_code(reply, wanted="volume")

    assert programs == ("def area(r):\n    return 3 * r\n", "print(area(2))\n", "print(area(2))\n")


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        ("```python\nx = 1", "x = 1"),
        ("  ```py\n  x = 1\n  ```", "x = 1\n"),
        ("~~~\nx = 1\n~~~", "x = 1\n"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        ("def f():\n    return 1", "def f():\n    return 1"),
        ("    return 1\n", "    return 1\n"),
        ("[BEGIN]\ndef f():\n    return 1\n[DONE]", "def f():\n    return 1"),
        ("Here:\n<answer>\ndef f():\n    return 1\n</answer>", "def f():\n    return 1"),
        (
            "Here it is:\n\nimport math\n\ndef f():\n    return 1\n\nIt returns one.",
            "import math\n\ndef f():\n    return 1\n",
        ),
        ("Sure!\ndef f():\n    return 1", "def f():\n    return 1\n"),
        ("It is easy to define functions.\nimport that module and see.", None),
        ("I do not know.", None),
        ("Paris", None),
        ("42", None),
        ("```json\n{}\n```", None),
        ("<think>```python\nx = 1\n```", None),
        ("", None),
    ],
)
def test_a_program_is_found_in_and_out_of_fences(reply: str, program: str | None) -> None:
    assert final_code(reply) == program


def test_a_method_is_wanted_by_its_class() -> None:
    reply = "```python\nclass Solution:\n    def f(self): ...\n```\n```python\nSolution().f()\n```"

    assert final_code(reply, wanted="Solution.f") == "class Solution:\n    def f(self): ...\n"
