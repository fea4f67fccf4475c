"""The parameters of a workflow file: their defaults, the values that they are set to, and where they are used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wfdsl.errors import UsageError
from wfdsl.language.diagnostics.diagnostic import Diagnostic
from wfdsl.language.file_tree import Broken, FileTree, Operand, Param, StepStatement
from wfdsl.language.source import Span
from wfdsl.language.suggestion import Suggestions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

INTEGER = re.compile(r"-?[0-9]{1,18}")


class Params:
    """Looks parameters up and remembers which were used."""

    def __init__(self, tree: FileTree, given: Mapping[str, str], found: list[Diagnostic]) -> None:
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
        self._given = {name: self._converted(name, value) for name, value in given.items()}

    def value(self, operand: Operand) -> int | str | None:
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
                help_ = f"use it as `{{{name}}}`, or leave it out"
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

    def _converted(self, name: str, value: str) -> int | str:
        declared = self._declared.get(name)
        if declared is None:
            raise UsageError(self._no_such(name))
        if not isinstance(declared, Param) or isinstance(declared.value, str):
            return value
        if not INTEGER.fullmatch(value.strip()):
            if name in self._workers:
                return value
            default = f"its default is {declared.value}"
            raise UsageError(f"the parameter {name} is an integer ({default}): it cannot be set to {value!r:.60}")
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
            f"declare it with `param {name} = ...`; a brace that is meant as such is written twice: `{{{{` or `}}}}`",
        )


def _used_as_workers(tree: FileTree) -> Iterator[str]:
    """Parameters in `by {name}`: whatever their default, they can be set to an ordinal or a name."""
    for statement in tree.statements:
        clause = statement.clause("worker") if isinstance(statement, StepStatement) else None
        if clause is not None and clause.operands[0].kind == "parameter":
            yield str(clause.operands[0].value)
