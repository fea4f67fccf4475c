"""A workflow as a completion: the canonical print of the three lists, inverse to reading them strictly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wfdsl.language.workflow import Workflow

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def print_completion(workflow: Workflow) -> str:
    """The three lists, one to a line, and with several steps each subtask on a line of its own.

    Raises:
        WorkflowError: three lists cannot say it (an unresolved worker, a depth of its own).
    """
    lists = workflow.to_lists()
    subtasks = [quoted(subtask) for subtask in lists["subtasks"]]
    access = ['"all"' if entry == "all" else str(entry) for entry in lists["access_list"]]
    return (
        f"model_id = {lists['model_id']}\n"
        f"subtasks = {_stacked(subtasks) if len(subtasks) > 1 else f'[{subtasks[0]}]'}\n"
        f"access_list = [{', '.join(access)}]\n"
    )


def quoted(value: str) -> str:
    """A string literal between double quotes that means this value; what cannot be seen is escaped."""
    return '"' + "".join([_ESCAPES.get(char) or (char if char.isprintable() else _code(char)) for char in value]) + '"'


def _code(char: str) -> str:
    number = ord(char)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _stacked(items: list[str]) -> str:
    return "[\n" + "".join(f"    {item},\n" for item in items) + "]"
