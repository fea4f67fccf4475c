"""The keys of [train], from the classes of its tables; each with the first sentence of its docstring."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from wfdsl_rl.training.config import GrpoStage, SftStage, Stage, TrainConfig

from .pages import table
from .write_config import section
from .write_python import docstrings_of_fields, first_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

_KINDS = {bool: "true or false", float: "number", int: "whole number", str: "text"}
_LIMITS = {Gt: ("above", "gt"), Ge: ("at least", "ge"), Lt: ("below", "lt"), Le: ("at most", "le")}


def train_keys() -> str:
    """A section for each table."""
    places: dict[type[Any], str] = {}
    stages = {"train.stages.NAME": Stage, "train.stages.NAME, kind sft": SftStage, "train.stages.NAME, GRPO": GrpoStage}
    found = [*_sections("train", TrainConfig, places)]
    for name, kind in stages.items():
        found += _sections(name, kind, places)
    return "\n\n".join(found)


def _sections(name: str, kind: type[Any], places: dict[type[Any], str]) -> Iterator[str]:
    """A table and the tables in it; `places` holds what each class is called, and grows."""
    if kind in places:
        return
    places[kind] = name
    if is_dataclass(kind):
        yield section(name, kind)
        return
    inner = {f"{name}.{key}": found for key, field in kind.model_fields.items() if (found := _table(field))}
    base = places.get(kind.__mro__[1])
    also = [f"It also has the keys of [{base}]; defaults below replace theirs."] if base else []
    head = [f"### [{name}]", " ".join((kind.__doc__ or "").split()), *also]
    yield "\n\n".join([*head, table(["key", "value", "meaning", "default"], _rows(name, kind, places))])
    for path, found in inner.items():
        yield from _sections(path, found, places)


def _rows(name: str, kind: type[BaseModel], places: dict[type[Any], str]) -> Iterator[list[str]]:
    for key, meaning in docstrings_of_fields(kind).items():
        if field := kind.model_fields.get(key):
            kind_of = _table(field)
            value = f"table, as [{places.get(kind_of, f'{name}.{key}')}]" if kind_of else _value(field)
            cells = [f"`{key}`", value, first_sentence(meaning), _default(field)]
            yield [cell.replace("|", "\\|") for cell in cells]


def _types(field: FieldInfo) -> tuple[Any, ...]:
    annotation: Any = field.annotation
    kinds = (annotation,) if get_origin(annotation) in (None, Literal, tuple, dict) else get_args(annotation)
    return tuple(kind for kind in kinds if kind is not type(None))


def _table(field: FieldInfo) -> type[Any] | None:
    kind = _types(field)[0]
    return kind if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, BaseModel)) else None


def _value(field: FieldInfo) -> str:
    kind = _types(field)[0]
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return f"list of {_KINDS[get_args(kind)[0]]}s"
    if get_origin(kind) is dict:
        return "table"
    limits = [(_LIMITS[type(one)], one) for one in field.metadata if type(one) in _LIMITS]
    return ", ".join([_KINDS[kind], *(f"{words} {getattr(limit, name):g}" for (words, name), limit in limits)])


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined and field.default_factory is None:
        return "must be given"
    default = field.get_default(call_default_factory=True)
    if _table(field) or default is None or default in ((), "", {}):
        return ""
    if isinstance(default, dict):
        return f"`{{ {', '.join(f'{key} = {value}' for key, value in default.items())} }}`"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"
