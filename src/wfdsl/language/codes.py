"""The table of diagnostic codes, which `codes.toml` holds."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

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
    wrong: str = ""
    """A text that gets this code."""
    right: str = ""
    """The same without the error; empty where there is nothing to write instead."""


def _code(name: str, row: dict[str, Any]) -> Code:
    return Code(name, **{**row, "explanation": " ".join(row["explanation"].split())})


_TABLE: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
CODES: Final = {name: _code(name, row) for name, row in _TABLE.items()}
"""Every code by its name, in the order of the reference page."""
