"""One value for one key of an experiment, given elsewhere than in its file: on the command line, or by a program."""

from __future__ import annotations

import tomllib
from typing import Any, NamedTuple

from wfdsl.errors import UsageError


class Setting(NamedTuple):
    """A value that goes before what the file says."""

    key: str
    """The table and the keys in it, with dots, such as `conductor.max_rounds`."""
    value: Any
    place: str
    """What errors call it, such as `--max-rounds`."""
    text: str | None = None
    """What was written, where the value was read from it; for keys whose values are texts this is the value."""

    @classmethod
    def parse(cls, assignment: str) -> Setting:
        """The setting that `KEY=VALUE` says. The value is written as in TOML; what is no TOML is a text.

        Raises:
            UsageError: it is not of this form.
        """
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not equals or not all(part.strip() for part in key.split(".")):
            raise UsageError(f"--set {assignment!r}: write TABLE.KEY=VALUE, such as conductor.max_rounds=2")
        if "." not in key:
            raise UsageError(f"--set {key}: this names no table: write TABLE.KEY=VALUE, such as conductor.max_rounds=2")
        return cls(key, _value(text.strip()), f"--set {key}", text.strip())


def _value(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return found["value"] if len(found) == 1 else text  # a line break in the text could begin another key
