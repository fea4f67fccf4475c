"""What a diagnostic code is: one row of the table of codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["error", "repair", "warning", "note"]
Form: TypeAlias = Literal["both", "completion", "wf"]


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the table."""

    name: str
    kind: Kind
    form: Form
    summary: str
    explanation: str
    wrong: str
    """A text that gets this code."""
    right: str = ""
    """The same without the error; empty where there is nothing to write instead."""
