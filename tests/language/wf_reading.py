"""What the tests of workflow files share: reading a text all the way, and all that was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wfdsl.language.check import CheckConfig, check
from wfdsl.language.diagnostics import Diagnostic, in_order
from wfdsl.language.file_expansion import expand
from wfdsl.language.file_reader import read_workflow_file
from wfdsl.language.file_tree import FileTree
from wfdsl.language.source import Source
from wfdsl.language.tree import WorkflowTree
from wfdsl.language.workflow import Workflow


@dataclass(frozen=True)
class ToyPool:
    """The least that workflow files ask of a pool."""

    names: tuple[str, ...] = ("planner", "solver", "verifier", "boss")
    tags: tuple[tuple[str, ...], ...] = (("small",), ("small", "strong"), ("strong", "odd tag"), ())
    bosses: tuple[int, ...] = (3,)

    @property
    def indices(self) -> tuple[int, ...]:
        return tuple(range(len(self.names)))

    @property
    def conductors(self) -> tuple[int, ...]:
        return self.bosses

    def find(self, name: str) -> int | None:
        return self.names.index(name) if name in self.names else None

    def tagged(self, tag: str) -> tuple[int, ...]:
        return tuple(index for index, tags in enumerate(self.tags) if tag in tags)


def file_tree(text: str) -> FileTree:
    """The tree of a text without syntax errors."""
    tree, found = read_workflow_file(Source(text, "test.wf"))
    assert not found
    return tree


def read(
    text: str, params: Mapping[str, str] | None = None, pool: ToyPool | None = None
) -> tuple[WorkflowTree | None, tuple[Diagnostic, ...]]:
    """The steps of a text, and all that is wrong with it."""
    tree, found = read_workflow_file(Source(text, "test.wf"))
    steps, more = expand(tree, params=params, pool=pool)
    checks = check(steps, CheckConfig(max_steps=None)) if steps else []
    return steps, in_order([*found, *more, *checks])


def workflow(text: str, params: Mapping[str, str] | None = None, pool: ToyPool | None = None) -> Workflow:
    """What a text without errors means."""
    steps, found = read(text, params, pool)
    assert steps is not None
    assert not [problem for problem in found if problem.is_error]
    return Workflow.from_tree(steps)


def codes(text: str, params: Mapping[str, str] | None = None, pool: ToyPool | None = None) -> list[str]:
    """The codes of all that is wrong, in the order of the text."""
    return [problem.code for problem in read(text, params, pool)[1]]
