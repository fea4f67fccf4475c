"""Workers in workflow files: which ordinals a `by` clause stands for, and how workers are written without a pool.

A worker that only a pool can resolve is a text. Every text says which clause it comes from, and back: the name of a
worker stands as it is, `tag strong`, `each worker`, `each tag strong` and `conductor` are what follows `by`; a name
that looks like one of those stands in quotes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from wfdsl.language.diagnostics.diagnostic import Diagnostic
from wfdsl.language.file_params import INTEGER, Params
from wfdsl.language.file_scan import file_grammar
from wfdsl.language.file_text import quoted
from wfdsl.language.literals import string_value
from wfdsl.language.source import Span
from wfdsl.language.suggestion import Suggestions
from wfdsl.language.tree import Node, Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.language.file_tree import Clause

_CONDUCTOR = "conductor"
_EACH = "each worker"
_TAG = "tag "
_EACH_TAG = "each tag "
_BEHIND_BY = ("STEP", "NAME", "BY")
_BEHIND_TAG = (*_BEHIND_BY, "TAG")


class PoolLike(Protocol):
    """What workflow files ask of a pool."""

    @property
    def names(self) -> Sequence[str]:
        """The workers' names, in order of their ordinals."""
        ...

    @property
    def ordinals(self) -> Sequence[int]:
        """The ordinals that a workflow may use, ascending."""
        ...

    @property
    def conductors(self) -> Sequence[int]:
        """The ordinals of workers that are Conductors themselves."""
        ...

    def find(self, name: str) -> int | None:
        """The ordinal of the worker of this name."""
        ...

    def tagged(self, tag: str) -> Sequence[int]:
        """The ordinals of the workers with this tag, ascending."""
        ...


class Workers:
    """Resolves the `by` clauses of one file."""

    def __init__(self, pool: PoolLike | None, params: Params, found: list[Diagnostic]) -> None:
        self._pool = pool
        self._params = params
        self._found = found
        self._suggestions = Suggestions()

    def of(self, clause: Clause) -> list[Node]:
        """The workers of a clause, one for each copy of the step; never none."""
        operand = clause.operands[0] if clause.operands else None
        value = None if operand is None else self._params.value(operand)
        if operand is not None and operand.kind == "parameter" and INTEGER.fullmatch(str(value)):
            value = int(str(value))  # `by {worker}` takes what one would write: an ordinal or a name
        span = Span(clause.tokens[1].start, clause.end)
        if clause.kind == "worker" and isinstance(value, int):
            return [Node(value, *span)]
        if operand is not None and value is None:
            return [Node("?", *span)]  # its parameter is not known, which has been reported
        text = _text(clause.kind, str(value))
        if self._pool is None:
            self._found.append(_pool_needed(text, span))
            return [Node(text, *span)]
        ordinals = self._resolved(clause, str(value), self._pool)
        if not ordinals:
            self._found.append(self._unknown(clause, str(value), self._pool, span))
            return [Node(text, *span)]
        return [Node(ordinal, *span) for ordinal in ordinals]

    def check_depth(self, depth: Clause, workers: Sequence[Node]) -> None:
        """Report a depth for workers that are known to be no Conductors."""
        if self._pool is None:
            return
        for worker in workers:
            if worker.value in self._pool.ordinals and worker.value not in self._pool.conductors:
                message = f"worker {worker.value} is no Conductor, and so has no depth"
                help_ = "leave `depth` out, or let a Conductor do the step: `by conductor`"
                span = Span(depth.start, depth.end)
                self._found.append(Diagnostic("clause-conflict", "error", message, span, help=help_))
                return

    def _resolved(self, clause: Clause, value: str, pool: PoolLike) -> Sequence[int]:
        if clause.kind == "worker":
            ordinal = pool.find(value)
            return [] if ordinal is None else [ordinal]
        if clause.kind == "each":
            return pool.ordinals
        if clause.kind == "conductor":
            return pool.conductors[:1]
        return pool.tagged(value) if clause.kind == "each_tagged" else pool.tagged(value)[:1]

    def _unknown(self, clause: Clause, value: str, pool: PoolLike, span: Span) -> Diagnostic:
        names = ", ".join(f"`{name}`" for name in pool.names[:10])
        label, help_ = "", f"the pool has {names}{', ...' if len(pool.names) > 10 else ''}"
        if clause.kind == "worker":
            message = f"the pool has no worker `{value}`"
            label = self._suggestions.hint(value, pool.names)
            help_ = f"`{value}` is a tag: write `by tag {value}`" if pool.tagged(value) else help_
        elif clause.kind == "conductor":
            message = "the pool has no Conductor"
        else:
            message = f"no worker of the pool has the tag `{value}`"
            if pool.find(value) is not None:
                help_ = f"`{value}` is the name of a worker: write `by {value}`"
        return Diagnostic("worker-unknown", "error", message, span, label, help_)


def worker_clause(worker: Worker) -> str:
    """What stands behind `by` for a worker of a `Workflow`."""
    if isinstance(worker, int) or _is_clause(worker):
        return str(worker)
    return _written(string_value(worker)[0] if _is_special(worker) else worker, _BEHIND_BY)


def _text(kind: str, value: str) -> str:
    """How a clause with this operand is written as long as no pool resolves it."""
    if kind == "worker":
        return quoted(value) if _is_special(value) else value
    fixed = {"each": _EACH, "conductor": _CONDUCTOR}.get(kind)
    return fixed or (_TAG if kind == "tagged" else _EACH_TAG) + _written(value, _BEHIND_TAG)


def _written(name: str, before: Sequence[str]) -> str:
    return name if file_grammar().is_name(name, *before) else quoted(name)


def _is_special(text: str) -> bool:
    """Whether it is a clause's text, in any number of quotes."""
    while (inner := _unquoted(text)) is not None:
        text = inner
    return _is_clause(text)


def _is_clause(text: str) -> bool:
    if text in (_CONDUCTOR, _EACH):
        return True
    tag = next((text[len(start) :] for start in (_EACH_TAG, _TAG) if text.startswith(start)), None)
    return tag is not None and _written(tag if (inner := _unquoted(tag)) is None else inner, _BEHIND_TAG) == tag


def _unquoted(text: str) -> str | None:
    """What a text says that is exactly what `quoted` makes of that."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return None
    inner = string_value(text)[0]
    return inner if quoted(inner) == text else None


def _pool_needed(text: str, span: Span) -> Diagnostic:
    return Diagnostic(
        "pool-needed",
        "note",
        f"only a pool knows who `{text}` is",
        span,
        help="`--pool NAME|FILE` gives one; without it the file can be checked, drawn and formatted",
    )
