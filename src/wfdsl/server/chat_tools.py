"""The fields of a chat completion request about tools, and about the form of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wfdsl.interpreter.tools import Tools
from wfdsl.server.api_errors import not_supported, shown, wrong_value

_KINDS: Final = ("function", "custom")
_CHOICES: Final = ("auto", "none", "required")
_FORMATS: Final = ("text", "json_object", "json_schema")


def read_tools(fields: Mapping[str, Any]) -> Tools | None:
    """The tools that workers are offered; None: there are none.

    Raises:
        ApiError: a tool, or the choice of one, is not one.
    """
    tools, choice, parallel = (fields.get(name) for name in ("tools", "tool_choice", "parallel_tool_calls"))
    if not isinstance(tools, list | None):
        raise wrong_value("tools", f"tools must be a list (got {shown(tools)})")
    if not isinstance(parallel, bool | None):
        raise wrong_value("parallel_tool_calls", f"parallel_tool_calls must be true or false (got {shown(parallel)})")
    names = [_name(tool, f"tools[{index}]") for index, tool in enumerate(tools or ())]
    if choice is not None and choice not in _CHOICES:
        _check_choice(choice, names)
    if not tools or (choice == "none" and not _continues(fields)):
        return None
    return Tools(definitions=tuple(tools), parallel=parallel, choice=None if choice == "auto" else choice)


def _continues(fields: Mapping[str, Any]) -> bool:
    """Whether a conversation ends with results of tools: a run that continues has offered tools before."""
    last = fields["messages"][-1]
    return isinstance(last, dict) and last.get("role") == "tool"


def _name(tool: Any, place: str) -> str:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if isinstance(kind, str) and kind not in _KINDS:
        known = " and ".join(_KINDS)
        raise not_supported(place, f"{place}: tools of type {shown(kind)} are not supported, only {known}")
    inside = tool.get(kind) if isinstance(kind, str) else None
    name = inside.get("name") if isinstance(inside, dict) else None
    if not isinstance(name, str) or not name:
        raise wrong_value(place, f"{place} must be a tool with a type and a name (got {shown(tool)})")
    parameters = inside.get("parameters") if isinstance(inside, dict) else None
    if not isinstance(parameters, dict | None):
        raise wrong_value(place, f"{place}: parameters must be a JSON schema (got {shown(parameters)})")
    return name


def _check_choice(choice: Any, names: list[str]) -> None:
    kind = choice.get("type") if isinstance(choice, dict) else None
    inside = choice.get(kind) if kind in _KINDS else None
    if not isinstance(inside, dict) or inside.get("name") not in names:
        wanted = ", ".join(_CHOICES)
        message = f"tool_choice must be one of {wanted}, or name a tool that is there (got {shown(choice)})"
        raise wrong_value("tool_choice", message)


def read_response_format(shape: Any) -> dict[str, Any] | None:
    """The form of the answer; None: any text.

    Raises:
        ApiError: it is not one.
    """
    if shape is None:
        return None
    kind = shape.get("type") if isinstance(shape, dict) else None
    if kind not in _FORMATS:
        wanted = ", ".join(_FORMATS)
        raise wrong_value("response_format", f"response_format.type must be one of {wanted} (got {shown(kind)})")
    inside = shape.get("json_schema")
    if kind == "json_schema" and not (isinstance(inside, dict) and isinstance(inside.get("schema", {}), dict)):
        raise wrong_value("response_format", f"response_format.json_schema must hold a schema (got {shown(inside)})")
    return None if kind == "text" else dict(shape)
