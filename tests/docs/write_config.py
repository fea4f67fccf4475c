"""The keys of the configuration file, from the classes of its tables."""

from __future__ import annotations

from dataclasses import MISSING
from typing import TYPE_CHECKING

from wfdsl.experiment import CONFIGS
from wfdsl.settings import Option, options_of

from .pages import table

if TYPE_CHECKING:
    from collections.abc import Collection

_KINDS = {bool: "true or false", float: "number", int: "whole number", str: "text"}


def keys() -> str:
    """A section for each table with all its keys."""
    return "\n\n".join(section(name, config) for name, config in CONFIGS.items())


def section(name: str, config: type, *, without: Collection[str] = ()) -> str:
    """A table with its keys."""
    fields = [each for each in options_of(config) if each.name not in without]
    heads = ["key", "value", "meaning", "default", *(["option"] if any(field.flag for field in fields) else [])]
    return f"### [{name}]\n\n{table(heads, (_row(field)[: len(heads)] for field in fields))}"


def _row(field: Option) -> list[str]:
    flag = f"`{field.flag}`" if field.flag else ""
    cells = [f"`{field.name}`", _kind(field), field.help, _default(field), flag]
    return [cell.replace("|", "\\|") for cell in cells]


def _kind(field: Option) -> str:
    if field.choices:
        return ", ".join(f"`{choice}`" for choice in field.choices)
    if field.is_table:
        return "table"
    return f"list of {_KINDS[field.item]}s" if field.item else _KINDS.get(field.type, "table")


def _default(field: Option) -> str:
    if field.default_text is not None:
        return field.default_text
    if field.default in (None, (), "", MISSING) or field.is_table or isinstance(field.default, dict):
        return ""
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"
