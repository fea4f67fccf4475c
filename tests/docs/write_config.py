"""The keys of the configuration file, from its tables."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic_core import PydanticUndefined

from wfdsl.conductor.config import ConductorConfig
from wfdsl.config import OptionField, options_of
from wfdsl.experiment.tables import MODELS

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

_KINDS = {bool: "true or false", float: "number", int: "whole number", str: "text", tuple: "list of texts"}


def keys() -> str:
    """A section for each table with all its keys."""
    sections = [_options("conductor", ConductorConfig), *(_section(name, model) for name, model in MODELS.items())]
    return "\n\n".join(sections)


def _options(name: str, config: type) -> str:
    rows = [_option_row(field) for field in options_of(config)]
    return "\n".join([f"### [{name}]", "", "| key | value | meaning |", "|---|---|---|", *rows])


def _option_row(field: OptionField) -> str:
    default = "" if field.default in (None, ()) else f"`{_as_toml(field.default)}`"
    about = f"{field.option.help[:1].upper()}{field.option.help[1:]}"
    told = field.option.default_text or default
    return f"| `{field.name}` | {_kind(field.type)} | {about}{f' (default: {told})' if told else ''} |"


def _section(name: str, model: type[BaseModel]) -> str:
    about = _docstrings(model)
    rows = [_row(key, field, about[key]) for key, field in model.model_fields.items()]
    return "\n".join([f"### [{name}]", "", "| key | value | meaning |", "|---|---|---|", *rows])


def _row(key: str, field: FieldInfo, about: str) -> str:
    default = "" if field.default in (None, (), PydanticUndefined) else f" (default: `{_as_toml(field.default)}`)"
    return f"| `{key}` | {_kind(field.annotation)} | {about}{default} |".replace("\n", " ")


def _kind(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        return _kind(next(each for each in get_args(annotation) if each is not type(None)))
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    return _KINDS[get_origin(annotation) or annotation]


def _as_toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """What stands below each field."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(below, ast.Expr), f"{field.target.id} has no docstring"
            assert isinstance(below.value, ast.Constant), f"{field.target.id} has no docstring"
            found[field.target.id] = " ".join(str(below.value.value).split()).rstrip(".").replace("|", "\\|")
    return found
