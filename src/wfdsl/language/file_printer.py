"""Workflow files as text: a statement tree in its canonical layout, and a workflow as a new file.

A statement is a row of pieces; a comment belongs to the piece that it follows, and ends its line. Texts between triple
quotes are indented; other literals stay as they were written. Every comment is kept.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from decimal import Decimal

from wfdsl.language.file_reader import read_workflow_file
from wfdsl.language.file_resolution import worker_clause
from wfdsl.language.file_scanner import file_grammar
from wfdsl.language.file_tree import Broken, Clause, Comment, FileTree, Param, Statement, StepStatement, Text, Version
from wfdsl.language.grammar import Token
from wfdsl.language.literals import LINE_BREAK, block, dedent, is_long, quoted, split_literal
from wfdsl.language.source import Source
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Labels, Step, Workflow

_WIDTH = 120  # characters of a line, as far as statements can be broken; our choice
_INDENT = "    "
_TIGHT = {",", ":"}
_ORDER = {"by": 0, "copies": 1, "chain": 1, "depth": 2, "temperature": 3, "max_tokens": 4, "sees": 5}


def format_file(tree: FileTree) -> str:
    """A workflow file in its usual layout. It means the same, and formatting it again changes nothing.

    Lines end as the first line of the file does.

    Raises:
        ValueError: the tree comes from a text with syntax errors, of which it does not hold all.
    """
    if any(isinstance(statement, Broken) for statement in tree.statements):
        raise ValueError("a file with syntax errors cannot be formatted")
    text = _Formatter(tree).text()
    first = LINE_BREAK.search(tree.source.text)
    return text.replace("\n", "\r\n") if first and first[0] == "\r\n" else text


class _Formatter:
    """One file being written."""

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree
        self._source = tree.source.text
        self._starts = [comment.start for comment in tree.comments]
        self._lines: list[str] = []
        self._end = 0
        """The offset after what has been written."""

    def text(self) -> str:
        written = 0
        rows = [_tokens(statement) for statement in self._tree.statements]
        starts = [tokens[0].start for tokens in rows] + [len(self._source)]
        for statement, tokens, end in zip(self._tree.statements, rows, starts[1:], strict=True):
            for comment in self._comments(written, tokens[0].start):
                self._stand_alone(comment)
            self._statement(statement, tokens, end)
            written = self._end
        for comment in self._comments(written, len(self._source)):
            self._stand_alone(comment)
        return "\n".join([*self._lines, ""]) if self._lines else ""

    def _comments(self, start: int, end: int) -> Sequence[Comment]:
        return self._tree.comments[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def _stand_alone(self, comment: Comment) -> None:
        """A comment between statements, on a line of its own."""
        self._keep_blank_line(comment.start)
        self._lines.append(comment.text)
        self._end = comment.end

    def _keep_blank_line(self, start: int) -> None:
        """Where the writer left lines blank, one stays."""
        if self._lines and len(LINE_BREAK.findall(self._source, self._end, start)) > 1:
            self._lines.append("")

    def _statement(self, statement: Statement, tokens: Sequence[Token], end: int) -> None:
        self._keep_blank_line(tokens[0].start)
        after = self._attached(tokens, end)
        rows = _Rows()
        for token in _head(statement):
            rows.add(LINE_BREAK.sub("\n", token.text), after.get(token.start, ()))
        strings = [string for text in _texts(statement) for string in text.strings]
        for string in strings:
            rows.add_string(_laid_out(string), after.get(string.start, ()), alone=len(strings) > 1)
        self._lines += rows.lines()

    def _attached(self, tokens: Sequence[Token], end: int) -> dict[int, list[tuple[str, bool]]]:
        """The comments after each token of a statement, by its offset: the text, and whether it follows on the line.

        After the last token only one on the same line belongs to the statement; `end` is where the next one begins.
        """
        after: dict[int, list[tuple[str, bool]]] = {}
        for token, following in zip(tokens, [*tokens[1:], None], strict=True):
            self._end = token.end
            for comment in self._comments(token.end, following.start if following else end):
                on_the_line = not LINE_BREAK.search(self._source, self._end, comment.start)
                if following is None and not on_the_line:
                    break
                after.setdefault(token.start, []).append((comment.text, on_the_line))
                self._end = comment.end
                if following is None:
                    break
        return after


class _Rows:
    """The lines of one statement."""

    def __init__(self) -> None:
        self._done: list[str] = []
        self._row = ""
        self._closed = False
        """Whether the row ends in a comment."""

    def lines(self) -> list[str]:
        return [*self._done, self._row] if self._row.strip() else self._done

    def add(self, text: str, comments: Sequence[tuple[str, bool]]) -> None:
        """A word or mark."""
        gap = "" if text in _TIGHT or not self._row.strip() else " "
        if self._closed or (gap and len(self._row) + len(gap) + len(text) + 1 > _WIDTH):
            self._break()
            gap = ""
        self._row += gap + text
        self._comment(comments)

    def add_string(self, literal: str, comments: Sequence[tuple[str, bool]], *, alone: bool) -> None:
        """A literal; `alone`: on a line of its own."""
        first, *rest = literal.split("\n")
        if alone or self._closed or len(self._row) + 1 + len(first) > _WIDTH:
            self._break()
        self._row += first if not self._row.strip() else f" {first}"
        if rest:
            self._done += [self._row, *rest[:-1]]
            self._row = rest[-1]
        self._comment(comments)

    def _comment(self, comments: Sequence[tuple[str, bool]]) -> None:
        for text, on_the_line in comments:
            if on_the_line and not self._closed:
                self._row += f"  {text}"
            else:
                self._break()
                self._row += text
            self._closed = True

    def _break(self) -> None:
        self._done += [self._row] if self._row.strip() else []
        self._row = _INDENT
        self._closed = False


def _tokens(statement: Statement) -> list[Token]:
    """What a statement is made of, in the order of the text."""
    if isinstance(statement, Broken):
        return []
    head = list(_head(statement))
    strings = [string for text in _texts(statement) for string in text.strings]
    return sorted(head, key=lambda token: token.start) + strings


def _head(statement: Statement) -> Iterator[Token]:
    """All but the literals, clauses in their usual order."""
    if isinstance(statement, Broken):
        return
    yield from statement.tokens
    if isinstance(statement, StepStatement):
        for clause in sorted(statement.clauses, key=_rank):
            yield from clause.tokens
        yield statement.colon


def _rank(clause: Clause) -> int:
    return _ORDER[clause.tokens[0].text]


def _texts(statement: Statement) -> list[Text]:
    if isinstance(statement, Version | Broken):
        return []
    if isinstance(statement, Param):
        return [statement.text] if statement.text else []
    return [statement.text]


def _laid_out(string: Token) -> str:
    """A literal as it is written; a long one over several lines is indented, if that does not change what it says."""
    literal = string.text
    if not is_long(literal) or not LINE_BREAK.search(literal):
        return LINE_BREAK.sub("\n", literal)
    prefix, body, _ = split_literal(literal)
    quotes = literal[-3:]
    said = dedent(body)
    lines = [_INDENT + line if line else "" for line in said.split("\n")]
    laid_out = "\n".join(["", *lines, _INDENT])
    if dedent(laid_out) != said:
        return LINE_BREAK.sub("\n", literal)
    return prefix + quotes + laid_out + quotes


_COPY = re.compile(r"\[([0-9]+)\]\Z")
_SIGHT = ("STEP", "NAME", "BY", "INT", "SEES")


def print_file(workflow: Workflow) -> str:
    """The text of a workflow file, with the names, title and description that the workflow's labels have.

    Workers that no pool has resolved are written as they were; names that no step can have are replaced.
    """
    labels = workflow.labels or Labels()
    called = _step_names(labels.names or (), len(workflow))
    headings = [("title", labels.title), ("description", labels.description)]
    statements = [f"{keyword} {_literal(text)}\n" for keyword, text in headings if text]
    statements += ["\n"] if statements else []
    statements += [_statement(step, called[index], called) for index, step in enumerate(workflow)]
    tree, _ = read_workflow_file(Source("".join(statements)))
    return format_file(tree)


def _statement(step: Step, name: str, names: Sequence[str]) -> str:
    words = ["step", name, "by", worker_clause(step.worker)]
    if step.depth is not None:
        words += ["depth", str(step.depth)]
    words += setting_clauses(step)
    if step.access == ALL:
        words += ["sees", ALL]
    elif step.access:
        words += ["sees", ", ".join(names[index] for index in step.access)]
    return f"{' '.join(words)}: {_literal(step.subtask)}\n"


def setting_clauses(step: Step) -> list[str]:
    """The clauses for a step's own settings."""
    return [f"{name} {Decimal(str(value)):f}" for name, value in step.settings.items()]


def _literal(text: str) -> str:
    several = block(text, "", braces=True) if "\n" in text else None
    return several or quoted(text, braces=True)


def _step_names(wanted: Sequence[str], count: int) -> list[str]:
    """A name for each step that can be written and read, and no name twice."""
    grammar = file_grammar()
    names: list[str] = []
    taken: set[str] = set()
    spoken_for = set(wanted)
    for index in range(count):
        name = _COPY.sub(r"-\1", wanted[index]) if index < len(wanted) else ""
        if not grammar.is_name(name, *_SIGHT) or name in taken:
            name = f"s{index}"
            while name in taken or name in spoken_for:
                name += "_"
        names.append(name)
        taken.add(name)
    return names
