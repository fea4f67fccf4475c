"""Hypothesis strategies: workflows, the texts that mean them, and texts that almost do."""

from __future__ import annotations

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError("the strategies of wfdsl.testing draw with hypothesis: pip install hypothesis") from error

from random import Random
from typing import Any

from hypothesis.strategies import DrawFn, SearchStrategy

from wfdsl.api import analyze, dumps
from wfdsl.graph import to_dag
from wfdsl.language.check import live_steps
from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.testing.completion_writer import ALWAYS_POSSIBLE, SOMETIMES_POSSIBLE, Written, write_completion
from wfdsl.testing.file_writer import write_file
from wfdsl.testing.generators import Choices, mutated

# Hypothesis times each example: what the package loads when it is first needed is loaded before the first of them.
_ONE_STEP = Workflow.from_lists([0], ["x"], [[]])
to_dag(_ONE_STEP)
analyze(dumps(_ONE_STEP))
analyze(dumps(_ONE_STEP, "wf"), form="wf")

_FRAGMENTS = (
    "Plan it.", "Don't guess.", '"', "'", "\\", "\n", "\r\n", "\t", "{x}", "[0]", "#", "“", "’s", "\ufffd",
    "model_id = [1]", "access_list: [", "</think>", "\\n", "\\/", "'''", '"""', "😀", "漢", "\x00", "\u2028",
    "all", "{{",
)  # fmt: skip


def workflows(
    *, pool_size: int = 7, max_steps: int = 5, min_steps: int = 1, dead_steps: bool = True
) -> SearchStrategy[Workflow]:
    """Valid workflows, of every topology.

    Args:
        pool_size: workers are drawn from 0 to `pool_size - 1`.
        max_steps: the most steps. Source of the default: arXiv 2512.04388, section 4.
        min_steps: the fewest steps, at least 1.
        dead_steps: whether steps may be drawn that cannot affect the answer.
    """
    if pool_size < 1 or not 1 <= min_steps <= max_steps:
        raise ValueError("workflows need pool_size >= 1 and 1 <= min_steps <= max_steps")
    return _workflows(pool_size, min_steps, max_steps, dead_steps)


def completions(
    workflow: Workflow | SearchStrategy[Workflow] | None = None, *, surroundings: bool = True
) -> SearchStrategy[Written]:
    """Completions that the strict profile reads as the workflow that comes with them.

    They differ in style (assignments, annotations, dicts, JSON, Markdown), order, quoting, escapes and layout. With
    `surroundings`, prose, drafts, reasoning tags and mentions surround the lists.

    Args:
        workflow: what the texts mean: a workflow, or a strategy; without it, any.
        surroundings: whether anything surrounds the lists.
    """
    return _written(_choices(), workflow, surroundings=surroundings).filter(_is_clear)


def _is_clear(written: Written) -> bool:
    """Whether no two overlapping readings of a text differ, as those of a draft and an answer may."""
    return "lists-ambiguous" not in {found.code for found in analyze(written.text).diagnostics}


def repairable_completions(
    workflow: Workflow | SearchStrategy[Workflow] | None = None, *, surroundings: bool = True
) -> SearchStrategy[Written]:
    """Completions that the strict profile rejects and the lenient one reads as the workflow that comes with them.

    `repairs` of what is drawn holds the codes of the repairs that the text needs. Arguments as for `completions`.
    """
    some, others = st.sets(st.sampled_from(ALWAYS_POSSIBLE), min_size=1), st.sets(st.sampled_from(SOMETIMES_POSSIBLE))
    return _written(_choices(st.builds(set.union, some, others)), workflow, surroundings=surroundings)


def near_misses(texts: SearchStrategy[str] | None = None) -> SearchStrategy[str]:
    """Mutated texts; most are no longer a valid workflow, some still are.

    Args:
        texts: the texts that are mutated; without it, completions of all kinds.
    """
    if texts is None:
        texts = st.one_of(completions(), repairable_completions()).map(lambda written: written.text)
    return st.builds(mutated, _choices(), texts)


def workflow_files(workflow: Workflow | SearchStrategy[Workflow] | None = None) -> SearchStrategy[Written]:
    """Workflow files (`.wf`) that mean the workflow that comes with them.

    They differ in names, layout, comments, clause order, quoting, and in whether copies are written as such.

    Args:
        workflow: what the texts mean: a workflow, or a strategy; without it, any.
    """
    return st.builds(write_file, _choices(), _strategy(workflow))


def random_sources() -> SearchStrategy[Random]:
    """What a `Choices` draws from."""
    return st.randoms(use_true_random=False)


def subtask_texts() -> SearchStrategy[str]:
    """Subtasks: any text that is not blank and can be encoded."""
    chars = st.characters(exclude_categories=["Cs"])
    pieces = st.lists(st.one_of(st.sampled_from(_FRAGMENTS), st.text(chars, max_size=8)), min_size=1, max_size=4)
    return pieces.map("".join).filter(lambda text: bool(text.strip()))


def _written(
    choices: SearchStrategy[Choices], workflow: Workflow | SearchStrategy[Workflow] | None, *, surroundings: bool
) -> SearchStrategy[Written]:
    return st.builds(write_completion, choices, _strategy(workflow), surroundings=st.just(surroundings))


def _choices(*repairs: SearchStrategy[Any]) -> SearchStrategy[Choices]:
    return st.builds(Choices, random_sources(), *repairs)


def _strategy(workflow: Workflow | SearchStrategy[Workflow] | None) -> SearchStrategy[Workflow]:
    if workflow is None:
        return workflows()
    return st.just(workflow) if isinstance(workflow, Workflow) else workflow


@st.composite
def _workflows(draw: DrawFn, pool_size: int, min_steps: int, max_steps: int, dead_steps: bool) -> Workflow:  # noqa: FBT001
    count = draw(st.integers(min_steps, max_steps))
    access = [draw(_accesses(step)) for step in range(count)]
    if not dead_steps:
        _make_live(access)
    workers = st.integers(0, pool_size - 1)
    return Workflow(tuple(Step(draw(workers), draw(subtask_texts()), entry) for entry in access))


def _accesses(step: int) -> SearchStrategy[Access]:
    earlier: SearchStrategy[Access] = st.just(())
    if step:
        earlier = st.sets(st.integers(0, step - 1)).map(lambda indices: tuple(sorted(indices)))
    return st.one_of(earlier, st.just(ALL))


def _make_live(access: list[Access]) -> None:
    """Let the last step see every step that would be dead."""
    last = len(access) - 1
    if access[last] == ALL:
        return
    live = live_steps([range(step) if entry == ALL else entry for step, entry in enumerate(access)])
    access[last] = tuple(sorted({*access[last], *(set(range(last)) - live)}))
