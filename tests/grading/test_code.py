"""Programs and their tests: what is right, what is wrong, what cannot be graded, and what the reasons say."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.grading.sandboxes import in_both_tiers, left_running, needs_sandbox, the_sandbox
from wfdsl.grading.code import grade_program
from wfdsl.tasks.task import CodeTests

pytestmark = needs_sandbox

DOZEN = [
    json.loads(line)
    for line in Path(__file__).with_name("data").joinpath("humaneval_dozen.jsonl").read_text().splitlines()
]


async def graded(program: str, **tests: Any) -> tuple[str, str]:
    verdict = await grade_program(program, CodeTests(**tests), sandbox=the_sandbox())
    assert left_running() == []
    return verdict.outcome, verdict.reason


def of_checker(checker: str, **others: Any) -> dict[str, Any]:
    return {"style": "program", "checker": checker, "entry_point": "f", **others}


@pytest.mark.parametrize("row", DOZEN, ids=lambda row: row["task_id"])
async def test_humaneval_solutions_pass_and_empty_bodies_fail(row: dict[str, str]) -> None:
    tests = {**of_checker(row["test"], preamble=row["prompt"]), "entry_point": row["entry_point"]}

    right, _ = await graded(row["canonical_solution"], **tests)
    whole, _ = await graded(row["prompt"] + row["canonical_solution"], **tests)
    wrong, _ = await graded("    pass\n", **tests)

    assert (right, whole, wrong) == ("right", "right", "wrong")


async def test_a_program_reads_its_input_and_prints() -> None:
    tests = {"style": "stdin", "inputs": ("2\n1 2\n", "1\n5\n"), "expected": ("3\n", "5")}

    right = await graded("n = int(input())\nprint(sum(map(int, input().split())))", **tests)
    wrong = await graded("print(3)", **tests)
    failing = await graded("raise ValueError('no')", **tests)
    main = await graded(
        "import sys\nif __name__ == '__main__':\n    print(open(0).read().strip(), len(sys.argv))\n    exit()\n1/0",
        style="stdin",
        inputs=("a\n",),
        expected=("a 1",),
    )

    assert main[0] == "right"
    assert right == ("right", "all 2 tests passed")
    assert wrong == ("wrong", "test 2 of 2: line 1 of the output is '3', not '5'")
    assert failing == ("wrong", "test 1 of 2: it ended with exit code 1: ValueError: no")


async def test_functions_and_methods_are_called_with_json() -> None:
    tests = {"style": "function", "inputs": ('[[1, 2], "a"]', '[[], ""]'), "expected": ('[2, "a"]', '[0, ""]')}

    function = await graded("def f(a, b): return len(a), b", entry_point="f", **tests)
    method = await graded(
        "class Solution:\n    n = 0\n    def f(self, a, b):\n"
        "        self.n += 1\n        return [self.n - 1 + len(a), b]",
        entry_point="Solution.f",
        **tests,
    )
    wrong = await graded("def f(a, b): return 2, 'a'", entry_point="f", **tests)

    assert function == method == ("right", "all 2 tests passed")
    assert wrong == ("wrong", "test 2 of 2: the result is (2, 'a'), not [0, '']")


@pytest.mark.parametrize(
    ("program", "part"),
    [
        ("def g(): pass", "f"),
        ("def f(x) return", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(x): return [][x]", "test 1 of 1: it raised IndexError"),
        ("def f(x): return 2", "2, not 1"),
        ("def f(x): return object()", "'object'"),
        ("import os\ndef f(x): os._exit(0)", "ended its process"),
        ("def f(x): return bytearray(1 << 40)", "MemoryError"),
        ("def f(x): return 'y' * 10000", "yyy"),
    ],
)
async def test_a_reason_says_which_test_failed_and_how(program: str, part: str) -> None:
    outcome, said = await graded(program, style="function", inputs=("[5]",), expected=("1",), entry_point="f")

    assert outcome == "wrong"
    assert part in said
    assert len(said) < 400
    assert "\n" not in said


async def test_time_is_counted_for_each_test() -> None:
    program = "import time\ndef f(x):\n    time.sleep(x)\n    return x"
    tests = {"style": "function", "entry_point": "f", "timeout_s": 2.0}

    many = await graded(program, inputs=("[0.5]",) * 6, expected=("0.5",) * 6, **tests)
    late = await graded(program, inputs=("[0.1]", "[30]"), expected=("0.1", "30"), **tests)

    assert many[0] == "right"
    assert late == ("wrong", "test 2 of 2: it ran past its time limit of 2 s")


async def test_a_program_that_does_not_take_its_input_runs_out_of_time() -> None:
    program = """
import signal
def handler(*_):
    while True:
        pass
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.02)
import time; time.sleep(0.01)
def f(x): return 1
"""
    given = json.dumps(["x" * 8_000_000])

    outcome, _ = await graded(
        program, style="function", inputs=(given,), expected=("2",), entry_point="f", timeout_s=1.0
    )

    assert outcome == "wrong"


@pytest.mark.parametrize(
    "check",
    [
        "assert f({1, 2}, (3, 4)) == ({1, 2}, (3, 4))",
        "assert f(b'x', None) == (b'x', None)",
        "assert f(1 + 2j, 2 ** 100) == (1 + 2j, 2 ** 100)",
        "assert f(float('inf'), -0.0) == (float('inf'), 0)",
        "import math\nassert math.isnan(f(float('nan'), 0)[0])",
        "assert f({'a': [1, (2,)], 3: None}, frozenset({1})) == ({'a': [1, (2,)], 3: None}, frozenset({1}))",
        "from decimal import Decimal as D\nassert f(D('0.10'), D('NaN'))[0] == D('0.1')",
        "from fractions import Fraction as F\nassert f(F(1, 3), F(-2)) == (F(1, 3), -2)",
        "import datetime\nassert f(datetime.date(2024, 2, 29), range(3)) == (datetime.date(2024, 2, 29), range(3))",
        "assert f('\\ud800 \\u2028', True) == ('\\ud800 \\u2028', True)",
        "assert type(f(True, 1)[0]) is bool and type(f(True, 1)[1]) is int",
        "assert f(a=1, b=2) == (1, 2)",
        "assert f(bytearray(b'q'), [[]] * 3) == (bytearray(b'q'), [[], [], []])",
    ],
)
async def test_values_travel_to_the_program_and_back(check: str) -> None:
    outcome, reason = await graded("def f(a, b): return a, b", **of_checker(check))

    assert outcome == "right", reason


@pytest.mark.parametrize(
    ("program", "checker"),
    [
        (
            "def f(a, d, s):\n    a.sort()\n    d['x'] = [1]\n    s.add(2)",
            "a, d, s = [3, 1, 2], {}, {1}\nf(a, d, s)\nassert (a, d, s) == ([1, 2, 3], {'x': [1]}, {1, 2})",
        ),
        ("def f(x):\n    print('x' * 100000)\n    return x", "assert f(1) == 1"),
    ],
)
async def test_a_check_sees_what_became_of_its_arguments_whatever_the_program_prints(
    program: str, checker: str
) -> None:
    found = await graded(program, **of_checker(checker))

    assert found[0] == "right", found


async def test_exceptions_arrive_by_their_type() -> None:
    program = "class Mine(KeyError): pass\ndef f(x):\n    raise (Mine if x else ValueError)('no')"
    checker = """
for value, kind in ((0, ValueError), (1, KeyError)):
    try:
        f(value)
    except kind as problem:
        assert 'no' in str(problem)
    else:
        assert False
"""

    found = await graded(program, **of_checker(checker))
    uncaught = await graded(program, **of_checker("assert f(1) == 1"))

    assert found[0] == "right", found
    assert uncaught == ("wrong", "the program raised Mine: 'no', line 1: assert f(1) == 1")


async def test_iterators_functions_and_objects_can_be_used_from_afar_and_are_arguments() -> None:
    program = """
class Node:
    def __init__(self, data): self.data, self.left, self.right = data, None, None
    def up(self, by=1):
        self.data += by
        return self.data
class Row:
    def __init__(self): self.cells = {}
    def __setitem__(self, key, value): self.cells[key] = value
    def __getitem__(self, key): return self.cells[key]
def f(kind):
    if kind == "generator": return (n * n for n in range(4))
    if kind == "function": return lambda x: x + 1
    if kind == "keys": return {1: 2}.keys()
    return depth(kind)
def depth(node): return 0 if node is None else 1 + max(depth(node.left), depth(node.right))
"""
    checker = """
assert list(f("generator")) == [0, 1, 4, 9]
assert f("function")(2) == 3
assert list(f("keys")) == [1] and len(f("keys")) == 1
root = Node(1)
root.left = Node(2)
root.left.right = Node(3)
assert f(root) == 3
assert root.left.right.data == 3 and root.right is None
assert root.up() == 2 and root.up(by=4) == 6 and root.data == 6
row = Row()
row[0] = 5
assert row[0] == 5
"""

    found = await graded(program, **of_checker(checker))
    other = await graded(program, **of_checker(checker.replace("f(root) == 3", "f(root) == 2")))

    assert found[0] == "right", found
    assert other[0] == "wrong", other


async def test_names_of_the_preamble_are_known_to_the_check_and_those_of_the_program_are_asked_for() -> None:
    tests = of_checker(
        "assert twice(2) == 4\nassert math.isclose(f(2), 4.0)\nclass C:\n    found = helper(1)\nassert C.found == 2",
        preamble="import math\ndef twice(x): return 2 * x\n",
    )

    found = await graded("def f(x): return float(twice(x))\ndef helper(x): return x + 1", **tests)

    assert found == ("right", "all checks passed, with 2 calls")


FUTURE = "from __future__ import annotations\n"


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        (f"{FUTURE}def f(x: Unknown) -> int: return x", of_checker("assert f(1) == 1", preamble="import math\n")),
        (
            f"{FUTURE}x: Unknown = input()\nprint(isqrt(int(x)))",
            {"style": "stdin", "inputs": ("4\n",), "expected": ("2\n",), "preamble": "from math import *\n"},
        ),
    ],
)
async def test_a_future_import_may_stand_after_a_preamble(program: str, tests: dict[str, Any]) -> None:
    assert (await graded(program, **tests))[0] == "right"


@pytest.mark.parametrize(
    ("checker", "reason"),
    [
        ("assert f(lambda x: x) == 1", "an argument cannot be sent to the program: a value of the class function"),
        ("import nonesuch\nassert f(1) == 1", "ModuleNotFoundError: No module named 'nonesuch'"),
        ("assert f(1) ==", "SyntaxError"),
        ("assert 1 == 1", "the checking text never called the program"),
        ("import json\njson.nonesuch()\nf(1)", "AttributeError"),
        ("import ctypes\nctypes.string_at(0)\nassert f(1) == 1", "broke down"),
    ],
)
async def test_a_check_that_cannot_tell_is_unjudged(checker: str, reason: str) -> None:
    outcome, said = await graded("def f(x): return 1", **of_checker(checker))

    assert reason in said
    assert outcome == ("wrong" if reason == "AttributeError" else "unjudged")


MOCKING = """
import tempfile, unittest
from unittest.mock import patch
class TestCases(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
    def tearDown(self):
        self.folder.cleanup()
    @patch("os.getpid", return_value=7)
    def test_pid(self, _):
        self.assertEqual(task_func(self.folder.name), 7)
        with open(self.folder.name + "/pid") as file:
            self.assertEqual(file.read(), "7")
"""
WRITING = """
import os
def task_func(folder):
    with open(folder + "/pid", "w") as file:
        file.write(str(os.getpid()))
    return os.getpid()
"""


@pytest.mark.parametrize("tier", in_both_tiers)
@pytest.mark.parametrize(
    ("program", "outcome"),
    [(WRITING, "right"), (WRITING.replace("return os", "return 1 + os"), "wrong"), ("x =", "wrong")],
)
async def test_a_check_that_mocks_or_shares_files_runs_in_the_process_of_the_program(
    tier: str, program: str, outcome: str
) -> None:
    tests = CodeTests(style="program", entry_point="task_func", checker=MOCKING, timeout_s=20)

    verdict = await grade_program(program, tests, sandbox=the_sandbox(tier))

    assert verdict.outcome == outcome, verdict
    assert ("own process" in verdict.reason) == (outcome == "right")


@pytest.mark.parametrize(
    "checker",
    [
        "import io, contextlib as c\nout = io.StringIO()\nwith c.redirect_stdout(out): f(1)\nassert out.tell() == 3",
        "import os\nassert f(os.getpid()) == 1",
        "def check(candidate):\n    assert candidate(open('/dev/null').read()) == 1",
    ],
)
async def test_other_checks_that_look_into_the_process_run_there_too(checker: str) -> None:
    assert (await graded("def f(x):\n    print('hi')\n    return 1", **of_checker(checker)))[0] == "right"
    assert (await graded("def f(x):\n    return 2", **of_checker(checker)))[0] == "wrong"


async def test_an_empty_program_is_wrong_without_being_run() -> None:
    found = await graded(" \n", style="stdin", inputs=("",), expected=("",))

    assert found == ("wrong", "the program is empty")


async def test_many_programs_at_one_time_are_all_judged_and_the_loop_stays_awake() -> None:
    tests = CodeTests(style="function", inputs=("[1]",), expected=("2",), entry_point="f", timeout_s=60)
    lags = []

    async def tick() -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            lags.append(loop.time() - before - 0.01)

    ticking = asyncio.create_task(tick())
    verdicts = await asyncio.gather(
        *(grade_program(f"def f(x): return x + {n % 2}", tests, sandbox=the_sandbox()) for n in range(30))
    )
    ticking.cancel()

    assert [verdict.outcome for verdict in verdicts] == ["wrong", "right"] * 15
    assert sorted(lags)[len(lags) // 2] < 0.1
    assert left_running() == []


async def test_a_grading_that_is_cancelled_leaves_nothing_behind() -> None:
    tests = CodeTests(style="function", inputs=("[1]",), expected=("2",), entry_point="f", timeout_s=60)
    grading = asyncio.create_task(grade_program("def f(x):\n    while True: pass", tests, sandbox=the_sandbox()))
    await asyncio.sleep(0.3)

    grading.cancel()
    await asyncio.gather(grading, return_exceptions=True)

    assert grading.cancelled()
    assert left_running() == []
    assert (await graded("def f(x): return 2", **tests.model_dump()))[0] == "right"
