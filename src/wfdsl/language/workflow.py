"""Workflows: steps in order, each with a worker, a subtask and what it sees. No places.

Workflows are immutable values. Two are equal if workers, subtasks, access, depths and settings are; names do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wfdsl.language.check import CheckConfig, check, empty_workflow
from wfdsl.language.diagnostics import NOWHERE, Diagnostic, WorkflowError
from wfdsl.language.literals import MOST_DIGITS
from wfdsl.language.tree import ALL, Access, AccessNode, Node, Worker, WorkflowTree
from wfdsl.render.notebook import Drawn

_SHOWN_WORKERS = 8  # in the short form; our choice


@dataclass(frozen=True, slots=True)
class Step:
    """One call of one worker. Source: arXiv 2512.04388, section 3 (a step is a subtask, a worker, an access list)."""

    worker: Worker
    """The worker's index in the pool; a text while no pool has resolved a name or tag (`.wf` files only)."""
    subtask: str
    """What the worker is asked; contains at least one character that is not white space."""
    access: Access = ()
    """`"all"`, or the sorted indices of the earlier steps that it sees."""
    depth: int | None = None
    """The recursion depth that a Conductor node may use, where the writer gave one."""
    temperature: float | None = None
    """The temperature of the step's calls; None: the worker's own."""
    max_tokens: int | None = None
    """The most tokens of the step's response; None: the worker's own."""

    @property
    def settings(self) -> dict[str, Any]:
        """What the step's calls are given instead of the worker's own settings."""
        own = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return {name: value for name, value in own.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Labels:
    """What a workflow file calls a workflow and its steps. Pictures show it; nothing else depends on it."""

    names: tuple[str, ...] | None = None
    """The steps' names."""
    title: str = ""
    description: str = ""
    workers: Mapping[int, str] = field(default_factory=dict)
    """The names of the pool's workers, if it was read for a pool."""


@dataclass(frozen=True, slots=True, repr=False)
class Workflow(Drawn):
    """Steps in order; the last one's response is the answer."""

    steps: tuple[Step, ...]
    """The steps, in order."""
    labels: Labels | None = field(default=None, compare=False)
    """What its file calls things; None for a workflow that is not from a file."""

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        workers = ", ".join(str(step.worker) for step in self.steps[:_SHOWN_WORKERS])
        more = ", ..." if len(self) > _SHOWN_WORKERS else ""
        return f"Workflow({len(self)} step{'' if len(self) == 1 else 's'} by {workers}{more})"

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __getitem__(self, index: int) -> Step:
        return self.steps[index]

    def sees(self, step: int) -> tuple[int, ...]:
        """The indices of the earlier steps whose subtask and response this step is shown, ascending."""
        access = self.steps[step].access
        return tuple(range(step % len(self.steps))) if access == ALL else access

    @property
    def unresolved(self) -> tuple[str, ...]:
        """The workers that only a pool can resolve, as they were written; empty for a workflow that can run."""
        return tuple(dict.fromkeys(step.worker for step in self.steps if isinstance(step.worker, str)))

    def to_lists(self) -> dict[str, list[Any]]:
        """The three lists of the completion form; access entries are `"all"` or sorted indices.

        Raises:
            WorkflowError: a worker is not resolved, or a step has a depth or settings, which lists cannot say.
        """
        _refuse_unlistable(self)
        return {
            "model_id": [step.worker for step in self.steps],
            "subtasks": [step.subtask for step in self.steps],
            "access_list": [ALL if step.access == ALL else list(step.access) for step in self.steps],
        }

    @classmethod
    def from_lists(
        cls, model_id: Sequence[int], subtasks: Sequence[str], access_list: Sequence[str | Iterable[int | str]]
    ) -> Workflow:
        """Build a workflow from the three lists, checked like a completion.

        Raises:
            WorkflowError: the lists are not a valid workflow.
        """
        found: list[Diagnostic] = []
        workers = tuple(_worker_node(value, step, found) for step, value in enumerate(model_id))
        texts = tuple(_subtask_node(value, step, found) for step, value in enumerate(subtasks))
        access = tuple(_access_node(value, step, found) for step, value in enumerate(access_list))
        if not workers and not texts and not access:
            raise WorkflowError([empty_workflow(NOWHERE)])
        tree = WorkflowTree(workers, texts, access, NOWHERE)
        found += [problem for problem in check(tree, CheckConfig(max_steps=None)) if problem.is_error]
        if found:
            raise WorkflowError(found)
        return cls.from_tree(tree)

    @classmethod
    def from_tree(cls, tree: WorkflowTree, workers: Mapping[int, str] | None = None) -> Workflow:
        """The workflow that a tree without errors means; `workers` are names for pictures."""
        labels = None
        if tree.names is not None:
            labels = Labels(tree.names, tree.title, tree.description, workers or {})
        depths = tree.depths or (None,) * len(tree.workers)
        settings = tree.settings or ((None, None),) * len(tree.workers)
        columns = zip(tree.workers, tree.subtasks, tree.access, depths, settings, strict=True)
        return cls(
            tuple(
                Step(worker.value, str(subtask.value), _access(entry), depth, *own)
                for worker, subtask, entry, depth, own in columns
            ),
            labels,
        )


def _access(entry: AccessNode) -> Access:
    return ALL if entry.value == ALL else tuple(sorted({index for index, _, _ in entry.value}))


def _worker_node(value: Any, step: int, found: list[Diagnostic]) -> Node:
    if not _is_integer(value):
        found.append(_wrong_type("worker-type", f"the worker of step {step}", value, "an integer"))
        return Node(0, 0, 0)
    if abs(value) >= 10**MOST_DIGITS:
        found.append(Diagnostic("number-too-large", "error", f"the worker of step {step} has too many digits", NOWHERE))
        return Node(0, 0, 0)
    return Node(value, 0, 0)


def _subtask_node(value: Any, step: int, found: list[Diagnostic]) -> Node:
    if not isinstance(value, str):
        found.append(_wrong_type("subtask-type", f"the subtask of step {step}", value, "a string"))
        return Node("-", 0, 0)
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        message = f"the subtask of step {step} contains half of a surrogate pair, which is not a character"
        found.append(Diagnostic("lone-surrogate", "error", message, NOWHERE, help="give the character itself"))
    return Node(value, 0, 0)


def _access_node(value: Any, step: int, found: list[Diagnostic]) -> AccessNode:
    if isinstance(value, str):
        entry: Any = (value,)
    else:
        entry = tuple(value) if isinstance(value, list | tuple | set | frozenset | range) else (value, None)
    if len(entry) == 1 and isinstance(entry[0], str) and entry[0].lower() == ALL:
        return AccessNode(ALL, 0, 0)
    if not all(_is_integer(index) for index in entry):
        wanted = '"all" or a list of integers'
        found.append(_wrong_type("access-type", f"the access entry of step {step}", value, wanted))
        return AccessNode((), 0, 0)
    return AccessNode(tuple((index, 0, 0) for index in entry), 0, 0)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _wrong_type(code: str, what: str, value: Any, wanted: str) -> Diagnostic:
    return Diagnostic(code, "error", f"{what} is {value!r:.60}, not {wanted}", NOWHERE, help=f"give {wanted}")


def _refuse_unlistable(workflow: Workflow) -> None:
    """Raise what keeps a workflow from being written as three lists.

    Raises:
        WorkflowError: a worker is not resolved, or a step has a depth or settings of its own.
    """
    found: list[Diagnostic] = []
    if workflow.unresolved:
        message = f"only a pool knows {', '.join(f'`{worker}`' for worker in workflow.unresolved)}"
        help_ = "give one: `--pool NAME|FILE`, `pool=`"
        found.append(Diagnostic("pool-needed", "error", message, NOWHERE, help=help_))
    for index, step in enumerate(workflow):
        if step.depth is not None:
            message = f"step {index} has a recursion depth of its own, which three lists cannot say"
            help_ = "print it as a workflow file, or leave the depth to the run's settings"
            found.append(Diagnostic("depth-unlisted", "error", message, NOWHERE, help=help_))
        if step.settings:
            message = f"step {index} has {' and '.join(step.settings)} of its own, which three lists cannot say"
            help_ = "print it as a workflow file, or leave the settings to the pool"
            found.append(Diagnostic("settings-unlisted", "error", message, NOWHERE, help=help_))
    if found:
        raise WorkflowError(found)
