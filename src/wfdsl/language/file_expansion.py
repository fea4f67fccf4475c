"""Workflow files expanded: from statements to steps, in the same tree that completions are read into.

Copies and chains are written out, names become indices, parameters and workers values. What is wrong is reported and
replaced by something harmless, so that the checker can look at the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import NamedTuple, TypeAlias, TypeGuard

from wfdsl.language.check import PoolLike
from wfdsl.language.diagnostics import Diagnostic, Suggestions
from wfdsl.language.file_resolution import Params, Workers
from wfdsl.language.file_tree import (
    WORKER_CLAUSES,
    Broken,
    Clause,
    FileTree,
    Heading,
    Operand,
    Statement,
    StepStatement,
    Text,
)
from wfdsl.language.source import Span
from wfdsl.language.tree import ALL, AccessNode, Node, WorkflowTree

MOST_TOKENS = 1_000_000  # of a response; our choice
HOTTEST = 2  # the highest temperature that a pool's entry may have
MOST_COPIES = 1000  # of one step, and levels of a depth; our choice
MOST_COPIES_IN_ALL = 10_000  # beyond one per step, so that a short file cannot fill the memory; our choice
MOST_ACCESS_ENTRIES = 1_000_000  # entries of all access lists together; our choice


def expand(
    tree: FileTree, *, params: Mapping[str, str | float] | None = None, pool: PoolLike | None = None
) -> tuple[WorkflowTree | None, list[Diagnostic]]:
    """The steps of a workflow file, and what is wrong with them; None if it has none.

    Args:
        tree: the file. Statements that broke off are steps that nothing is said about.
        params: values for its parameters.
        pool: what names and tags are looked up in; without one, such workers stay texts.

    Raises:
        UsageError: a value for a parameter that the file does not have, or of the wrong type.
    """
    found: list[Diagnostic] = []
    expansion = _Expansion(tree, Params(tree, params or {}, found), pool, found)
    return expansion.tree(), found


_Settings: TypeAlias = tuple[float | None, int | None]


class _Group(NamedTuple):
    """A step statement and the steps that it expands to."""

    name: Operand
    first: int
    """The index of its first step."""
    workers: list[Node]
    width: int
    """How many steps a layer has: all of them, unless layers are chained."""
    chain: Clause | None
    statement: StepStatement | None
    """None for a statement that broke off."""

    @property
    def indices(self) -> range:
        return range(self.first, self.first + len(self.workers))

    @property
    def resolved(self) -> bool:
        """Whether the number of its steps is known: only a pool says how many `each worker` are."""
        return not any(str(worker.value).startswith("each ") for worker in self.workers)


class _Expansion:
    """One file being expanded."""

    def __init__(self, tree: FileTree, params: Params, pool: PoolLike | None, found: list[Diagnostic]) -> None:
        self._file = tree
        self._params = params
        self._workers = Workers(pool, params, found)
        self._found = found
        self._groups: dict[str, _Group] = {}
        self._suggestions = Suggestions()
        self._copies = 0
        self._entries = 0

    def tree(self) -> WorkflowTree | None:
        groups = self._numbered()
        self._check_headings()
        title, description = self._heading("title"), self._heading("description")
        columns = [column for group in groups for column in self._steps(group)]
        if not any(problem.is_error for problem in self._found):
            self._found.extend(self._params.unused())
        if not columns:
            self._found.extend(self._no_steps())
            return None
        workers, subtasks, access, depths, settings, names = zip(*columns, strict=True)
        span = Span(0, len(self._file.source.text))
        return WorkflowTree(workers, subtasks, access, span, depths, settings, names, title, description)

    def _heading(self, kind: str) -> str:
        """What the title or the description says; empty without one."""
        headings = (part for part in self._file.statements if isinstance(part, Heading) and part.kind == kind)
        first = next(headings, None)
        return self._filled(first.text) if first else ""

    def _no_steps(self) -> Iterator[Diagnostic]:
        if not any(isinstance(statement, Broken) for statement in self._file.statements):
            end = len(self._file.source.text)
            help_ = 'write at least one: `step NAME by WORKER: "..."`'
            yield Diagnostic("no-steps", "error", "the file has no step", Span(end, end), help=help_)

    def _check_headings(self) -> None:
        """Report a second title or description."""
        seen = set()
        for statement in self._file.statements:
            kind = getattr(statement, "kind", "")
            if kind in ("title", "description") and not isinstance(statement, Broken):
                keyword = statement.tokens[0]
                if kind in seen:
                    span = Span(keyword.start, keyword.end)
                    self._error("clause-repeated", f"there is a second {kind}", span, help_="remove one of them")
                seen.add(kind)

    # ---- groups -------------------------------------------------------------------------------------------------

    def _numbered(self) -> list[_Group]:
        groups: list[_Group] = []
        for statement in self._file.statements:
            if isinstance(statement, StepStatement) or _is_broken_step(statement):
                groups.append(self._group(statement, groups[-1].indices.stop if groups else 0))
                if statement.name is not None:
                    self._register(groups[-1])
        return groups

    def _register(self, group: _Group) -> None:
        name = group.name
        span = Span(name.start, name.end)
        if name.value in (ALL, "nothing", "own", "latest"):
            help_ = f"choose another name: `sees {name.value}` has a meaning of its own"
            self._error("name-reserved", f"a step cannot be named `{name.value}`", span, help_=help_)
        elif str(name.value) in self._groups:
            self._error("name-taken", f"there are two steps named `{name.value}`", span, help_="choose another name")
        self._groups.setdefault(str(name.value), group)

    def _group(self, step: StepStatement | Broken, first: int) -> _Group:
        if isinstance(step, Broken):
            name = step.name or Operand("name", "?", step.start, step.end)
            return _Group(name, first, [Node("?", name.start, name.end)], 1, None, None)
        self._check_clauses(step)
        name = step.name
        by, copies, links = step.clause(*WORKER_CLAUSES), step.clause("copies"), step.clause("chain")
        workers = self._workers.of(by) if by else [Node("?", name.start, name.end)]
        each, layers = [1 if clause is None else self._count(clause, MOST_COPIES) for clause in (copies, links)]
        added = len(workers) * each * layers - 1
        if self._copies + added > MOST_COPIES_IN_ALL:
            workers, each, layers, added = workers[:1], 1, 1, 0
            self._too_large(copies or links or by, f"more than {MOST_COPIES_IN_ALL:,} copies")
        self._copies += added
        layer = [worker for worker in workers for _ in range(each)]
        return _Group(name, first, layer * layers, len(layer), links, step)

    def _check_clauses(self, step: StepStatement) -> None:
        seen: dict[str, Clause] = {}
        for clause in step.clauses:
            keyword = clause.tokens[0].text
            if keyword in seen:
                span = Span(clause.start, clause.end)
                help_ = "remove one of them"
                self._error("clause-repeated", f"`{keyword}` is given twice in this step", span, help_=help_)
            seen.setdefault(keyword, clause)
        if "by" not in seen:
            span = Span(step.name.start, step.name.end)
            help_ = "write `by` with a worker index, a name, `tag NAME`, `each worker` or `conductor`"
            self._error("clause-missing", f"step `{step.name.value}` has no worker", span, help_=help_)

    def _count(self, clause: Clause, most: int) -> int:
        operand = clause.operands[0]
        value = self._params.value(operand)
        if isinstance(value, str | float):
            kind = "a text" if isinstance(value, str) else "a decimal number"
            message = f"`{clause.tokens[0].text}` needs an integer, and the parameter `{operand.value}` is {kind}"
            help_ = f"give it an integer as default: `param {operand.value} = 3`"
            self._error("param-type", message, Span(operand.start, operand.end), help_=help_)
        elif value is not None and not 1 <= value <= most:
            message = f"`{clause.tokens[0].text}` cannot be {value}"
            help_ = f"write an integer from 1 to {most}"
            self._error("count-out-of-range", message, Span(operand.start, operand.end), help_=help_)
        else:
            return value or 1
        return 1

    # ---- steps --------------------------------------------------------------------------------------------------

    def _steps(self, group: _Group) -> Iterator[tuple[Node, Node, AccessNode, int | None, _Settings, str]]:
        subtask, depth, settings = self._subtask(group), self._depth(group), self._settings(group)
        for copy, (worker, access) in enumerate(zip(group.workers, self._access(group), strict=True), start=1):
            name = f"{group.name.value}[{copy}]" if len(group.workers) > 1 else str(group.name.value)
            yield worker, subtask, access, depth, settings, name

    def _subtask(self, group: _Group) -> Node:
        if group.statement is None:
            return Node("?", group.name.start, group.name.end)
        text = group.statement.text
        return Node(self._filled(text), text.start, text.end)

    def _filled(self, text: Text) -> str:
        if text.parts and all(isinstance(part, str) for part in text.parts):
            return "".join(map(str, text.parts))
        values = [part if isinstance(part, str) else self._params.value(part) for part in text.parts]
        return "".join("?" if value is None else str(value) for value in values)

    def _depth(self, group: _Group) -> int | None:
        clause = group.statement.clause("depth") if group.statement else None
        if clause is None:
            return None
        self._workers.check_depth(clause, group.workers)
        return self._count(clause, MOST_COPIES)

    def _settings(self, group: _Group) -> _Settings:
        """The temperature and the most tokens of a statement."""
        if group.statement is None:
            return None, None
        clauses = group.statement.clause("temperature"), group.statement.clause("max_tokens")
        by = group.statement.clause(*WORKER_CLAUSES)
        for clause in filter(None, clauses):
            self._workers.check_setting(clause, by, group.workers)
        temperature, most = clauses
        return (
            None if temperature is None else self._temperature(temperature),
            None if most is None else self._count(most, MOST_TOKENS),
        )

    def _temperature(self, clause: Clause) -> float | None:
        operand = clause.operands[0]
        value = self._params.value(operand)
        span = Span(operand.start, operand.end)
        if isinstance(value, str):
            message = f"`temperature` needs a number, and the parameter `{operand.value}` is a text"
            help_ = f"give it a number as default: `param {operand.value} = 0.7`"
            self._error("param-type", message, span, help_=help_)
        elif value is not None and not 0 <= value <= HOTTEST:
            help_ = f"write a number from 0 to {HOTTEST}"
            self._error("count-out-of-range", f"`temperature` cannot be {value}", span, help_=help_)
        else:
            return value
        return None

    # ---- access -------------------------------------------------------------------------------------------------

    def _access(self, group: _Group) -> Iterator[AccessNode]:
        """What each of the steps sees."""
        seen, clause = self._seen(group), group.statement.clause("sees") if group.statement else None
        own = [operand for operand in clause.operands if operand.kind == "own"] if clause else []
        if seen.value == ALL:
            yield from repeat(seen, len(group.workers))
            return
        rows = {target.first: (operand, target) for operand in own if (target := self._row(group, operand))}.values()
        itself = any(target is group for _, target in rows)
        for first in range(0, len(group.workers), group.width):
            before = range(group.first + first - group.width, group.first + first) if first and not itself else ()
            layer = self._layer(seen, group.chain, before, copies=1 if rows else group.width)
            for place in range(group.width):
                more = chain.from_iterable(_in_row(group, row[1], first, place, row[0]) for row in rows)
                span = Span(seen.start, seen.end)
                yield (
                    self._access_node(chain(layer.indices, more), span, clause, copies=1) if rows and clause else layer
                )

    def _layer(self, seen: AccessNode, links: Clause | None, before: Sequence[int], *, copies: int) -> AccessNode:
        """What all steps of a layer see; `before` is the layer before."""
        if links is None or not before:
            return seen
        entries = ((index, links.start, links.end) for index in before)
        return self._access_node(chain(seen.indices, entries), Span(seen.start, seen.end), links, copies=copies)

    def _row(self, group: _Group, operand: Operand) -> _Group | None:
        """The step of `own NAME`, if its layers are as wide as those of the step that sees it."""
        target = self._groups.get(str(operand.value))
        if target is None or target.width == group.width or not (target.resolved and group.resolved):
            return target
        counts = f"`{operand.value}` has {target.width}, and this step {group.width}"
        message = f"`own {operand.value}` needs two steps with equally many copies: {counts}"
        help_ = f"repeat both alike, or write `{operand.value}` alone to see all its copies"
        self._error("copies-differ", message, Span(operand.start, operand.end), help_=help_)
        return None

    def _seen(self, group: _Group) -> AccessNode:
        """What the statement says that all its steps see."""
        if group.statement is None and group.first:
            return AccessNode(ALL, group.name.start, group.name.end)  # so that no step is dead because of it
        clause = group.statement.clause("sees") if group.statement else None
        if clause is None:
            return AccessNode((), group.name.start, group.name.end)
        start, end = clause.tokens[1].start, clause.end
        if clause.operands and clause.operands[0].kind == "all":
            return AccessNode(ALL, start, end)
        targets = [(operand, self._target(operand)) for operand in clause.operands]
        if group.first and not all(target for _, target in targets):
            return AccessNode(ALL, start, end)  # so that the step that was meant is not reported as dead
        shared = ((operand, target) for operand, target in targets if operand.kind != "own")
        return self._access_node(self._indices_of(group, shared), Span(start, end), clause, copies=group.width)

    def _indices_of(
        self, group: _Group, targets: Iterable[tuple[Operand, _Group | None]]
    ) -> Iterator[tuple[int, int, int]]:
        """The steps of some names. A repeated name gives one step again, so that it is reported once."""
        named = set()
        for operand, target in sorted(targets, key=lambda each: _is_guess(*each)):
            if target is not None and not (target.first in named and _is_guess(operand, target)):
                indices = self._indices(group, target)
                indices = indices[-target.width :] if operand.kind == "latest" else indices
                for index in indices[:1] if target.first in named else indices:
                    yield index, operand.start, operand.end
                named.add(target.first)

    def _access_node(
        self, entries: Iterable[tuple[int, int, int]], span: Span, clause: Clause, *, copies: int
    ) -> AccessNode:
        """The entry of each of these copies, as long as there are not too many in all."""
        if self._entries > MOST_ACCESS_ENTRIES:
            return AccessNode(ALL, *span)
        indices = tuple(islice(entries, MOST_ACCESS_ENTRIES + 1))
        self._entries += len(indices) * copies
        if self._entries > MOST_ACCESS_ENTRIES:
            self._too_large(clause, f"more than {MOST_ACCESS_ENTRIES:,} entries in its access lists")
            return AccessNode(ALL, *span)
        return AccessNode(indices, *span)

    def _indices(self, group: _Group, target: _Group) -> Sequence[int]:
        """The steps of a group; of one that is not earlier the last alone, which is not earlier for any copy."""
        return target.indices if target.first < group.first else target.indices[-1:]

    def _target(self, operand: Operand) -> _Group | None:
        name = str(operand.value)
        target = self._groups.get(name)
        if target is None:
            near = self._suggestions.closest(name, chain((ALL, "nothing"), self._groups))
            hint = f"did you mean `{near}`?" if near else ""
            help_ = "`sees` takes the names of earlier steps, `all` or `nothing`"
            self._error("name-unknown", f"there is no step `{name}`", Span(operand.start, operand.end), hint, help_)
            target = self._groups.get(near or "")
        return target

    # ---- problems -----------------------------------------------------------------------------------------------

    def _too_large(self, clause: Clause | None, what: str) -> None:
        span = Span(clause.start, clause.end) if clause else Span(0, 0)
        self._error("workflow-too-large", f"the workflow has {what}", span, help_="use fewer copies")

    def _error(self, code: str, message: str, span: Span, label: str = "", help_: str = "") -> None:
        self._found.append(Diagnostic(code, "error", message, span, label, help_))


def _is_guess(operand: Operand, target: _Group | None) -> bool:
    """Whether the step of another name was taken for one that is misspelt."""
    return target is not None and operand.value != target.name.value


def _in_row(group: _Group, target: _Group, first: int, place: int, operand: Operand) -> Iterator[tuple[int, int, int]]:
    """What a step sees by `own NAME`: the steps at the same place of each layer, of its own only the one before."""
    if target is not group:
        row: Sequence[int] = target.indices[place :: target.width]
    elif first:
        row = [group.first + first - group.width + place]
    else:
        row = [] if group.chain else [group.first + place]
    yield from ((index, operand.start, operand.end) for index in row)


def _is_broken_step(statement: Statement) -> TypeGuard[Broken]:
    return isinstance(statement, Broken) and statement.kind == "step"
