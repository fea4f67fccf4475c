"""The public surface: which names there are, and what they take, give and raise."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wfdsl
import wfdsl.testing
import wfdsl_rl
from tests.docs.write_python import public_names
from wfdsl import Checked, Pool, Workflow, WorkflowError

LISTS: tuple[list[int], list[str], list[Any]] = ([0, 1, 0], ["a", "b", "c"], [[], [0], "all"])
TEXT = 'model_id = [0, 1, 0]\nsubtasks = ["a", "b", "c"]\naccess_list = [[], [0], "all"]'
EMPTY = "model_id = []\nsubtasks = []\naccess_list = []"

PROMISED = {
    "CheckConfig": ["*pool=None", "*max_steps=5", "*profile='strict'", "*recursion=False"],
    "analyze": ["text", "config=None", "*options"],
    "parse": ["text", "config=None", "*options"],
    "load": ["path", "config=None", "*options"],
    "dumps": ["workflow", "form='completion'"],
    "to_dag": ["workflow"],
    "grade": ["task", "text"],
    "grade_sync": ["task", "text"],
    "load_tasks": ["path_or_name", "*format=None", "*limit=None", "*seed=None"],
    "run": ["workflow", "question", "pool", "config=None", "*budget=None", "*journal=None"],
    "run_sync": ["workflow", "question", "pool", "config=None"],
    "stream": ["workflow", "question", "pool", "config=None"],
    "Workflow.from_lists": ["model_id", "subtasks", "access_list"],
    "Workflow.to_lists": ["self"],
    "Workflow.sees": ["self", "step"],
    "Pool.load": [],
    "Pool.from_functions": ["functions", "names=None", "descriptions=None"],
}
"""What others build on: names, order, kinds and defaults. There may be more options; these never change."""


PACKAGES = [wfdsl, wfdsl_rl, wfdsl.testing]
ALIASES = {"Event", "Listener", "RunOptions"}
"""Names of types that are not classes, which Python gives no docstring."""


def public(path: str) -> Any:
    value: Any = wfdsl
    for name in path.split("."):
        value = getattr(value, name)
    return value


def shown(parameter: inspect.Parameter) -> str:
    default = "" if parameter.default is inspect.Parameter.empty else f"={parameter.default!r}"
    by_name = parameter.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    return f"{'*' if by_name else ''}{parameter.name}{default}"


@pytest.mark.parametrize("package", PACKAGES)
def test_the_names_are_sorted_and_complete(package: Any) -> None:
    names = [name for name in package.__all__ if name != "__version__"]

    assert names == sorted(set(names))
    assert dir(package) == sorted(package.__all__)


@pytest.mark.parametrize(("package", "name"), [(package, name) for package in PACKAGES for name in package.__all__])
def test_every_name_can_be_imported_and_says_what_it_is(package: Any, name: str) -> None:
    value = getattr(package, name)

    if name == "__version__":
        assert re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", value)
        assert value == version("wfdsl-conductor")
    elif name in ALIASES:
        assert f"| `{name}` |" in public_names()  # written from the text after its definition
    else:
        assert value.__name__ == name
        assert inspect.getdoc(value)
        assert value.__doc__ != object.__doc__
    if inspect.isclass(value):
        assert [
            method
            for method, each in vars(value).items()
            if not method.startswith("_")
            and isinstance(each, property | classmethod | staticmethod) | inspect.isfunction(each)
            and not inspect.getdoc(each)
        ] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_star_import_gives_the_public_names_and_no_others(package: Any) -> None:
    names: dict[str, Any] = {}

    exec(f"from {package.__name__} import *", names)

    assert names.keys() - {"__builtins__"} == set(package.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: Any) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'prase'"):
        package.prase  # noqa: B018


def test_importing_wfdsl_rl_imports_nothing_else_of_it() -> None:
    asked = "import sys, wfdsl_rl; print([name for name in sys.modules if name.startswith('wfdsl_rl.')])"

    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize("path", PROMISED)
def test_signatures_are_as_promised(path: str) -> None:
    parameters = [shown(parameter) for parameter in inspect.signature(public(path)).parameters.values()]

    positional = [name for name in PROMISED[path] if not name.startswith("*")]
    assert parameters[: len(positional)] == positional
    assert set(PROMISED[path]) <= set(parameters)
    assert all(name.startswith("*") or "options" in name for name in parameters[len(positional) :] if positional)


def test_analyze_gives_the_workflow_and_what_was_found() -> None:
    checked = wfdsl.analyze(TEXT, pool=2)

    assert isinstance(checked, Checked)
    assert checked.workflow == Workflow.from_lists(*LISTS)
    assert checked.diagnostics == ()
    assert (checked.ok, checked.passthrough) == (True, False)


@given(st.text() | st.text("[](){}\"'\\,:=#\n\r\t -0123456789abc_mode_idsubtasksaccess_list<think>/\ud800\u00a0“”’"))
def test_analyze_never_raises(text: str) -> None:
    for profile in ("strict", "lenient"):
        for recursion in (False, True):
            checked = wfdsl.analyze(text, profile=profile, recursion=recursion, pool=2)

            assert checked.ok == (checked.workflow is not None or (checked.passthrough and recursion))
            assert all(0 <= found.span.start <= found.span.end <= len(text) for found in checked.diagnostics)


@pytest.mark.parametrize(
    "text",
    ["", "\0", "\ud800", "model_id = " * 1000, "model_id = [" * 1000, "[" * 100_000, TEXT[:-1], "x" * (1 << 21)],
)
def test_analyze_never_raises_on_odd_texts(text: str) -> None:
    assert not wfdsl.analyze(text).ok


def test_parse_raises_a_value_error_with_the_diagnostics() -> None:
    with pytest.raises(WorkflowError, match="access-not-earlier") as caught:
        wfdsl.parse(TEXT.replace("[0], ", "[2], "))

    assert isinstance(caught.value, ValueError)
    assert [(found.code, found.span) for found in caught.value.diagnostics] == [("access-not-earlier", (68, 69))]


def test_parse_gives_the_workflow_and_does_not_take_three_empty_lists_for_a_workflow() -> None:
    assert wfdsl.parse(TEXT) == Workflow.from_lists(*LISTS)
    with pytest.raises(WorkflowError, match="empty-workflow"):
        wfdsl.parse(EMPTY)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: wfdsl.Task(id="a", question="2 + 2?", gold=4), "Task: gold"),  # type: ignore[arg-type]
        (lambda: wfdsl.WorkerEntry(name="a", provider="openai", retries=-1), "WorkerEntry: retries"),
        (lambda: wfdsl.CheckConfig(max_steps=0), "max_steps"),
        (lambda: wfdsl.analyze(TEXT, form="foo"), "foo"),  # type: ignore[arg-type]
        (lambda: wfdsl.load("a\0b"), "null"),
    ],
)
def test_what_cannot_be_used_is_a_usage_error_of_one_line(call: Callable[[], Any], named: str) -> None:
    with pytest.raises(wfdsl.UsageError, match=named) as caught:
        call()

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", ["completion", "wf"])
def test_dumps_writes_what_load_reads(tmp_path: Any, form: Any) -> None:
    workflow = Workflow.from_lists(*LISTS)
    path = tmp_path / ("some.wf" if form == "wf" else "some.txt")

    path.write_text(wfdsl.dumps(workflow, form), "utf-8")

    assert wfdsl.load(path) == wfdsl.load(str(path)) == workflow


def test_to_dag_points_where_information_flows() -> None:
    dag = wfdsl.to_dag(Workflow.from_lists(*LISTS))

    assert isinstance(dag, nx.DiGraph)
    assert sorted(dag.edges) == [(0, 1), (0, 2), (1, 2)]
    assert (dag.nodes[1]["worker"], dag.nodes[1]["subtask"]) == (1, "b")


async def last_word(messages: list[dict[str, Any]]) -> str:
    return f"done: {messages[-1]['content'].split()[-1]}"


def test_a_pool_stands_in_place_of_its_size_and_run_sync_gives_the_record_of_the_run() -> None:
    pool = Pool.from_functions([last_word])

    (found,) = wfdsl.analyze(TEXT, pool=pool).diagnostics
    run = wfdsl.run_sync(Workflow.from_lists([0], ["solve"], [[]]), "why", pool)

    assert found.code == "worker-not-in-pool"
    assert run.answer == "done: solve"
    assert [step.response for step in run.steps] == ["done: solve"]


def test_the_kinds_of_error_have_one_base() -> None:
    for error in (WorkflowError, wfdsl.RunFailed, wfdsl.BudgetExhausted, wfdsl.UsageError):
        assert issubclass(error, wfdsl.WfdslError)
    assert not issubclass(wfdsl.RunFailed, WorkflowError | wfdsl.BudgetExhausted)
