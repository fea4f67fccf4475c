"""Which part of a reply is its program, and what is reasoning."""

from __future__ import annotations

import pytest

from wfdsl.grading.extraction import final_code
from wfdsl.language.reasoning import after_reasoning

SQUARE = "n = int(input())\nprint(n * n)\n"


@pytest.mark.parametrize(
    "after",
    [
        "Output:\n```\n9\n```",
        "Complexity:\n```\nO(1)\n```",
        "Pseudo-code:\n```\nread n\nprint n*n\n```",
        "Trace:\n```\nn = 3\nprint(9)\n```",
        "A check:\n```python\nassert 3 * 3 == 9\n```",
        "Try it:\n```python\nimport subprocess\nprint(subprocess.run(['python', 'sol.py']))\n```",
    ],
)
def test_a_block_after_the_program_does_not_replace_it(after: str) -> None:
    assert final_code(f"```python\n{SQUARE}```\n{after}", reads_input=True) == SQUARE


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        ("no thinking", "no thinking"), ("<think>5</think>6", "6"), ("5</think>6", "6"), ("<think>5", ""),
        ("<think>a</think>5<think>b</think>6", "6"), ("[THINK]5[/THINK]6", "6"), ("<Reasoning >5", ""),
        ("<|channel|>analysis<|message|>5<|end|>6", "6"), ("6</details>", "6</details>"),
    ],
)  # fmt: skip
def test_thinking_is_no_part_of_the_answer(reply: str, part: str) -> None:
    assert after_reasoning(reply) == part


def test_the_last_block_that_defines_what_is_wanted_or_its_class_is_the_program() -> None:
    reply = (
        "A draft:\n```python\ndef area(r):\n    return r\n```\n"
        "Better:\n```python\ndef area(r):\n    return 3 * r\n```\n"
        "Use it:\n```python\nprint(area(2))\n```\n```text\n6\n```"
    )

    programs = final_code(reply, wanted="area"), final_code(reply), final_code(reply, wanted="volume")

    assert programs == ("def area(r):\n    return 3 * r\n", "print(area(2))\n", "print(area(2))\n")
    method = "```python\nclass Solution:\n    def f(self): ...\n```\n```python\nSolution().f()\n```"
    assert final_code(method, wanted="Solution.f") == "class Solution:\n    def f(self): ...\n"


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        ("```python\nx = 1", "x = 1"),
        ("  ```py\n  x = 1\n  ```", "x = 1\n"),
        ("```ipython\n" + SQUARE + "```", SQUARE),
        ("> ```python\n> n = int(input())\n> print(n * n)\n> ```", SQUARE),
        ('{"code": "print(1)\\nx = 2\\n"}', "print(1)\nx = 2\n"),
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
        *[
            (reply, None)
            for reply in ("I do not know.", "Paris", "42", "```json\n{}\n```", "<think>```python\nx = 1\n```", "")
        ],
        ("It is easy to define functions.\nimport that module and see.", None),
    ],
)
def test_a_program_is_found_in_and_out_of_fences(reply: str, program: str | None) -> None:
    assert final_code(reply) == program
