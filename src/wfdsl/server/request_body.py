"""Bodies of requests: JSON objects, and the classes that say which fields they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, from_json

from wfdsl.server.api_errors import ApiError, not_supported, shown, wrong_value
from wfdsl.settings import in_plain_words

_Model = TypeVar("_Model", bound="RequestObject")


class RequestObject(BaseModel):
    """An object of a request. It may have other fields."""

    model_config = ConfigDict(strict=True, extra="ignore")
    unsupported: ClassVar[frozenset[str]] = frozenset()
    """Fields that would change the answer, and cannot be honoured; their types are the values that do not."""


class Sent(RequestObject):
    """An object that workers are sent as it is, with all its fields."""

    model_config = ConfigDict(strict=True, extra="allow")

    def sent(self) -> dict[str, Any]:
        """The object as it came."""
        return self.model_dump(by_alias=True, exclude_unset=True)


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is: UTF-8, with no value nested deeper than 200, and no text that UTF-8 cannot hold.

    Raises:
        ApiError: it is not one.
    """
    try:
        found = from_json(body.removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(400, f"the body must be JSON: {error}", code="invalid_json") from None
    if not isinstance(found, dict):
        raise ApiError(400, "the body must be a JSON object", code="invalid_json")
    return found


def validated(model: type[_Model], fields: Mapping[str, Any], place: str = "") -> _Model:
    """The fields of an object as a class of them; `place` is where it is in the body.

    Raises:
        ApiError: one of them has a wrong value, or cannot be honoured.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        places = [(_place(each, fields), each) for each in error.errors(include_url=False)]
        # of a union, the alternative that fits best
        inside, first = max(places, key=lambda each: (len(each[0]), not each[1]["type"].endswith("_type")))
    if inside and inside[0] in model.unsupported:
        raise not_supported(str(inside[0]), f"{inside[0]} is not supported: leave it out")
    param = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in inside)
    param = f"{place}{param}".removeprefix(".")
    got = "" if first["type"] == "missing" else f" (got {shown(first['input'])})"
    raise wrong_value(param, f"{param}: {in_plain_words(first['msg'])}{got}")


def _place(error: ErrorDetails, value: Any) -> list[int | str]:
    """The place of an error in a body: pydantic names the alternatives of a union, too."""
    found: list[int | str] = []
    for part in error["loc"]:
        is_missing = error["type"] == "missing" and part is error["loc"][-1]
        if isinstance(value, dict) and isinstance(part, str) and (part in value or is_missing):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            continue
        found.append(part)
    return found
