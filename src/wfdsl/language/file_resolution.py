"""Name resolution in workflow files: parameters to their values, `by` clauses to workers.

A worker that only a pool can resolve is a text. Every text says which clause it comes from, and back: the name of a
worker is written as it is, `tag strong`, `each worker`, `each tag strong` and `conductor` are what follows `by`; a name
that looks like one of those is written in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from wfdsl.errors import UsageError
from wfdsl.language.check import PoolLike
from wfdsl.language.diagnostics import Diagnostic, Suggestions
from wfdsl.language.file_scanner import file_grammar
from wfdsl.language.file_tree import Broken, Clause, FileTree, Operand, Param, StepStatement
from wfdsl.language.literals import quoted, string_value
from wfdsl.language.source import Span
from wfdsl.language.tree import Node, Worker

INTEGER = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?")


class Params:
    """Looks parameters up and remembers which were used."""

    def __init__(self, tree: FileTree, given: Mapping[str, str | float], found: list[Diagnostic]) -> None:
        """Take the defaults of a file, and the values given for them.

        Raises:
            UsageError: a value for a parameter that the file does not have, or of the wrong type.
        """
        self._declared: dict[str, Param | Broken] = {}
        self._found = found
        self._used: set[str] = set()
        self._suggestions = Suggestions()
        for statement in tree.statements:
            if isinstance(statement, Param) or (isinstance(statement, Broken) and statement.kind == "param"):
                self._declare(statement)
        self._workers = set(_used_as_workers(tree))
        self._given = {name: self._converted(name, str(value)) for name, value in given.items()}

    def value(self, operand: Operand) -> int | float | str | None:
        """What an operand says; None for a parameter that is not known, which is reported."""
        if operand.kind != "parameter":
            return operand.value
        name = str(operand.value)
        self._used.add(name)
        declared = self._declared.get(name)
        if declared is None:
            self._found.append(self._unknown(operand))
        default = declared.value if isinstance(declared, Param) else None
        return self._given.get(name, default)

    def unused(self) -> Iterator[Diagnostic]:
        """A warning for each parameter that nothing uses."""
        for name, declared in self._declared.items():
            if isinstance(declared, Param) and name not in self._used:
                span = Span(declared.name.start, declared.name.end)
                help_ = f"use it as `{{{name}}}`, or remove it"
                yield Diagnostic("param-unused", "warning", f"the parameter `{name}` is never used", span, help=help_)

    def _declare(self, statement: Param | Broken) -> None:
        name = statement.name
        if name is None:
            return
        if str(name.value) in self._declared:
            message = f"there are two parameters named `{name.value}`"
            span = Span(name.start, name.end)
            self._found.append(Diagnostic("name-taken", "error", message, span, help="choose another name"))
        self._declared.setdefault(str(name.value), statement)

    def _converted(self, name: str, value: str) -> int | float | str:
        declared = self._declared.get(name)
        if declared is None:
            raise UsageError(self._no_such(name))
        if not isinstance(declared, Param) or isinstance(declared.value, str):
            return value
        if isinstance(declared.value, float) and _DECIMAL.fullmatch(value.strip()):
            return float(value)
        if isinstance(declared.value, float) or not INTEGER.fullmatch(value.strip()):
            if name in self._workers:
                return value
            default = f"its default is {declared.value}"
            kind = "a number" if isinstance(declared.value, float) else "an integer"
            raise UsageError(f"the parameter {name} is {kind} ({default}): it cannot be set to {value!r:.60}")
        return int(value)

    def _no_such(self, name: str) -> str:
        if not self._declared:
            return f"the workflow file has no parameter {name}; it has no parameters at all"
        near = self._suggestions.closest(name, self._declared)
        hint = f"; did you mean {near}?" if near else ""
        return f"the workflow file has no parameter {name}{hint} (it has {', '.join(self._declared)})"

    def _unknown(self, operand: Operand) -> Diagnostic:
        name = str(operand.value)
        return Diagnostic(
            "param-unknown",
            "error",
            f"there is no parameter `{name}`",
            Span(operand.start, operand.end),
            self._suggestions.hint(name, self._declared),
            f"declare it with `param {name} = ...`; a literal brace is written twice: `{{{{` or `}}}}`",
        )


def _used_as_workers(tree: FileTree) -> Iterator[str]:
    """Parameters in `by {name}`: whatever their default, they can be set to an index or a name."""
    for statement in tree.statements:
        clause = statement.clause("worker") if isinstance(statement, StepStatement) else None
        if clause is not None:
            yield from (str(operand.value) for operand in clause.operands if operand.kind == "parameter")


_CONDUCTOR = "conductor"
_EACH = "each worker"
_TAG = "tag "
_EACH_TAG = "each tag "
_AFTER_BY = ("STEP", "NAME", "BY")
_AFTER_TAG = (*_AFTER_BY, "TAG")


class Workers:
    """Resolves the `by` clauses of one file."""

    def __init__(self, pool: PoolLike | None, params: Params, found: list[Diagnostic]) -> None:
        self._pool = pool
        self._params = params
        self._found = found
        self._suggestions = Suggestions()

    def of(self, clause: Clause) -> list[Node]:
        """The workers of a clause, each with a copy of the step; never none."""
        if clause.kind != "worker":
            span = Span(clause.tokens[1].start, clause.end)
            return self._named(clause, clause.operands[0] if clause.operands else None, span)
        named = (self._named(clause, operand, Span(operand.start, operand.end)) for operand in clause.operands)
        return [node for nodes in named for node in nodes]

    def _named(self, clause: Clause, operand: Operand | None, span: Span) -> list[Node]:
        """The workers of one operand of a clause."""
        value = None if operand is None else self._params.value(operand)
        if operand is not None and operand.kind == "parameter" and INTEGER.fullmatch(str(value)):
            value = int(str(value))  # `by {worker}` takes an index or a name
        if clause.kind == "worker" and isinstance(value, int):
            return [Node(value, *span)]
        if operand is not None and value is None:
            return [Node("?", *span)]  # its parameter is unknown, which has been reported
        text = _text(clause.kind, str(value))
        if self._pool is None:
            self._found.append(_pool_needed(text, span))
            return [Node(text, *span)]
        indices = self._resolved(clause, str(value), self._pool)
        if not indices:
            self._found.append(self._unknown(clause, str(value), self._pool, span))
            return [Node(text, *span)]
        return [Node(index, *span) for index in indices]

    def check_depth(self, depth: Clause, workers: Sequence[Node]) -> None:
        """Report a depth for workers that are known not to be Conductors."""
        if self._pool is None:
            return
        for worker in workers:
            if worker.value in self._pool.indices and worker.value not in self._pool.conductors:
                message = f"worker {worker.value} is not a Conductor, so it cannot have a depth"
                help_ = "leave `depth` out, or let a Conductor do the step: `by conductor`"
                span = Span(depth.start, depth.end)
                self._found.append(Diagnostic("clause-conflict", "error", message, span, help=help_))
                return

    def check_setting(self, setting: Clause, by: Clause | None, workers: Sequence[Node]) -> None:
        """Report a sampling setting for a Conductor."""
        conductors = () if self._pool is None else self._pool.conductors
        if (by is not None and by.kind == "conductor") or any(worker.value in conductors for worker in workers):
            word = setting.tokens[0].text
            help_ = f"leave `{word}` out: a Conductor's settings are those of its entry in the pool"
            span = Span(setting.start, setting.end)
            message = f"a Conductor's step has no `{word}`"
            self._found.append(Diagnostic("clause-conflict", "error", message, span, help=help_))

    def _resolved(self, clause: Clause, value: str, pool: PoolLike) -> Sequence[int]:
        if clause.kind == "worker":
            index = pool.find(value)
            return [] if index is None else [index]
        if clause.kind == "each":
            return pool.indices
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
            help_ = 'add a worker with `provider = "conductor"` to the pool file, or name a worker here'
        else:
            message = f"no worker of the pool has the tag `{value}`"
            if pool.find(value) is not None:
                help_ = f"`{value}` is the name of a worker: write `by {value}`"
        return Diagnostic("worker-unknown", "error", message, span, label, help_)


def worker_clause(worker: Worker) -> str:
    """What follows `by` for a worker of a `Workflow`."""
    if isinstance(worker, int) or _is_clause(worker):
        return str(worker)
    return _written(string_value(worker)[0] if _is_special(worker) else worker, _AFTER_BY)


def _text(kind: str, value: str) -> str:
    """How a clause with this operand is written while no pool resolves it."""
    if kind == "worker":
        return quoted(value) if _is_special(value) else value
    fixed = {"each": _EACH, "conductor": _CONDUCTOR}.get(kind)
    return fixed or (_TAG if kind == "tagged" else _EACH_TAG) + _written(value, _AFTER_TAG)


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
    return tag is not None and _written(tag if (inner := _unquoted(tag)) is None else inner, _AFTER_TAG) == tag


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
        f"only a pool can resolve `{text}`",
        span,
        help="give one with `--pool NAME|FILE`; without it the file can be checked, drawn and formatted",
    )
