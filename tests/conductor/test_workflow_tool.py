"""A Conductor's model that calls a tool with its workflow: the same workflows, diagnostics and rounds as with text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from wfdsl import Pool, UsageError, WorkerEntry, Workflow, analyze
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.workflow_tool import NAME, WorkflowTool, completion_of_call, workflow_tool
from wfdsl.language.constrained import llguidance_lark, openai_lark
from wfdsl.protocols import Call, Reply, ToolCall, Usage
from wfdsl.testing import ScriptedWorker, workflows

PLAN = {
    "steps": [{"model": 0, "subtask": 'Say "hi".\n', "access": []}, {"model": 1, "subtask": "Check.", "access": [0]}]
}
SCHEMA = WorkflowTool(form="function", access="lists").call_settings((0, 1, 2), 5, recursion=False)["tools"][0]


def submitting(*plans: Any) -> Callable[[Call], Reply]:
    """A model that calls the tool with these values, one after the other."""
    left = list(plans)

    def reply(call: Call) -> Reply:
        calls = (ToolCall("c", NAME, json.dumps(left.pop(0))),)
        return Reply("", "tool_calls", Usage(1, 1), tool_calls=calls)

    return reply


def pool() -> Pool:
    async def echo(messages: list[dict[str, Any]]) -> str:
        return str(messages[-1]["content"].splitlines()[-1])

    return Pool.from_functions([echo, echo], names=["w0", "w1"])


def conductor(model: ScriptedWorker, **options: Any) -> Conductor:
    return Conductor(model, **{"tool": "function", "max_rounds": 0, **options})


async def test_a_function_call_is_the_workflow_and_its_mistakes_are_asked_about() -> None:
    forward = {"steps": [{"model": 0, "subtask": "a", "access": [1]}, {"model": 1, "subtask": "b", "access": []}]}
    model = ScriptedWorker(submitting(forward, PLAN))

    solution = await conductor(model).solve("Why?", pool())

    for call in model.calls:
        assert call.settings["tool_choice"] == {"type": "function", "function": {"name": NAME}}
    assert "[access-not-earlier]" in model.calls[1].messages[-1]["content"]
    assert [(step.worker, step.subtask, step.access) for step in solution.rounds[0].workflow.steps] == [
        (0, 'Say "hi".\n', ()),
        (1, "Check.", (0,)),
    ]
    assert solution.answer == "Check."
    assert solution.log[0].completions[-1].text.startswith("model_id = [0, 1]\n")


@pytest.mark.parametrize("broken", [{}, {"steps": 5}, {"steps": [{"model": 0}]}, {"steps": [None]}, []])
async def test_a_call_without_steps_is_not_a_workflow(broken: Any) -> None:
    model = ScriptedWorker(submitting(broken, PLAN))

    assert (await conductor(model).solve("Why?", pool())).answer == "Check."


async def test_no_steps_keep_the_answer_of_the_round_before() -> None:
    model = ScriptedWorker(submitting(PLAN, {"steps": []}))

    solution = await conductor(model, max_rounds=1).solve("Why?", pool())

    assert [log.result for log in solution.log] == ["ran", "kept"]


@pytest.mark.parametrize("form", ["text", "custom tool"])
async def test_a_text_instead_of_a_call_or_under_the_grammar_is_the_completion(form: str) -> None:
    text = 'model_id = [1]\nsubtasks = ["Do it."]\naccess_list = [[]]\n'
    calls = (ToolCall("c", NAME, text, custom=True),)
    reply = Reply(text) if form == "text" else Reply("", "tool_calls", tool_calls=calls)

    tool = "function" if form == "text" else "grammar"
    assert (await conductor(ScriptedWorker([reply]), tool=tool).solve("Why?", pool())).answer == "Do it."


@given(workflows(pool_size=3))
def test_every_workflow_can_be_said_as_steps_and_is_the_same(workflow: Workflow) -> None:
    lists = workflow.to_lists()
    rows = zip(lists["model_id"], lists["subtasks"], lists["access_list"], strict=True)
    said = {"steps": [{"model": model, "subtask": subtask, "access": access} for model, subtask, access in rows]}

    steps = SCHEMA["function"]["parameters"]["properties"]["steps"]
    assert len(said["steps"]) <= steps["maxItems"]
    assert all(set(step) == set(steps["items"]["required"]) for step in said["steps"])
    assert all(step["model"] in steps["items"]["properties"]["model"]["enum"] for step in said["steps"])
    found = analyze(completion_of_call(ToolCall("c", NAME, json.dumps(said))), max_steps=5)

    assert found.workflow == workflow


def test_a_grammar_tool_has_the_constrained_language_without_prose() -> None:
    tool = WorkflowTool(form="grammar", access="lists", max_subtask=80)

    settings = tool.call_settings((0, 2), 3, recursion=True)

    shape = settings["tools"][0]["custom"]["format"]["grammar"]
    grammar = openai_lark((0, 2), 3, recursion=True, max_prose=0, max_subtask=80)
    assert shape == {"syntax": "lark", "definition": grammar}
    assert llguidance_lark((0, 2), 3, recursion=True, max_prose=0, max_subtask=80) == "%llguidance {}\n" + grammar


def test_a_decoder_takes_the_grammar() -> None:
    matcher = pytest.importorskip("llguidance").LLMatcher

    assert matcher.validate_grammar(openai_lark(range(3), 5, max_prose=0, max_subtask=500)) == ""


@pytest.mark.parametrize(
    ("provider", "form", "message"),
    [("anthropic", "grammar", "only OpenAI"), ("transformers", "function", "takes no tools")],
)
def test_a_model_that_cannot_is_refused(provider: str, form: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        workflow_tool(form, WorkerEntry(name="m", provider=provider, model="m"), "lists", None)


def test_tool_and_grammar_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        Conductor(WorkerEntry(name="m", provider="local", model="m"), tool="function", grammar="on")
