"""What constrained decoders may write: all of it is valid, all that is meant can be written, in both dialects alike.

llguidance is asked itself, a byte at a time. GBNF is read here into a regular expression, by rules of its own.
"""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import Any, Literal, NamedTuple

import llguidance
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from wfdsl import UsageError, Workflow, analyze, dumps
from wfdsl.api import Checked
from wfdsl.cli.main import main
from wfdsl.language.constrained import TEXT, Bounds, gbnf, llguidance_lark, max_tokens_for
from wfdsl.language.workflow import Step
from wfdsl.testing import workflows

END = 256  # the token behind those of the 256 bytes


# ---- the two decoders


class Bytes:
    """A tokenizer whose tokens are bytes."""

    eos_token_id = END
    bos_token_id = None
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
    special_token_ids = (END,)

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


@cache
def tokenizer() -> llguidance.LLTokenizer:
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))


class Case(NamedTuple):
    """What a grammar is made for."""

    indices: tuple[int, ...] = (0, 1, 2)
    max_steps: int = 3
    max_prose: int = 20
    max_subtask: int = 4
    max_reasoning: int = 0
    recursion: bool = False
    access: Literal["lists", "binary"] = "lists"

    @property
    def options(self) -> dict[str, Any]:
        names = ("max_prose", "max_subtask", "max_reasoning", "recursion", "access")
        return {name: getattr(self, name) for name in names}

    @property
    def limits(self) -> dict[str, Any]:
        """What a completion is checked against."""
        pool = max(self.indices) + 1
        given = {"max_steps": self.max_steps, "recursion": self.recursion, "access": self.access}
        return {"pool": pool, "profile": "strict", "marked": bool(self.max_reasoning), **given}


@cache
def matcher(case: Case) -> llguidance.LLMatcher:
    grammar = llguidance_lark(case.indices, case.max_steps, **case.options)
    assert llguidance.LLMatcher.validate_grammar(grammar, tokenizer()) == ""
    return llguidance.LLMatcher(tokenizer(), grammar)


@cache
def expression(case: Case) -> re.Pattern[str]:
    return re.compile(regex_of(gbnf(case.indices, case.max_steps, **case.options)))


def llguidance_accepts(case: Case, text: str) -> bool:
    found = matcher(case)
    found.reset()
    given_bytes = list(text.encode())
    return bool(found.try_consume_tokens(given_bytes) == len(given_bytes) and found.is_accepting())


def gbnf_accepts(case: Case, text: str) -> bool:
    return expression(case).fullmatch(text) is not None


GBNF_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[a-z][a-z0-9-]*|\{\d+,\d+\}|[()|]')
GBNF_ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\"": '"', "\\\\": "\\"}


@cache
def rules_of(grammar: str) -> dict[str, list[str]]:
    """The tokens of each rule of a GBNF grammar."""
    lines = [line for line in grammar.splitlines() if line and not line.startswith("#")]
    rules = {}
    for line in lines:
        name, body = line.split(" ::= ", maxsplit=1)
        rules[name] = GBNF_TOKEN.findall(body)
        assert GBNF_TOKEN.sub("", body).strip() == "", "a token was not read"
    return rules


def text_of(token: str) -> str:
    """What a token in double quotes stands for."""
    return re.sub(r"\\.", lambda found: GBNF_ESCAPES[found[0]], token[1:-1])


def regex_of(grammar: str) -> str:
    """A grammar without recursion as a regular expression."""
    rules = rules_of(grammar)

    @cache
    def expanded(name: str) -> str:
        return "(?:" + "".join(translated(token) for token in rules[name]) + ")"

    def translated(token: str) -> str:
        if token[0] == '"':
            return re.escape(text_of(token))
        return expanded(token) if token[0].isalpha() else token

    return expanded("root")


def gbnf_walk(rules: dict[str, list[str]], random: Random, name: str = "root") -> str:
    """A text of a GBNF rule, each alternative as likely as any other."""
    tokens = rules[name]
    if "(" in tokens:  # only `root` has brackets: its last part
        place = tokens.index("(")
        rules = {**rules, "before": tokens[:place], "inside": tokens[place + 1 : -1]}
        return gbnf_walk(rules, random, "before") + gbnf_walk(rules, random, "inside")
    bars = [-1, *(place for place, token in enumerate(tokens) if token == "|"), len(tokens)]
    chosen = random.randrange(len(bars) - 1)
    alternative = tokens[bars[chosen] + 1 : bars[chosen + 1]]
    return "".join(
        drawn(rules, random, token)
        for token, behind in zip(alternative, [*alternative[1:], ""], strict=True)
        if token[0] != "{"
        for _ in range(times(behind, random))
    )


def times(behind: str, random: Random) -> int:
    """How often a token is written, by the one after it."""
    return random.randint(*map(int, behind[1:-1].split(","))) if behind.startswith("{") else 1


def drawn(rules: dict[str, list[str]], random: Random, token: str) -> str:
    """What is written for a token."""
    if token[0] == '"':
        return text_of(token)
    return drawn_char(token, random) if token[0] == "[" else gbnf_walk(rules, random, token)


def drawn_char(token: str, random: Random) -> str:
    """One character of a set, from its first ranges as often as from its large ones."""
    escape = r"\\(?:x(..)|u(.{4})|U(.{8}))"
    points = re.sub(escape, lambda found: chr(int(found[found.lastindex or 0], 16)), token[1:-1])
    first, last = random.choice(re.findall(r"(.)-(.)", points, re.DOTALL))
    return chr(random.randint(ord(first), ord(last)))


MARKED = "</think>\n=== workflow ===\n"

# ---- what is drawn

cases = st.builds(
    Case,
    indices=st.sampled_from([(0,), (0, 1, 2), (0, 2, 5), tuple(range(7)), (9, 10, 101)]),
    max_steps=st.integers(1, 5),
    max_prose=st.sampled_from([0, 1, 20]),
    max_subtask=st.sampled_from([1, 4]),
    max_reasoning=st.sampled_from([0, 0, 8]),
    recursion=st.booleans(),
    access=st.sampled_from(["lists", "lists", "binary"]),
)
seen_chars = st.characters(exclude_categories=["C", "Z"])
subtask_chars = st.one_of(seen_chars, st.sampled_from(' \n\r\t"\\[]{}#'))
prose_pieces = [
    "model_id", "subtasks", "access_list", "Model ID", "model\\_ids", "access lists", "think>", "/think>", "0]", "]",
    '"', "'", "*", "~~~python", "\\n", "\\", "//", "model_id\\", ">", "+", "subtasks.append", "#",
    "\n", " ", "list of int]", ")", ",", "0", "”", "x", "漢", "😀", "\u200b",
]  # fmt: skip


@st.composite
def workflows_within(draw: DrawFn, case: Case) -> Workflow:
    """Workflows that the case's decoders must be able to write."""
    drawn = draw(workflows(max_steps=case.max_steps))
    steps = []
    for step in drawn:
        rest = draw(st.text(subtask_chars, max_size=case.max_subtask - 1))
        first = draw(st.one_of(seen_chars, st.sampled_from('"\\')))
        is_allowed = case.access == "lists" or step.access in ((), "all")
        access = step.access if is_allowed else "all"
        steps.append(Step(draw(st.sampled_from(case.indices)), first + rest, access))
    return Workflow(tuple(steps))


def walk(case: Case, random: Random) -> str:
    """A completion that llguidance's masks lead to, each allowed byte as likely as any other, the end half the time."""
    found = matcher(case)
    found.reset()
    written: list[int] = []
    while not found.is_stopped():
        mask = found.compute_bitmask()
        allowed = [token for token in range(END + 1) if mask[token // 8] >> token % 8 & 1]
        token = random.choice([quote for quote in (END, ord('"')) if quote in allowed] * len(allowed) + allowed)
        assert found.consume_token(token), found.get_error()
        written.append(token)
    assert found.stop_reason() in {"EndOfSentence", "NoExtension"}
    return bytes(token for token in written if token != END).decode()


def assert_valid(case: Case, text: str) -> None:
    checked = analyze(text, **case.limits)
    errors = [found for found in checked.diagnostics if found.severity == "error"]
    assert errors == [], text
    if checked.workflow is None:
        assert case.recursion
    else:
        assert all(step.worker in case.indices for step in checked.workflow)


# ---- laws


@given(cases, st.randoms(use_true_random=False))
def test_all_that_llguidance_lets_through_is_strictly_valid_and_let_through_by_gbnf(case: Case, random: Random) -> None:
    text = walk(case, random)

    assert_valid(case, text)
    assert gbnf_accepts(case, text)
    assert len(text.encode()) < max_tokens_for(case.indices, case.max_steps, **case.options)


@given(cases, st.randoms(use_true_random=False))
def test_all_that_gbnf_lets_through_is_strictly_valid_and_let_through_by_llguidance(case: Case, random: Random) -> None:
    text = gbnf_walk(rules_of(gbnf(case.indices, case.max_steps, **case.options)), random)

    assert gbnf_accepts(case, text)
    assert_valid(case, text)
    assert llguidance_accepts(case, text)


@given(st.data(), cases)
def test_every_canonical_print_within_the_bounds_can_be_written(data: st.DataObject, case: Case) -> None:
    text = MARKED * bool(case.max_reasoning) + dumps(data.draw(workflows_within(case)))

    assert llguidance_accepts(case, text)
    assert gbnf_accepts(case, text)


@given(workflows(pool_size=4), st.sampled_from(["lists", "binary"]))
def test_the_bounds_say_which_workflows_can_be_written(workflow: Workflow, access: Any) -> None:
    case = Case(max_steps=4, max_subtask=8, access=access)

    admitted = Bounds(case.indices, case.max_steps, **case.options).admit(workflow)

    assert llguidance_accepts(case, dumps(workflow)) == admitted
    assert gbnf_accepts(case, dumps(workflow)) == admitted


@given(st.data(), st.lists(st.sampled_from(prose_pieces), min_size=1, max_size=12))
def test_no_prose_changes_what_the_lists_say(data: st.DataObject, pieces: list[str]) -> None:
    case = Case(max_prose=200)
    workflow = data.draw(workflows_within(case))
    prose = "".join(pieces)
    text = f"{prose}\n{dumps(workflow)}"

    if not prose[0].isspace():
        assert llguidance_accepts(case, text)
        assert gbnf_accepts(case, text)
    assert analyze(text, **case.limits).raise_for_errors().workflow == workflow


@given(st.data(), cases, st.integers(0), st.sampled_from(["", "[", "]", "0", ", ", '"', "\\", "\n", "x", " ", "="]))
def test_both_dialects_judge_accidents_alike_and_right(data: st.DataObject, case: Case, at: int, new: str) -> None:
    printed = MARKED * bool(case.max_reasoning) + dumps(data.draw(workflows_within(case)))
    place = at % len(printed)
    text = printed[:place] + new + printed[place + data.draw(st.integers(0, 3)) :]

    accepted = gbnf_accepts(case, text)

    assert llguidance_accepts(case, text) == accepted
    if accepted:
        assert_valid(case, text)


reasoning_pieces = [
    "<think>", "<", "</b>", "</", "<t", "/think>", "</think", "$f(x) = \\frac{a}{b} < 3$", "model_id = [",
    "subtasks: [\"",
    "access_list = [[0", '"""', "'", "=== workflow ===", "\n", "```python\n", "(", "x", "漢", "\t", "model_id.append(",
]  # fmt: skip


@given(st.data(), st.lists(st.sampled_from(reasoning_pieces), max_size=20))
def test_no_reasoning_changes_what_the_lists_say(data: st.DataObject, pieces: list[str]) -> None:
    case = Case(max_reasoning=400)
    workflow = data.draw(workflows_within(case))
    text = "".join(pieces) + MARKED + dumps(workflow)

    checked = analyze(text, **case.limits)

    assert checked.raise_for_errors().workflow == workflow
    assert gbnf_accepts(case, text) == llguidance_accepts(case, text)


# ---- examples

ONE_STEP = 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]\n'
EMPTY = "model_id = []\nsubtasks = []\naccess_list = []\n"


@pytest.mark.parametrize(
    "wrong",
    [
        ONE_STEP.replace("[0]", "[3]"),
        ONE_STEP.replace("[0]", "[0, 1]"),
        ONE_STEP.replace('"a"', '""'),
        ONE_STEP.replace('"a"', '" "'),
        ONE_STEP.replace('"a"', '"\\n"'),
        ONE_STEP.replace('"a"', '"\\x41"'),
        ONE_STEP.replace("[[]]", "[[0]]"),
        ONE_STEP.replace("[[]]", "[]"),
        ONE_STEP.rstrip("]\n"),
        ONE_STEP + ONE_STEP,
        EMPTY,
        " \n" + ONE_STEP,
    ],
)
def test_what_is_not_in_the_language_cannot_be_written(wrong: str) -> None:
    assert not llguidance_accepts(Case(), wrong)
    assert not gbnf_accepts(Case(), wrong)


@pytest.mark.parametrize(
    "prose",
    [
        "<think>",
        "[THINK]",
        "◁think▷",
        "Model ID (",
        "subtasks:",
        'subtasks = ["""',
        'subtasks：["""',
        'subtasks\n```\n["""',
    ],
)
def test_prose_that_would_hide_the_lists_cannot_be_written(prose: str) -> None:
    lists = ONE_STEP.replace('"a"', '"): ["')
    text = f"{prose}\n{lists}"

    assert analyze(lists, **Case().limits).ok
    assert not analyze(text, **Case().limits).ok
    assert not llguidance_accepts(Case(), text)
    assert not gbnf_accepts(Case(), text)


@pytest.mark.parametrize(
    "reasoning",
    [
        "",
        "<think>\nLet $f(x) = \\sum_{i=1}^{n} a_i$; if x < 3 and y <= 4, then (a, b) = (1, 2).\n",
        'I could write model_id = [0, 1] and subtasks = ["',
        "<b>Or</b> not?\n=== workflow ===\nmodel_id = [5]\n",
        "x" * 2500,
        "x" * 2001,
        "x" * 999,
    ],
)
def test_reasoning_of_any_kind_can_be_written_before_the_marker(reasoning: str) -> None:
    case = Case(max_reasoning=2500)
    text = f"{reasoning}{MARKED}{ONE_STEP}"

    assert llguidance_accepts(case, text)
    assert gbnf_accepts(case, text)
    assert_valid(case, text)
    assert not llguidance_accepts(case, reasoning + ONE_STEP)
    assert not gbnf_accepts(case, reasoning + ONE_STEP)


def test_a_marker_line_counts_only_where_the_grammar_was_asked_for_and_after_the_first_closing_tag() -> None:
    other = ONE_STEP.replace('"a"', '"b"')
    quoted = ONE_STEP.replace('"a"', f"'''{MARKED}{other}'''")

    assert analyze(quoted).raise_for_errors().workflow == Workflow.from_lists([0], [MARKED + other], [[]])
    assert codes(analyze(ONE_STEP, marked=True)) == ["list-missing"]
    assert codes(analyze(f"{ONE_STEP}</think>\n\n{MARKED}{ONE_STEP}", marked=True)) == ["list-missing"]
    assert codes(analyze(f"model_id = [{MARKED}{ONE_STEP}", marked=True)) == []


def codes(checked: Checked) -> list[str]:
    return [found.code for found in checked.diagnostics]


def test_three_empty_lists_can_be_written_only_with_recursion() -> None:
    later = Case(recursion=True)

    assert llguidance_accepts(later, EMPTY)
    assert gbnf_accepts(later, f"Keep it.\n{EMPTY}")
    assert analyze(EMPTY, **later.limits).passthrough
    assert not gbnf_accepts(Case(), EMPTY)


@pytest.mark.parametrize(
    "case", [Case((0, 10), 5, 20, 30), Case((7,), 1, 0, 1), Case((7,), 1, 0, 1, 700), Case((7,), 1, 0, 1, 2500)]
)
def test_the_longest_completion_needs_just_so_many_tokens(case: Case) -> None:
    lists = [list(range(step)) if step > 1 else "all" for step in range(case.max_steps)]
    workers = [max(case.indices)] * case.max_steps
    longest = dumps(Workflow.from_lists(workers, ["😀" * case.max_subtask] * case.max_steps, lists))
    text = "😀" * case.max_prose + "\n" * bool(case.max_prose) + longest
    if case.max_reasoning:
        text = "😀" * case.max_reasoning + MARKED + longest

    assert llguidance_accepts(case, text)
    assert len(text.encode()) + 1 == max_tokens_for(case.indices, case.max_steps, **case.options)


def test_thirty_two_steps_can_be_written_and_no_more() -> None:
    case = Case(max_steps=32, max_subtask=1)
    lists = [[], *([step - 1] for step in range(1, 32))]

    assert llguidance_accepts(case, dumps(Workflow.from_lists([0] * 32, ["a"] * 32, lists)))
    with pytest.raises(UsageError, match=r"max_steps must be from 1 to 32 \(got 33\)"):
        gbnf([0], 33)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"indices": ()}, "at least one worker index"),
        ({"indices": (-1,)}, "each from 0"),
        ({"indices": (0,), "max_steps": 0}, r"max_steps must be from 1 to 32 \(got 0\)"),
        ({"indices": (0,), "max_prose": -1}, r"max_prose must be from 0 to 2000 \(got -1\)"),
        ({"indices": (0,), "max_subtask": 0}, r"max_subtask must be from 1 to 2000 \(got 0\)"),
        ({"indices": (0,), "max_reasoning": 100_001}, r"max_reasoning must be from 0 to 100000 \(got 100001\)"),
        ({"indices": (0,), "max_subtask": 2001}, r"max_subtask must be from 1 to 2000 \(got 2001\)"),
    ],
)
def test_bounds_that_make_no_grammar_are_refused(arguments: dict[str, Any], message: str) -> None:
    for make in (gbnf, llguidance_lark, max_tokens_for):
        with pytest.raises(UsageError, match=message):
            make(**arguments)


def test_servers_that_take_either_dialect_take_this_one_as_it_is() -> None:
    grammar = llguidance_lark(range(3))

    assert llguidance.grammar_from("grammar", grammar) == llguidance.grammar_from("lark", grammar)


def test_the_only_white_space_of_the_text_characters_is_the_space() -> None:
    white = {char for char in map(chr, range(0x110000)) if char.isspace()}

    inside = {char for char in white if any(first <= ord(char) <= last for first, last in TEXT.ranges)}

    assert inside == {" "}


@pytest.mark.parametrize(("name", "make"), [("gbnf", gbnf), ("llguidance", llguidance_lark)])
def test_the_command_prints_the_grammar_of_its_options(
    name: str, make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--max-steps", "3", "--set", "conductor.max_prose=0", "--set", "conductor.max_subtask=40", "--recursion"]
    options += ["--access", "binary"]
    bounds: dict[str, Any] = {"max_prose": 0, "max_subtask": 40, "recursion": True}

    assert main(["check", "--grammar", name, "--pool-size", "3", *options]) == 0
    assert capsys.readouterr().out == make(range(3), 3, access="binary", **bounds)
    assert main(["check", "--grammar", name, "--pool-size", "2"]) == 0
    assert capsys.readouterr().out == make(range(2))
