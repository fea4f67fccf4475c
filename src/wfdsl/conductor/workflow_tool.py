"""A Conductor's model that writes its workflow as the call of a tool, for APIs that take no grammar otherwise.

`grammar`   one of OpenAI's custom tools, whose input is a completion under a grammar in Lark's syntax
`function`  a function `submit_workflow(steps=[...])` with a JSON schema, for every model that calls functions

What the model calls is made a completion before anything else sees it, so the language stays one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from wfdsl.conductor.config import ToolForm
from wfdsl.errors import UsageError
from wfdsl.language.check import AccessScheme
from wfdsl.language.constrained import openai_lark
from wfdsl.language.literals import quoted
from wfdsl.protocols import Call, Reply, ToolCall, Worker
from wfdsl.workers.entry import WorkerEntry

NAME: Final = "submit_workflow"
_MAX_SUBTASK: Final = 500
"""Characters of a subtask under OpenAI's grammars, which may not be too complex. Our choice."""
_WITHOUT_TOOLS: Final = ("function", "transformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowTool:
    """The tool that takes a workflow."""

    form: Literal["grammar", "function"]
    access: AccessScheme
    max_subtask: int = _MAX_SUBTASK

    def call_settings(self, indices: Sequence[int], max_steps: int, *, recursion: bool) -> dict[str, Any]:
        """The settings of a call that has to use the tool."""
        if self.form == "grammar":
            bounds: dict[str, Any] = {"max_prose": 0, "max_subtask": self.max_subtask, "access": self.access}
            grammar = openai_lark(indices, max_steps, recursion=recursion, **bounds)
            shape = {"type": "grammar", "grammar": {"syntax": "lark", "definition": grammar}}
            kind, takes = "custom", "Takes the workflow, as the three lists."
            about: dict[str, Any] = {"format": shape}
        else:
            kind, takes = "function", "Takes the workflow, step by step: what would be the entries of the three lists"
            takes += f" at one place is one step.{' No steps: the answer is kept.' if recursion else ''}"
            about = {"parameters": _schema(indices, max_steps, self.access, recursion=recursion), "strict": True}
        return {
            "tools": [{"type": kind, kind: {"name": NAME, "description": takes, **about}}],
            "tool_choice": {"type": kind, kind: {"name": NAME}},
            "parallel_tool_calls": False,
        }


def completing(model: Worker) -> Worker:
    """A model whose replies are completions, whether it writes them or calls the tool."""

    async def completed(call: Call) -> Reply:
        reply = await model(call)
        if not reply.tool_calls:
            return reply
        return replace(reply, text=completion_of_call(reply.tool_calls[0]), finish="stop", tool_calls=())

    return completed


def workflow_tool(
    form: ToolForm, entry: WorkerEntry | None, access: AccessScheme, max_subtask: int | None
) -> WorkflowTool | None:
    """The tool for the model of an entry; None: the model writes its workflow as text.

    Raises:
        UsageError: the model takes no tools, or no grammar in them.
    """
    if form == "off":
        return None
    if entry is not None:
        if entry.provider in _WITHOUT_TOOLS:
            raise UsageError(f'worker "{entry.name}": {entry.provider} takes no tools; use conductor.grammar instead')
        if form == "grammar" and entry.provider != "openai":
            raise UsageError(
                f'worker "{entry.name}": only OpenAI takes a grammar in a tool; set conductor.tool = "function"'
            )
    return WorkflowTool(form=form, access=access, max_subtask=max_subtask or _MAX_SUBTASK)


def completion_of_call(call: ToolCall) -> str:
    """What a call of the tool says, as a completion; what is not a list of steps stays as it was written."""
    if call.custom:
        return call.arguments
    columns = {"model_id": "model", "subtasks": "subtask", "access_list": "access"}
    try:
        steps = json.loads(call.arguments)["steps"]
        # With the values as they are: the checker says what is wrong with them.
        rows = {label: [_literal(step[name]) for step in steps] for label, name in columns.items()}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return call.arguments
    return "".join(f"{label} = [{', '.join(row)}]\n" for label, row in rows.items())


def _literal(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def _schema(indices: Sequence[int], max_steps: int, access: AccessScheme, *, recursion: bool) -> dict[str, Any]:
    seen: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": max_steps - 1}}
    if access == "binary":
        seen["maxItems"] = 0
    entry = {"anyOf": [{"type": "string", "enum": ["all"]}, seen]}
    shown = 'which earlier steps it is shown, counted from 0: a list of them, or "all"'
    fields = {
        "model": {"type": "integer", "enum": list(indices), "description": "the number of the model"},
        "subtask": {"type": "string", "description": "what the model is told to do"},
        "access": {**entry, "description": shown},
    }
    steps = {"type": "array", "minItems": 0 if recursion else 1, "maxItems": max_steps, "items": _object(fields)}
    return _object({"steps": steps})


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
