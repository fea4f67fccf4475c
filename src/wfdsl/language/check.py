"""Every static rule of the language, one function each, over the tree that both forms are read into.

A rule looks at the whole tree and yields all that breaks it. Nothing here depends on how a workflow was written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from wfdsl.errors import UsageError
from wfdsl.language.diagnostics import MOST_SHOWN, Diagnostic, more_of_the_same
from wfdsl.language.source import Span
from wfdsl.language.tree import ALL, AccessNode, WorkflowTree
from wfdsl.settings import Table, option

DEFAULT_MAX_STEPS = 5  # arXiv 2512.04388, section 4: at most five steps
MAX_CHARS = 1 << 20  # characters of a text that is read; our choice
Profile: TypeAlias = Literal["strict", "lenient"]
AccessScheme: TypeAlias = Literal["lists", "binary"]


@runtime_checkable
class PoolShape(Protocol):
    """What the checker asks of a pool: which workers it has, and which of them are Conductors."""

    @property
    def indices(self) -> Sequence[int]:
        """The indices of the workers that a workflow may use."""
        ...

    @property
    def conductors(self) -> Collection[int]:
        """The workers that are Conductors."""
        ...


@runtime_checkable
class PoolLike(PoolShape, Protocol):
    """What workflow files ask of a pool besides: names and tags."""

    @property
    def names(self) -> Sequence[str]:
        """The workers' names, in the order of their indices."""
        ...

    @property
    def conductors(self) -> Sequence[int]:
        """The indices of workers that are Conductors themselves."""
        ...

    def find(self, name: str) -> int | None:
        """The index of the worker of this name."""
        ...

    def tagged(self, tag: str) -> Sequence[int]:
        """The indices of the workers with this tag, ascending."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConfig(Table):
    """What a text is checked against. `analyze`, `parse` and `load` take the same options as keyword arguments."""

    pool: PoolShape | Collection[int] | int | None = None
    """The pool of workers, its size, or the indices of its workers; None: any worker from 0 is allowed."""
    max_steps: int | None = option(
        DEFAULT_MAX_STEPS,
        "the most steps",
        "--max-steps",
        default_text="5 for completions, no limit for workflow files",
        ge=1,
    )
    profile: Profile = option(
        "strict",
        "whether a repair of a completion is an error (strict, as in training) or a warning (lenient)",
        "--profile",
    )
    recursion: bool = option(
        False, "read as a later round than the first: three empty lists keep the previous response", "--recursion"
    )
    access: AccessScheme = option(
        "lists", "what an access entry may be: also a list of earlier steps, or only [] and all (binary)", "--access"
    )
    """Source: arXiv 2512.04388, whose main results are under the binary scheme; lists are its ablation."""
    max_chars: int = option(MAX_CHARS, "the longest text that is read, in characters", ge=1)
    depth_left: int | None = option(
        None, "the levels of recursion that are left for Conductor nodes; None: not known", ge=0
    )
    marked: bool = option(
        False, "the completion was written under a grammar with `max_reasoning`: the lists follow its marker line"
    )

    def __post_init__(self) -> None:
        """Raise `UsageError` if an option has the wrong type or is outside its config."""
        Table.__post_init__(self)
        if self.pool is not None and type(self.pool) is not int and not hasattr(self.pool, "indices"):
            _require_indices(self.pool)

    @property
    def workers(self) -> Collection[int] | None:
        """The indices of the workers that a workflow may use; None: any from 0."""
        if self.pool is None or isinstance(self.pool, int):
            return self.pool if self.pool is None else range(self.pool)
        indices: Collection[int] = getattr(self.pool, "indices", self.pool)  # type: ignore[arg-type]  # a pool or indices
        return tuple(indices)

    @property
    def conductors(self) -> Collection[int]:
        """The indices of the workers that are Conductors."""
        return frozenset(getattr(self.pool, "conductors", ()))


def _require_indices(pool: Any) -> None:
    is_collection = isinstance(pool, Collection) and not isinstance(pool, str | bytes)
    if not is_collection or not all(type(index) is int and index >= 0 for index in pool):
        raise UsageError(
            f"pool must be a Pool, the number of its workers, or a list of their indices (got {pool!r}); "
            "wfdsl.Pool.load finds a pool by its name"
        )


def check(tree: WorkflowTree, config: CheckConfig) -> list[Diagnostic]:
    """All that is wrong with a tree."""
    unequal = _lengths_differ(tree)
    return [*check_columns(tree, config), *(_first(_dead(tree)) if unequal is None else [unequal])]


def check_columns(tree: WorkflowTree, config: CheckConfig) -> list[Diagnostic]:
    """What is wrong with each column by itself, whether or not they fit together."""
    return [
        *_first(_too_many_steps(tree, config)),
        *_first(_not_in_pool(tree, config)),
        *_first(_blank(tree)),
        *_first(_not_earlier(tree)),
        *_first(_not_binary(tree, config)),
        *_first(_repeated(tree, config)),
        *_first(_too_deep(tree, config)),
    ]


def _first(found: Iterator[Diagnostic]) -> Iterator[Diagnostic]:
    yield from islice(found, MOST_SHOWN)
    for more in found:
        yield more_of_the_same(more.code, more.span)
        return


def _lengths_differ(tree: WorkflowTree) -> Diagnostic | None:
    """Whether the three lists cannot be read as steps at all."""
    lengths = {label: len(column) for label, column in tree.columns.items()}
    if len(set(lengths.values())) == 1:
        return None
    counted = ", ".join(f"{label} has {count}" for label, count in lengths.items())
    message = f"the lists differ in length: {counted}"
    if tree.joined and len(tree.subtasks) < len(tree.workers):
        label, help_ = "without a comma between them, these strings are one item", "put a comma between the strings"
        return Diagnostic("lengths-differ", "error", message, tree.joined, label, help_)
    help_ = "write one item per step in each of the lists"
    count = len(tree.workers)
    if len(tree.access) < len(tree.subtasks) == count <= DEFAULT_MAX_STEPS:
        entries = ["[]", *(f"[{step}]" for step in range(count - 1))]
        help_ = f"write one access entry per step, such as `[{', '.join(entries)}]`; `[]` sees nothing"
    return Diagnostic("lengths-differ", "error", message, tree.span, help=help_)


def empty_workflow(span: Span) -> Diagnostic:
    """Three empty lists where there is no previous response to return."""
    return Diagnostic(
        "empty-workflow",
        "error",
        "the workflow has no steps",
        span,
        help="three empty lists keep the previous response, which does not exist in the first round",
    )


def live_steps(sees: Sequence[Sequence[int]]) -> set[int]:
    """The steps from which a path of access entries leads to the last one; `sees[i]` holds what step i sees."""
    live = {len(sees) - 1} if sees else set()
    for step in range(len(sees) - 1, 0, -1):
        if step in live:
            live.update(sees[step])
    return live


def _too_many_steps(tree: WorkflowTree, config: CheckConfig) -> Iterator[Diagnostic]:
    count = len(tree.workers)
    if config.max_steps is not None and count > config.max_steps:
        first = tree.workers[config.max_steps]
        message = f"the workflow has {count} steps, and at most {config.max_steps} are allowed"
        label = f"step {config.max_steps} is the first beyond the limit"
        yield Diagnostic("too-many-steps", "error", message, Span(first.start, first.end), label, "use fewer steps")


def _not_in_pool(tree: WorkflowTree, config: CheckConfig) -> Iterator[Diagnostic]:
    workers = config.workers
    for worker in tree.workers:
        index = worker.value
        if isinstance(index, int) and (index < 0 or (workers is not None and index not in workers)):
            span = Span(worker.start, worker.end)
            yield Diagnostic(
                "worker-not-in-pool",
                "error",
                f"there is no worker {index} in the pool",
                span,
                help=_workers_help(workers),
            )


def _workers_help(workers: Collection[int] | None) -> str:
    if workers is None:
        return "workers are numbered from 0"
    if not workers:
        return "the pool is empty"
    if isinstance(workers, range) or list(workers) == list(range(len(workers))):
        last = len(workers) - 1
        return f"workers are numbered from 0: here 0 to {last}" if last else "the pool has one worker: 0"
    return f"the pool has the workers {', '.join(map(str, sorted(workers)))}"


def _blank(tree: WorkflowTree) -> Iterator[Diagnostic]:
    for step, subtask in enumerate(tree.subtasks):
        if not str(subtask.value).strip():
            yield Diagnostic(
                "subtask-blank",
                "error",
                f"the subtask of step {_called(tree, step)} is empty",
                Span(subtask.start, subtask.end),
                help="write what the worker is asked to do",
            )


def _not_earlier(tree: WorkflowTree) -> Iterator[Diagnostic]:
    for step, entry in enumerate(tree.access):
        for index, start, end in entry.indices:
            if index < 0:
                message = f"step {step} cannot see step {index}: steps are numbered from 0"
                yield Diagnostic("access-negative", "error", message, Span(start, end), help=_earlier_help(tree, step))
            elif index >= step:
                other = "itself" if index == step else f"step {_called(tree, index)}"
                message = f"step {_called(tree, step)} cannot see {other}"
                label = _why_not(tree, index, step)
                span = Span(start, end)
                yield Diagnostic("access-not-earlier", "error", message, span, label, _earlier_help(tree, step))


def _not_binary(tree: WorkflowTree, config: CheckConfig) -> Iterator[Diagnostic]:
    if config.access != "binary":
        return
    for step, entry in enumerate(tree.access):
        if entry.indices:
            message = f"step {_called(tree, step)} sees a list of steps, and only none or all is allowed"
            first, last = entry.indices[0], entry.indices[-1]
            help_ = 'write `[]` to show no earlier step, or "all" to show every one'
            yield Diagnostic("access-not-binary", "error", message, Span(first[1], last[2]), help=help_)


def _called(tree: WorkflowTree, step: int) -> str:
    """What messages call a step: its name where it has one."""
    return f"`{tree.names[step]}`" if tree.names and step < len(tree.names) else str(step)


def _why_not(tree: WorkflowTree, index: int, step: int) -> str:
    if index == step:
        return f"this is step {_called(tree, step)} itself"
    if index >= len(tree.access):
        return f"there is no step {index}"
    return f"step {_called(tree, index)} runs after step {_called(tree, step)}"


def _earlier_help(tree: WorkflowTree, step: int) -> str:
    if tree.names:
        return "a step sees only the steps before it: move this step after them, or remove the name"
    if step == 0:
        return "the first step sees nothing: `[]`"
    one = "`0`" if step == 1 else f"0 to {step - 1}"
    return f'a step sees only earlier steps: here {one}, or "all" for every one of them'


def _repeated(tree: WorkflowTree, config: CheckConfig) -> Iterator[Diagnostic]:
    for step, entry in enumerate(tree.access):
        if entry.value == ALL:
            if step == 0 and not config.recursion:
                message = 'the first step sees "all", which is nothing'
                span = Span(entry.start, entry.end)
                yield Diagnostic("all-at-first-step", "note", message, span, help=_nothing_help(tree))
            continue
        seen: set[int] = set()
        for index, start, end in entry.value:
            if index in seen:
                message = f"step {_called(tree, step)} names step {_called(tree, index)} again"
                span = Span(start, end)
                yield Diagnostic("access-repeated", "note", message, span, help="name each step once")
            seen.add(index)


def _nothing_help(tree: WorkflowTree) -> str:
    written = "leaving `sees all` out" if tree.names else "`[]`"
    return f"{written} says the same in a first round"


def _too_deep(tree: WorkflowTree, config: CheckConfig) -> Iterator[Diagnostic]:
    if config.depth_left is None or config.depth_left > 0:
        return
    conductors = config.conductors
    for step, worker in enumerate(tree.workers):
        if worker.value in conductors or (tree.depths is not None and tree.depths[step] is not None):
            yield Diagnostic(
                "conductor-too-deep",
                "error",
                f"step {_called(tree, step)} calls a Conductor, but no recursion depth is left",
                Span(worker.start, worker.end),
                help="choose a worker that is not a Conductor",
            )


def _dead(tree: WorkflowTree) -> Iterator[Diagnostic]:
    """Dead steps; copies that were written as one step are reported as one. What a wrong entry shows is not known."""
    count = len(tree.access)
    if count < 2 or tree.access[-1].value == ALL:
        return
    for step, entry in enumerate(tree.access):
        if not entry.known or any(not 0 <= index < step for index, _, _ in entry.indices):
            return
    live = live_steps([tuple(_seen(entry, step)) for step, entry in enumerate(tree.access)])
    written: dict[tuple[int, int], list[int]] = {}
    for step, subtask in enumerate(tree.subtasks):
        if step not in live:
            written.setdefault((subtask.start, subtask.end), []).append(step)
    last = _called(tree, count - 1)
    help_ = f"let a later step that leads to the last one (step {last}) see it, or remove it"
    for (start, end), steps in written.items():
        first, more = _called(tree, steps[0]), f" to {_called(tree, steps[-1])}" if len(steps) > 1 else ""
        what = f"step{'s' if more else ''} {first}{more}"
        yield Diagnostic("dead-step", "warning", f"{what} cannot affect the answer", Span(start, end), help=help_)


def _seen(entry: AccessNode, step: int) -> Iterable[int]:
    return range(step) if entry.value == ALL else [index for index, _, _ in entry.value if 0 <= index < step]
