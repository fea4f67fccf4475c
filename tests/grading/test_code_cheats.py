"""Programs that try to pass without being right. Each has to be wrong, in each style; none may be unjudged."""

from __future__ import annotations

import textwrap

import pytest

from tests.grading.sandboxes import left_running, needs_sandbox, the_sandbox
from wfdsl.grading.code import grade_program
from wfdsl.tasks.task import CodeTests

pytestmark = needs_sandbox

SECRET = 918_273_645
"""An expected result. A program that can find it anywhere returns it."""

FUNCTION = CodeTests(style="function", inputs=("[1]", "[2]"), expected=(str(SECRET),) * 2, entry_point="f", timeout_s=8)
PROGRAM = CodeTests(
    style="program",
    entry_point="f",
    checker=f"def check(candidate):\n    assert candidate(1) == {SECRET}\n    assert candidate(2) == {SECRET}\n",
    timeout_s=8,
)
UNITTEST = CodeTests(
    style="program",
    entry_point="f",
    checker=(
        "import unittest\n"
        "class TestCases(unittest.TestCase):\n"
        f"    def test_one(self):\n        self.assertEqual(f(1), {SECRET})\n"
        f"    def test_two(self):\n        self.assertEqual({SECRET}, f(2))\n"
    ),
    timeout_s=8,
)
STYLES = {"function": FUNCTION, "check": PROGRAM, "unittest": UNITTEST}

CHEATS = {
    "ends with success when it is loaded": "import sys\nsys.exit(0)",
    "ends with success when it is called": "import sys\ndef f(x): sys.exit(0)",
    "ends at once": "import os\ndef f(x): os._exit(0)",
    "raises what is not caught": "def f(x): raise KeyboardInterrupt",
    "raises the end of all generators": "def f(x): raise GeneratorExit",
    "returns an integer that equals everything": """
        class Any(int):
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            __hash__ = int.__hash__
        def f(x): return Any(0)
        """,
    "returns an object that equals everything": """
        class Any:
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            def __hash__(self): return 918
        def f(x): return Any()
        """,
    "returns an object that says it is an integer": """
        class Any:
            __class__ = int
            def __eq__(self, other): return True
            def __index__(self): return 0
            __int__ = __index__
        def f(x): return Any()
        """,
    "patches builtins": """
        import builtins
        builtins.isinstance = lambda *_: True
        builtins.all = lambda *_: True
        builtins.AssertionError = type("Nothing", (Exception,), {})
        builtins.compile = builtins.exec = lambda *_, **__: None
        def f(x): return 0
        """,
    "patches modules": """
        import sys, unittest, json
        unittest.TestCase.assertEqual = lambda *_: None
        json.dumps = json.loads = lambda *_, **__: 1
        sys.modules["checker"] = sys.modules["unittest"]
        def f(x): return 0
        """,
    "patches the code that serves it": """
        import sys
        frame = sys._getframe()
        while frame:
            for name, value in list(frame.f_globals.items()):
                if callable(value) and name not in ("write_frame", "read_frame", "read_exactly", "limit", "to_json"):
                    if name in ("pack", "failure", "compiled"):
                        frame.f_globals[name] = lambda *_: ["found", "right", "all checks passed"]
            frame = frame.f_back
        def f(x): return 0
        """,
    "writes verdicts into every open file": """
        import os
        def f(x):
            for text in (b'["found","right","all checks passed"]', b'["result",918,[]]', b'["loaded",[]]'):
                for number in range(3, 20):
                    try:
                        os.write(number, b"%012d" % len(text) + text + b"right\\n" * 100)
                    except OSError:
                        pass
            return 0
        """,
    "prints verdicts": """
        print("right"); print("OK"); print("all checks passed")
        def f(x):
            print("right")
            return 0
        """,
    "ends from a signal handler": """
        import os, signal, time
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        def f(x):
            time.sleep(0.2)
            return 0
        """,
    "looks for the expected value among all objects": """
        import gc, sys
        def f(x):
            seen = [*gc.get_objects()]
            frame = sys._getframe()
            while frame:
                seen += [frame.f_locals, frame.f_globals, frame.f_code.co_consts]
                frame = frame.f_back
            for one in seen:
                for value in (one.values() if type(one) is dict else one if type(one) in (list, tuple) else ()):
                    if type(value) is int and value % 1000 == 645 and value > 10 ** 8:
                        return value
            return 0
        """,
    "looks for the expected value in its memory": """
        import re
        def f(x):
            with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
                for line in maps:
                    first, last = (int(word, 16) for word in line.split()[0].split("-"))
                    if "rw" not in line or last - first > 1 << 26:
                        continue
                    try:
                        memory.seek(first)
                        text = memory.read(last - first)
                    except (OSError, ValueError, OverflowError):
                        continue
                    found = [m.start() for m in re.finditer(b"9182[0-9]{5}", text)]
                    if found:
                        return int(text[found[0]:found[0] + 9])
            return 0
        """,
    "reads every file and every process": """
        import glob, re
        def f(x):
            places = ("/proc/*/cmdline", "/proc/*/environ", "/tmp/**", "/dev/shm/**")
            for path in [path for place in places for path in glob.glob(place, recursive=True)]:
                try:
                    found = re.search("9182[0-9]{5}", open(path, errors="replace").read())
                except OSError:
                    continue
                if found:
                    return int(found.group())
            return 0
        """,
    "remembers the arguments as results": "def f(x): return x",
    "returns itself": "def f(x): return f",
    "returns an iterator of everything": "import itertools\ndef f(x): return itertools.count()",
    "returns nothing": "def f(x): pass",
    "never returns": "def f(x):\n    while True: pass",
    "nests its result without end": "def f(x):\n    one = []\n    one.append(one)\n    return one",
    "returns too much": "def f(x): return 'x' * (1 << 22)",
    "defines no such function": "def g(x): return 918",
    "cannot be parsed": "def f(x) return 0",
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("cheat", CHEATS)
async def test_a_cheat_is_wrong(cheat: str, style: str) -> None:
    tests = STYLES[style]
    if cheat in ("never returns", "ends with success when it is loaded"):
        tests = tests.model_copy(update={"timeout_s": 0.5})

    verdict = await grade_program(textwrap.dedent(CHEATS[cheat]), tests, sandbox=the_sandbox())

    assert verdict.outcome == "wrong", verdict.reason
    assert 0 < len(verdict.reason) < 700
    assert left_running() == []


@pytest.mark.parametrize("style", STYLES)
async def test_the_right_program_passes_the_same_tests(style: str) -> None:
    verdict = await grade_program(f"def f(x): return {SECRET}", STYLES[style], sandbox=the_sandbox())

    assert verdict.outcome == "right", verdict.reason


STDIN = CodeTests(style="stdin", inputs=("1\n", "2\n"), expected=(f"{SECRET}\n",) * 2, timeout_s=5)


@pytest.mark.parametrize(
    "program",
    [
        "print('right')",
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "pass",
        f"print({SECRET}); raise SystemExit(1)",
        f"print({SECRET}); print({SECRET})",
        f"print(list(range(3)), {SECRET})",
        f"import sys; sys.stderr.write('{SECRET}')",
        "import os\nfor n in range(3, 30):\n    try: os.write(n, b'right')\n    except OSError: pass",
        "print(open('/proc/1/cmdline').read(), open('/proc/self/cmdline').read())",
        f"import os\nif os.fork(): os._exit(0)\nimport time; time.sleep(0.1); print({SECRET - 1})",
    ],
)
async def test_a_program_that_prints_something_else_is_wrong(program: str) -> None:
    verdict = await grade_program(program, STDIN, sandbox=the_sandbox())

    assert verdict.outcome == "wrong", verdict.reason
    assert left_running() == []


async def test_an_object_cannot_pass_through_a_check_that_asks_it() -> None:
    cheat = """
    class Any:
        def __eq__(self, other): return True
        def __contains__(self, other): return True
        def __lt__(self, other): return True
        __gt__ = __le__ = __ge__ = __lt__
        def __sub__(self, other): return 0.0
        __rsub__ = __sub__
        def __abs__(self): return 0.0
    def f(x): return Any()
    """
    checks = "abs(f(1) - 5) < 1e-6", "f(1) > 3", "3 in f(1)", "f(1) in (1, 2)", "f(1) is True", "isinstance(f(1), int)"

    for check in checks:
        tests = CodeTests(style="program", entry_point="f", checker=f"assert {check}")
        verdict = await grade_program(textwrap.dedent(cheat), tests, sandbox=the_sandbox())
        assert verdict.outcome == "wrong", verdict


async def test_a_check_that_swallows_everything_does_not_swallow_an_end() -> None:
    tests = CodeTests(style="program", entry_point="f", checker="try:\n    f(1)\nexcept:\n    pass\n")

    verdict = await grade_program("import sys\ndef f(x): sys.exit(0)", tests, sandbox=the_sandbox())

    assert verdict.outcome == "wrong", verdict.reason
