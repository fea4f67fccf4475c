"""Few-shot examples: sets of questions with workflows, shipped, from a file, or extracted from solved questions.

A set is a TOML file with a `name` and `[[examples]]` tables of `question` and `completion`, and perhaps `shorter`: a
completion of fewer steps, for a lower step limit. Each has to be valid in the strict profile: a Conductor learns the
format from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from wfdsl.api import analyze
from wfdsl.errors import UsageError
from wfdsl.graph import graph_of
from wfdsl.language.check import AccessScheme
from wfdsl.language.completion import print_completion
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow
from wfdsl.settings import read_toml_file

SHIPPED: Final = Path(__file__).parent / "examples"
_NEEDED: Final = {"question", "completion"}
_MENTION: Final = re.compile(r"\b(?:models?|workers?)\s+#?\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Example:
    """A question, and what a good Conductor wrote."""

    question: str
    completion: str
    """The whole completion, reasoning included."""
    workflow: Workflow
    prose: str = ""
    """What the completion says before its lists."""
    shorter: Example | None = None
    """The same question in fewer steps."""

    @property
    def lists(self) -> str:
        """The three lists alone."""
        return print_completion(self.workflow).rstrip("\n")

    def fitting(self, indices: Sequence[int], max_steps: int, access: AccessScheme = "lists") -> Example | None:
        """The example, or its shorter form, for these workers and limits; None if neither has so few steps.

        A worker that is not offered is replaced by an offered one that the example does not use; if all are in use, two
        share one. Prose that names a worker by its number ("Model 2") is left out then, and so is an example with such
        a subtask.
        """
        if len(self.workflow) > max_steps:
            return None if self.shorter is None else self.shorter.fitting(indices, max_steps, access)
        if access == "binary" and any(step.access not in ((), ALL) for step in self.workflow):
            return self._with_binary_access().fitting(indices, max_steps)
        chosen = _replacements((step.worker for step in self.workflow if isinstance(step.worker, int)), indices)
        if all(worker == replacement for worker, replacement in chosen.items()):
            return self
        if any(_MENTION.search(step.subtask) for step in self.workflow):
            return None
        steps = (Step(chosen[int(step.worker)], step.subtask, step.access) for step in self.workflow)
        return self._retold(Workflow(tuple(steps)), keeps_prose=_MENTION.search(self.prose) is None)

    def _with_binary_access(self) -> Example:
        """The example with "all" instead of lists of steps, without its prose if that changes what a step sees."""
        steps = (Step(step.worker, step.subtask, ALL if step.access else ()) for step in self.workflow)
        same = all(step.access in ((), ALL, tuple(range(at))) for at, step in enumerate(self.workflow))
        return self._retold(Workflow(tuple(steps)), keeps_prose=same)

    def _retold(self, workflow: Workflow, *, keeps_prose: bool) -> Example:
        prose = self.prose if keeps_prose else ""
        return Example(self.question, prose + print_completion(workflow).rstrip("\n"), workflow, prose, self.shorter)


def _replacements(workers: Iterable[int], indices: Sequence[int]) -> dict[int, int]:
    """The offered worker that replaces each worker of an example."""
    named = dict.fromkeys(workers)
    chosen = {worker: worker for worker in named if worker in indices}
    free = iter([index for index in indices if index not in chosen])
    for worker in named:
        if worker not in chosen:
            chosen[worker] = next(free, indices[worker % len(indices)])
    return chosen


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
    tables = read_toml(path, "examples", ("none", *shipped_sets()))
    rows = tables.get("examples")
    if tables.keys() - {"name", "examples"} or not isinstance(rows, list) or not rows:
        raise UsageError(f"{path}: a set of examples has a name and [[examples]] tables, nothing else")
    examples = tuple(example_of(path, at, row) for at, row in enumerate(rows))
    return ExampleSet(str(tables.get("name", path.stem)), examples)


def read_toml(path: Path, what: str, shipped: tuple[str, ...]) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        UsageError: it cannot be read; the message names what is shipped.
    """
    if not path.exists():
        raise UsageError(f"no {what} {str(path)!r}: name a file, or one of {', '.join(shipped)}")
    return read_toml_file(path, f"{what} file")


def example_of(path: Path, at: int, row: Any) -> Example:
    """The example in a row of a file.

    Raises:
        UsageError: the row has something else than a question and completions, or the shorter one is not shorter.
        WorkflowError: a completion is not strictly valid.
    """
    if not isinstance(row, dict) or not _NEEDED <= row.keys() <= _NEEDED | {"shorter"}:
        raise UsageError(f"{path}: example {at} needs question and completion, and may have shorter, nothing else")
    question = str(row["question"]).strip()
    shorter = row.get("shorter")
    short = None if shorter is None else example_from(question, str(shorter), f"{path}, example {at}, shorter")
    example = replace(example_from(question, str(row["completion"]), f"{path}, example {at}"), shorter=short)
    if short is not None and len(short.workflow) >= len(example.workflow):
        raise UsageError(f"{path}: example {at}: shorter has to have fewer steps than completion")
    return example


def example_from(question: str, completion: str, name: str = "completion") -> Example:
    """The example that a completion makes; `name` is what errors call it.

    Raises:
        WorkflowError: the completion is not strictly valid.
    """
    completion = completion.strip()
    checked = analyze(completion, max_steps=None, name=name).raise_for_errors()
    assert checked.workflow is not None  # without errors outside recursion there is one
    assert checked.tree is not None  # as there is a workflow
    prose = completion[: completion.rfind("model_id", 0, checked.tree.workers[0].start)]
    return Example(question, completion, checked.workflow, prose)


def row_of(example: Example) -> dict[str, str]:
    """The row of a file that `example_of` reads."""
    row = {"question": example.question, "completion": example.completion}
    return row if example.shorter is None else {**row, "shorter": example.shorter.completion}


def extract_examples(rows: Iterable[dict[str, Any]], *, right: str = "right", most: int = 4) -> list[Example]:
    """Examples from solved questions: the first of each topology among the rows whose field `right` is true.

    A row is a line that `wfdsl solve --out` wrote, to which a grader has added whether the answer is right. At most
    `most` examples are made. The completion that gave the answer counts, if it is strictly valid: an example teaches
    the format. A revision that builds on the previous answer is left out.
    """
    found: dict[str, Example] = {}
    for row in rows:
        example = _solved_example(row) if row.get(right) is True else None
        if example is not None and len(found) < most:
            found.setdefault(graph_of(example.workflow).topology, example)
    return list(found.values())


def to_toml(name: str, examples: Iterable[Example]) -> str:
    """A set of examples as the file that `conductor.examples` names."""
    parts = [f"name = {json.dumps(name, ensure_ascii=False)}"]
    for example in examples:
        parts += ["", "[[examples]]", *(f"{name} = {_toml_text(text)}" for name, text in row_of(example).items())]
    return "\n".join(parts) + "\n"


def _solved_example(row: dict[str, Any]) -> Example | None:
    """The workflow that gave a row's answer, as an example; None if it cannot stand alone, or is not strictly valid.

    Of a revision only the lists are kept: what it says about the previous answer makes no sense without it.
    """
    ran = [each for each in row.get("rounds", []) if str(each.get("result", "")).startswith("ran")]
    if not ran or ran[-1]["result"] != "ran":
        return None
    completion = str(ran[-1]["completions"][-1]["text"])
    workflow = analyze(completion, max_steps=None).workflow
    if workflow is None:
        return None
    if len(ran) > 1:
        if any(step.access == ALL for step in workflow):
            return None  # such a step was shown the previous answer
        completion = print_completion(workflow)
    return example_from(str(row["question"]).strip(), completion)


def _toml_text(text: str) -> str:
    """A TOML string; over several lines where TOML can hold the text as it is."""
    if "'''" in text or text.endswith("'") or not all(char.isprintable() or char == "\n" for char in text):
        return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"'''\n{text}'''"
