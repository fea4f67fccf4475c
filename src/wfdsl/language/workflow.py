"""What a workflow means: steps in order, each with a worker, a subtask and what it sees. No places, no names.

Workflows are immutable values. Two are equal if workers, subtasks, access and depths are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wfdsl.language.tree import ALL, Access, Worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Step:
    """One call of one worker. Source: arXiv 2512.04388, section 3 (a step is a subtask, a worker, an access list)."""

    worker: Worker
    """The worker's ordinal in the pool; a text while no pool has resolved a name or tag (`.wf` files only)."""
    subtask: str
    """What the worker is asked; holds at least one character that is not white space."""
    access: Access = ()
    """`"all"`, or the sorted indices of the earlier steps that it sees."""
    depth: int | None = None
    """The recursion depth that a Conductor node may use, where the writer gave one."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """Steps in order; the last one's response is the answer."""

    steps: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.steps)

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
            WorkflowError: a worker is not resolved, or a step has a depth of its own, which lists cannot say.
        """
        from wfdsl.language.check import unlistable  # noqa: PLC0415  (the checker builds workflows)

        unlistable(self)
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
            WorkflowError: the lists make no valid workflow.
        """
        from wfdsl.language.check import workflow_from_lists  # noqa: PLC0415  (the checker builds workflows)

        return workflow_from_lists(model_id, subtasks, access_list)

    def _repr_svg_(self) -> str:
        from wfdsl.render.svg import to_svg  # noqa: PLC0415  (only notebooks draw)

        return to_svg(self)
