"""The tree that both forms of the language are read into: values with the places where they were written.

A tree may have every error that the checker knows about. A `Workflow` is made from a tree without errors.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from wfdsl.language.source import Span

ALL: Literal["all"] = "all"


class Node(NamedTuple):
    """A worker (its index, or the text that names it while no pool resolves it) or a subtask."""

    value: int | str
    start: int
    end: int


class AccessNode(NamedTuple):
    """An access entry: "all", or the indices one by one, each with its own place."""

    value: Literal["all"] | tuple[tuple[int, int, int], ...]
    """`"all"`, or `(index, start, end)` for each index as written, repeats included."""
    start: int
    end: int
    beside: tuple[tuple[int, int, int], ...] = ()
    """Indices written beside "all": they add nothing, and still have to be right."""
    known: bool = True
    """Whether all of it could be read; what has an error of its own is left out."""

    @property
    def indices(self) -> tuple[tuple[int, int, int], ...]:
        """The indices as written, with their places; none for a plain "all"."""
        return self.beside if self.value == ALL else self.value


class WorkflowTree(NamedTuple):
    """Three columns: step i is `workers[i]`, `subtasks[i]`, `access[i]`. In a wrong tree their lengths differ.

    `depths` gives Conductor nodes their own recursion depth; `names` and what follows belong to `.wf` files.
    """

    workers: tuple[Node, ...]
    subtasks: tuple[Node, ...]
    access: tuple[AccessNode, ...]
    span: Span
    depths: tuple[int | None, ...] | None = None
    settings: tuple[tuple[float | None, int | None], ...] | None = None
    """The temperature and the most tokens of each step, where a `.wf` file gives them."""
    names: tuple[str, ...] | None = None
    title: str = ""
    description: str = ""
    joined: Span | None = None
    """The first subtask of a completion that is written as several neighbouring strings."""

    @property
    def columns(self) -> dict[str, tuple[Node, ...] | tuple[AccessNode, ...]]:
        """The columns by the labels that they have in a completion."""
        return {"model_id": self.workers, "subtasks": self.subtasks, "access_list": self.access}


Worker: TypeAlias = int | str
Access: TypeAlias = Literal["all"] | tuple[int, ...]
