"""What workflow files mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.language.wf_reading import ToyPool, codes, read, workflow
from wfdsl.api import analyze
from wfdsl.errors import UsageError
from wfdsl.language.diagnostics import WorkflowError
from wfdsl.language.file_reader import read_workflow_file
from wfdsl.language.file_scanner import FileGrammar
from wfdsl.language.grammar import grammar_folder
from wfdsl.language.source import Source
from wfdsl.language.workflow import Step, Workflow

POOL = ToyPool()


def _access(text: str, **params: str) -> list[object]:
    return [step.access for step in workflow(text, params)]


def test_a_file_is_read_as_the_steps_that_it_says() -> None:
    text = 'step plan by 2: "Plan."\nstep solve by 0 sees plan: "Solve."\nstep check by 1 sees all: "Check."'

    assert workflow(text) == Workflow((Step(2, "Plan."), Step(0, "Solve.", (0,)), Step(1, "Check.", "all")))


@pytest.mark.parametrize(
    ("text", "accesses"),
    [
        pytest.param(
            'step a by 0 sees all: "x"\nstep b by 0 sees a: "x"\nstep c by 0 sees all: "x"',
            ["all", (0,), "all"],
            id="all is not a list of all steps",
        ),
        pytest.param(
            'step a by 0: "x"\nstep b by 1 copies 3 sees a: "x"\nstep c by 2 sees b: "x"',
            [(), (0,), (0,), (0,), (1, 2, 3)],
            id="copies see what the step sees, and its name is all of them",
        ),
        pytest.param(
            'step a by 0: "x"\nstep b by 1 chain 3 sees a: "x"\nstep c by 0 chain 2 sees all: "x"',
            [(), (0,), (0, 1), (0, 2), "all", "all"],
            id="a link of a chain also sees the one before",
        ),
        pytest.param(
            'step a by 0: "x"\nstep b by 1 and 2 chain 3 sees a: "x"\nstep c by 0 sees latest b: "x"',
            [(), (0,), (0,), (0, 1, 2), (0, 1, 2), (0, 3, 4), (0, 3, 4), (5, 6)],
            id="a layer of a chain sees the one before",
        ),
        pytest.param(
            'step a by 0 copies 2 chain 2: "x"\nstep b by 1 copies 2 sees own a: "x"\nstep c by 0 sees b: "x"',
            [(), (), (0, 1), (0, 1), (0, 2), (1, 3), (4, 5)],
            id="own is the copy with the same number",
        ),
        pytest.param(
            'step a by 0 copies 2: "x"\nstep b by 1 copies 2 chain 3 sees own a, own b: "x"\nstep c by 0 sees all: "x"',
            [(), (), (0,), (1,), (0, 2), (1, 3), (0, 4), (1, 5), "all"],
            id="own in a chain is the own earlier copy",
        ),
    ],
)
def test_a_step_sees(text: str, accesses: list[object]) -> None:
    assert _access(text) == accesses


def test_copies_have_names_with_numbers() -> None:
    steps, _ = read('step a by 0: "x"\nstep b by 1 copies 3 sees a: "x"')

    assert steps is not None
    assert steps.names == ("a", "b[1]", "b[2]", "b[3]")


@pytest.mark.parametrize(
    ("text", "workers"),
    [
        (
            'step a by each worker: "x"\nstep b by each tag strong: "x"\nstep c by tag strong: "x"',
            [0, 1, 2, 3, 1, 2, 1],
        ),
        ('step a by planner: "x"\nstep b by tag strong: "x"\nstep c by conductor: "x"', [0, 1, 3]),
        ('step a by 1 and 2 chain 3: "x"', [1, 2] * 3),
        ('step a by 2 and 0 copies 2: "x"', [2, 2, 0, 0]),
        ('step a by each tag strong copies 2 chain 2: "x"', [1, 1, 2, 2] * 2),
        ('param w = "boss"\nstep a by {w} and verifier: "x"', [3, 2]),
        ('param w = "1"\nstep a by {w}: "x"', [1]),
    ],
)
def test_names_tags_and_conductors_become_indices_with_a_pool(text: str, workers: list[int]) -> None:
    assert [step.worker for step in workflow(text, pool=POOL)] == workers


def test_a_conductor_has_a_depth() -> None:
    steps = workflow('step a by conductor depth 2: "x"\nstep b by "boss" depth 3 sees a: "x"', pool=POOL)

    assert [step.depth for step in steps] == [2, 3]
    assert codes('step a by conductor: "x"', pool=ToyPool(bosses=())) == ["worker-unknown"]


def test_without_a_pool_workers_stay_as_they_are_written() -> None:
    text = """
step a by planner: "x"
step b by tag strong sees a: "x"
step c by tag "odd tag" sees b: "x"
step d by each worker sees c: "x"
step e by each tag strong sees d: "x"
step f by conductor sees e: "x"
step g by "conductor" sees f: "x"
step h by "odd name" sees g: "x"
"""

    workers = workflow(text).unresolved

    assert workers == (
        "planner",
        "tag strong",
        'tag "odd tag"',
        "each worker",
        "each tag strong",
        "conductor",
        '"conductor"',
        "odd name",
    )


def test_parameters_stand_in_counts_texts_and_for_workers() -> None:
    text = 'param n = 2\nparam how = "well {n}"\nparam who = 0\nstep a by {who} chain {n}: "Do it {n} times, {how}."'

    default = workflow(text)
    changed = workflow(text, {"n": "1", "how": "{badly}", "who": "solver"}, POOL)

    assert [(step.worker, step.subtask) for step in default] == [(0, "Do it 2 times, well {n}.")] * 2
    assert [(step.worker, step.subtask) for step in changed] == [(1, "Do it 1 times, {badly}.")]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mm": "1"}, "no parameter mm (it has n)"),
        ({"n": "two"}, "n is an integer (its default is 3): it cannot be set to 'two'"),
        ({"n": "9" * 5000}, "n is an integer"),
        ({"n": "٣"}, "n is an integer"),
    ],
)
def test_a_parameter_that_cannot_be_set_is_a_usage_error(params: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        read('param n = 3\nstep a by 0 chain {n}: "x"', params)

    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r'"tab\t, \x41, \u00e9, \N{BULLET}, \q"', "tab\t, A, é, •, \\q"),
        (r"r'\n {{'", r"\n {"),
        ('"{{}} {{{{"', "{} {{"),
        (r'"\x7b and \173"', "{ and {"),
        (r'"\\{{"', "\\{"),
        ('"a" \'b\' """c"""', "abc"),
        (r'"\ud83d" "\ude00"', "😀"),
        ('"one \\\nline"', "one line"),
        ('"""\n    a\n      b\n\n    c\n    """', "a\n  b\n\nc"),
        ('"""a\n    b\n      c"""', "a\nb\n  c"),
        ('"""\n\n  a\n\n  """', "\na\n"),
        ('"""\n  a\\\n  b\\\n  """', "ab"),
        ('"""\n\ta\n\t b\r\n\t"""', "a\n b"),
        ('"""  a  """', "  a  "),
        ('"""\n  a\n \t \n  b"""', "a\n\nb"),
        ('"""\n  r\\n\n"""', "r\n"),
        ("r'''\n  \\{{\n'''", "\\{"),
    ],
)
def test_a_text_says(literal: str, value: str) -> None:
    assert workflow(f"step a by 0: {literal}")[0].subtask == value


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends_do_not_matter(line_end: str) -> None:
    text = 'step a by 0: """\n  x\n  y\n"""\nstep b by 0\n  sees a: "z"'

    assert workflow(text.replace("\n", line_end)) == workflow(text)


def test_a_byte_order_mark_may_stand_before_everything() -> None:
    assert workflow('\ufeffwfdsl 1\nstep a by 0: "x"') == Workflow((Step(0, "x"),))


def test_copies_that_see_their_own_step_see_nothing_earlier() -> None:
    steps, _ = read('step a by 0: "x"\nstep b by 0 copies 3 sees b: "x"')

    assert steps is not None
    assert [[index for index, _, _ in entry.indices] for entry in steps.access] == [[], [3], [3], [3]]


def test_a_completion_gets_one_clear_message() -> None:
    _, found = read('Plan first.\n```python\nmodel_id = [0]\nsubtasks = ["x"]\naccess_list = [[]]\n```')

    assert [(problem.code, problem.span.start) for problem in found] == [("syntax", 22)]


def test_places_are_those_in_the_file() -> None:
    text = 'step a by 0: "x"\nstep b by tag strong copies 2 sees a: "y"'

    steps, _ = read(text)

    assert steps is not None
    assert text[slice(*steps.workers[1][1:])] == "tag strong"
    assert text[slice(*steps.subtasks[1][1:])] == '"y"'
    assert text[slice(*steps.access[1].indices[0][1:])] == "a"
    assert steps.workers[1] == steps.workers[2]


def test_a_changed_grammar_file_changes_what_is_read(tmp_path: Path) -> None:
    for path in grammar_folder().glob("*.lark"):
        changed = path.read_text("utf-8").replace('"copies" _WHOLE', '"mal" _WHOLE').replace('":" text', '"|" text')
        (tmp_path / path.name).write_text(changed, "utf-8")
    grammar = FileGrammar(tmp_path)

    _, old = read_workflow_file(Source('step a by 0 copies 2: "x"'), grammar)
    tree, new = read_workflow_file(Source('step a by 0 mal 2 | "x"'), grammar)

    assert old
    assert not new
    assert [type(statement).__name__ for statement in tree.statements] == ["StepStatement"]


def test_parameters_are_filled_into_title_and_description_and_count_as_used() -> None:
    text = 'param n = 3\ntitle "{n} attempts {{x}}"\ndescription "Best of {n}."\nstep a by 0 copies {n}: "Try."\n'

    checked = analyze(text, params={"n": 5}, form="wf")

    assert checked.ok
    assert checked.tree is not None
    assert (checked.tree.title, checked.tree.description) == ("5 attempts {x}", "Best of 5.")
    only_in_title = 'param n = 3\ntitle "{n} attempts"\nstep a by 0: "Try."\n'
    assert analyze(only_in_title, form="wf").diagnostics == ()


@pytest.mark.parametrize("name", ["योजना", "แผนที่", "e\u0301tape", "שָׁלוֹם", "𑄌𑄋𑄴𑄟𑄳𑄦", "stepี"])
def test_names_are_letters_of_any_script_with_their_marks(name: str) -> None:
    text = f'step {name} by 0: "x"\nstep b by 1 sees {name}: "y"'

    assert _access(text) == [(), (0,)]
    steps, _ = read(text)
    assert steps is not None
    assert steps.names == (name, "b")


def test_own_between_different_numbers_of_copies_is_an_error_that_counts_them() -> None:
    found = read('step a by 0 copies 2: "x"\nstep b by 1 copies 3 sees own a: "y"')[1]
    wrong = [problem for problem in found if problem.is_error]

    assert [problem.code for problem in wrong] == ["copies-differ"]
    assert "`a` has 2, and this step 3" in wrong[0].message


def test_own_is_held_against_each_worker_of_a_pool() -> None:
    text = 'step a by each worker: "x"\nstep b by 1 copies 4 sees own a: "y"\nstep c by 0 sees b: "z"'

    assert set(codes(text)) == {"pool-needed"}
    assert _access(text)[-1] == (1, 2, 3, 4)
    assert [step.access for step in workflow(text, pool=POOL)][4:8] == [(0,), (1,), (2,), (3,)]


def test_a_step_has_settings_of_its_own_and_so_have_its_copies() -> None:
    text = 'param t = 0.5\nstep a by 0 copies 2 max_tokens 9 temperature {t}: "{t}"\nstep b by 0 sees a: "x"'

    steps = workflow(text, {"t": "1.25"})

    assert [step.settings for step in steps] == [{"temperature": 1.25, "max_tokens": 9}] * 2 + [{}]
    assert steps[0].subtask == "1.25"
    assert steps != workflow(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["no-steps"]),
        (" \n\t\n", ["no-steps"]),
        ("# only a comment", ["no-steps"]),
        ("\ufeff", ["no-steps"]),
        ('title "x"', ["no-steps"]),
        *((text, ["syntax"]) for text in ("step a by 0: \0", "\x1b[31m", "{", "\\", '"', "'''", "step")),
        ('step a by 0: \ufeff"x"', ["syntax"]),
        *((text, ["syntax", "no-steps"]) for text in ("\0", "…")),
        ('step a by solver depth 2: "x"', ["clause-conflict"]),
        ('step a by boss depth 2: "x"', []),
        ('param n = 1001\nstep a by 0 chain {n}: "x"', ["count-out-of-range"]),
        ('step attempt by 0: "x"\nstep b by 1 sees atempt, attempt: "y"', ["name-unknown"]),
        ('step attempt by 0: "x"\nstep b by 1 sees attempt, atempt: "y"', ["name-unknown"]),
        ('step a by 0: "x"\nstep b by 1: "y"\nstep c by 2 sees a: "z"', ["dead-step"]),
        ('step a by 0: "x"\nstep a by 1: "y"\nstep c by 2 sees a: "z"', ["name-taken"]),
        ('step a by 0 copies 2 sees own a: "x"', ["access-not-earlier"]),
        ('step a by 0 copies 1000 chain 1000: "x"', ["workflow-too-large"]),
        ('step a by 3 temperature 1: "x"', ["clause-conflict"]),
        ('param t = "hot"\nstep a by 0 temperature {t}: "x"', ["param-type"]),
        ('param n = 0.5\nstep a by 0 copies {n}: "x"', ["param-type"]),
        ('step a by 0 temperature 1 temperature 0: "x"', ["clause-repeated"]),
        (f'step a by 0 temperature 0.{"1" * 40}: "x"', ["number-too-large"]),
    ],
)
def test_what_a_file_cannot_say_has_a_code(text: str, found: list[str]) -> None:
    assert [each.code for each in analyze(text, form="wf", pool=POOL).diagnostics] == found


def test_a_number_can_only_be_set_to_a_number() -> None:
    with pytest.raises(UsageError, match="the parameter t is a number"):
        workflow('param t = 0.5\nstep a by 0 temperature {t}: "x"', {"t": "hot"})


def test_three_lists_cannot_say_settings() -> None:
    with pytest.raises(WorkflowError, match="temperature of its own"):
        Workflow((Step(0, "x", temperature=0.5),)).to_lists()
