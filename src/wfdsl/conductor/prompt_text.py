"""One text of a template set: literal parts and placeholders, filled in one pass.

What is filled in is never looked at again, so a question that holds a placeholder's name stays what it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from wfdsl.errors import UsageError


@dataclass(frozen=True)
class PromptText:
    """A text with `{name}` placeholders; only the names that it may use are placeholders, other braces are text."""

    text: str
    names: tuple[str, ...]

    @cached_property
    def _parts(self) -> tuple[str, ...]:
        """Literal text at even positions, the names of placeholders at odd ones."""
        return tuple(re.split(r"\{(" + "|".join(self.names) + r")\}", self.text))

    def fill(self, **values: str) -> str:
        """The text with the placeholders replaced."""
        parts = self._parts
        return "".join([values[part] if at % 2 else part for at, part in enumerate(parts)])

    def require(self, where: str, *needed: str) -> PromptText:
        """This, if the placeholders that it cannot do without are there.

        Raises:
            UsageError: one is missing.
        """
        for name in needed:
            if name not in self._parts[1::2]:
                raise UsageError(f"{where} has no {{{name}}}: the text has to show it")
        return self
