"""Whether an answer has the form that `response_format` asks for: JSON, and the schema where that is strict.

Strict schemas have few words (OpenAI, Structured Outputs, "Supported schemas"): those of `Schema` are enforced, and
others refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from wfdsl.server.api_errors import shown
from wfdsl.server.request_body import RequestObject

_DEEPEST: Final = 200
_MOST_CHECKS: Final = 100_000
"""A schema that refers to itself may have no end. Both are our choice."""
_IS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}
_LIMITS: Final[tuple[tuple[str, str, Callable[[Any], float], Callable[[float, float], bool]], ...]] = (
    ("minimum", "number", float, lt),
    ("maximum", "number", float, gt),
    ("exclusive_minimum", "number", float, le),
    ("exclusive_maximum", "number", float, ge),
    ("min_length", "string", len, lt),
    ("max_length", "string", len, gt),
    ("min_items", "array", len, lt),
    ("max_items", "array", len, gt),
)
"""Words that limit a value of a kind: what they measure, and when it is outside."""
_Kind = Literal["string", "integer", "number", "boolean", "null", "object", "array"]


class Schema(RequestObject):
    """A strict schema."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)

    type: _Kind | list[_Kind] | None = None
    enum: list[Any] | None = None
    const: Any = None
    any_of: list[Schema] | None = None
    properties: dict[str, Schema] = Field(default={})
    required: list[str] = Field(default=[])
    additional_properties: bool | Schema = True
    items: Schema | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    exclusive_maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    ref: Annotated[str, Field(pattern=r"^#(/(\$defs|definitions)/[^/]+)?$")] | None = Field(None, alias="$ref")
    defs: dict[str, Schema] = Field(default={}, alias="$defs")
    definitions: dict[str, Schema] = Field(default={})
    title: Any = None
    description: Any = None
    default: Any = None
    examples: Any = None
    format: Any = None
    schema_: Any = Field(None, alias="$schema")

    def referred(self, name: str) -> Schema | None:
        """The part that a reference names, such as `#/$defs/step`; None: there is none."""
        return self if name == "#" else (self.defs | self.definitions).get(name.rpartition("/")[2])


def form_problem(shape: Mapping[str, Any] | None, text: str) -> str:
    """What is wrong with the form of a whole answer, in words; empty: nothing."""
    if shape is None:
        return ""
    try:
        value = from_json(text)
    except ValueError as error:
        return f"it is not JSON ({error})"
    if shape["type"] == "json_object":
        return "" if isinstance(value, dict) else "it is not a JSON object"
    wanted = shape["json_schema"]
    return _Check(Schema.model_validate(wanted["schema"])).problem(value) if wanted.get("strict") else ""


class _Check:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = _MOST_CHECKS

    def problem(self, value: Any) -> str:
        """The first thing that is wrong with a value; empty: nothing."""
        return next(self._problems(value, self._root, "$", 0), "")

    def _problems(self, value: Any, schema: Schema, at: str, depth: int) -> Iterator[str]:
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            yield f"{at}: the schema refers to itself without an end"
            return
        if schema.ref is not None:
            inside = self._root.referred(schema.ref)
            missing = [f"{schema.ref} is not in the schema"]
            yield from missing if inside is None else self._problems(value, inside, at, depth + 1)
        kinds = [schema.type] if isinstance(schema.type, str) else schema.type
        if kinds is not None and not any(_IS[kind](value) for kind in kinds):
            yield f"{at} must be of the type {' or '.join(kinds)} (got {shown(value)})"
            return
        if schema.enum is not None and value not in schema.enum:
            yield f"{at} must be one of {schema.enum!r:.200} (got {shown(value)})"
        if "const" in schema.model_fields_set and value != schema.const:
            yield f"{at} must be {shown(schema.const)} (got {shown(value)})"
        if schema.any_of and all(next(self._problems(value, each, at, depth + 1), "") for each in schema.any_of):
            yield f"{at} fits none of the alternatives (got {shown(value)})"
        yield from _excesses(value, schema, at)
        if isinstance(value, dict):
            yield from (f"{at}.{name} is missing" for name in schema.required if name not in value)
            for name, inside in value.items():
                more = schema.properties.get(name, schema.additional_properties)
                if isinstance(more, Schema):
                    yield from self._problems(inside, more, f"{at}.{name}", depth + 1)
                elif not more:
                    yield f"{at}.{name} is not in the schema"
        if isinstance(value, list) and schema.items is not None:
            for index, inside in enumerate(value):
                yield from self._problems(inside, schema.items, f"{at}[{index}]", depth + 1)


def _excesses(value: Any, schema: Schema, at: str) -> Iterator[str]:
    for word, kind, size, is_outside in _LIMITS:
        limit = getattr(schema, word)
        if limit is not None and _IS[kind](value) and is_outside(size(value), limit):
            yield f"{at} must keep to {to_camel(word)} {limit} (got {shown(value)})"
