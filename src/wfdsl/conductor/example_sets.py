"""Few-shot examples: sets of four questions with workflows, shipped or from a file of the reader's own.

A set is a TOML file with a `name` and `[[examples]]` tables of `question` and `completion`. Every completion has to be
valid in the strict profile: a Conductor learns the format from it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wfdsl.api import analyze
from wfdsl.errors import UsageError
from wfdsl.syntax.printer import print_completion

if TYPE_CHECKING:
    from wfdsl.workflow import Workflow

SHIPPED: Final = Path(__file__).parent / "examples"


@dataclass(frozen=True, slots=True)
class Example:
    """A question, and what a good Conductor wrote."""

    question: str
    completion: str
    """The whole completion, reasoning included."""
    workflow: Workflow

    @property
    def lists(self) -> str:
        """The three lists alone."""
        return print_completion(self.workflow).rstrip("\n")


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """Examples that are shown together, under a name."""

    name: str
    examples: tuple[Example, ...]


def shipped_sets() -> tuple[str, ...]:
    """The names of the sets that come with the package, sorted."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))


def load_examples(name: str) -> ExampleSet:
    """A shipped set by its name, `none` for no examples, or the set in a file.

    Raises:
        UsageError: there is no such set, or its file cannot be used.
    """
    if name == "none":
        return ExampleSet(name, ())
    path = SHIPPED / f"{name}.toml" if name in shipped_sets() else Path(name)
    return _read(path, read_toml(path, "examples", ("none", *shipped_sets())))


def read_toml(path: Path, what: str, shipped: tuple[str, ...]) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        UsageError: it cannot be read; the message names what is shipped.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"no {what} {str(path)!r}: name a file, or one of {', '.join(shipped)}") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as TOML: {error}") from error


def _read(path: Path, tables: dict[str, Any]) -> ExampleSet:
    rows = tables.get("examples")
    if tables.keys() - {"name", "examples"} or not isinstance(rows, list) or not rows:
        raise UsageError(f"{path}: a set of examples has a name and [[examples]] tables, nothing else")
    return ExampleSet(
        str(tables.get("name", path.stem)), tuple(example_of(path, at, row) for at, row in enumerate(rows))
    )


def example_of(path: Path, at: int, row: Any) -> Example:
    """The example in a row of a file.

    Raises:
        UsageError: the row has not just a question and a completion.
        WorkflowError: the completion is not strictly valid.
    """
    if not isinstance(row, dict) or row.keys() != {"question", "completion"}:
        raise UsageError(f"{path}: example {at} needs question and completion, nothing else")
    question, completion = str(row["question"]).strip(), str(row["completion"]).strip()
    checked = analyze(completion, name=f"{path}, example {at}").raise_for_errors()
    assert checked.workflow is not None  # without errors outside recursion there is one
    return Example(question, completion, checked.workflow)
