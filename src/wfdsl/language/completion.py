"""Completions: from text to a tree, with every repair, and from a workflow to the three lists.

Each alternative of the grammar has one reader here; those named "x_..." report a repair or a wrong type. A repair never
invents a step, a worker or an edge, and never drops one. The canonical print is inverse to reading it strictly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias, TypeVar

from wfdsl.language.check import Profile
from wfdsl.language.completion_errors import (
    ambiguous_lists,
    cut_list,
    missing_lists,
    missing_marker,
    replaced_lists,
    unexpected,
)
from wfdsl.language.completion_groups import LABELS, Group, Groups, Listed, changed_label, choose, label_of
from wfdsl.language.completion_scanner import BadList, Scan, Scanner, scanner
from wfdsl.language.diagnostics import MOST_SHOWN, Diagnostic, Severity, more_of_the_same
from wfdsl.language.grammar import Phrase, Token
from wfdsl.language.literals import MOST_DIGITS, BadEscape, joined_surrogates, quoted, string_value
from wfdsl.language.reasoning import marked_start
from wfdsl.language.source import Span
from wfdsl.language.tree import ALL, AccessNode, Node, WorkflowTree
from wfdsl.language.workflow import Workflow

_STRAIGHT = "use straight quotes, \" or '"
_FENCE = re.compile(r"```[ \t]*\w")
_BINDING = re.compile("[=:：＝]")
_TAG = re.compile(r"(?:[\"'][^<>\r\n]*)?>|\s*</arg_key>")
_INVISIBLE = re.compile("[\u00a0\u2007\u202f\u3000\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_WIDE_DIGITS = str.maketrans("０１２３４５６７８９", "0123456789")
_NOTHING = ""  # the value of a worker that has an error of its own: no number, so that no rule is broken by it
_TEXTS = ("step_text", "x_worker_text", "word")  # alternatives of the grammar for a string where a number may be
Index: TypeAlias = tuple[int, int, int]
FindWorker: TypeAlias = Callable[[str], int | None]
T = TypeVar("T")


class Reading(NamedTuple):
    """What a completion says. Without a tree, or with one that is not complete, there is at least one error."""

    tree: WorkflowTree | None
    diagnostics: list[Diagnostic]
    complete: bool = False
    """Whether all three lists could be read, and none is changed after it; the columns of the others are empty."""

    @property
    def passthrough(self) -> bool:
        """Whether these are three empty lists, which a first round must not have."""
        return self.tree is not None and self.complete and not any(self.tree.columns.values())


def read_completion(
    text: str,
    profile: Profile,
    scan_with: Scanner | None = None,
    *,
    find: FindWorker | None = None,
    marked: bool = False,
) -> Reading:
    """Read a completion. Errors of a list's syntax and types are found here, errors of meaning by the checker.

    `find` gives a worker's index by its name, where the pool has names. `marked`: a grammar put a marker line before
    the lists, so that everything before it is reasoning.
    """
    grammar = scan_with or scanner()
    start = marked_start(text) if marked else 0
    if start is None:
        return Reading(None, [missing_marker(text)])
    scan = grammar.scan(text, start)
    groups = choose(text, scan.parts, start)
    if groups.cut is not None:
        return Reading(None, [cut_list(text, groups.cut)])
    if groups.answer is None:
        return Reading(None, missing_lists(text, groups))
    if unclear := _differing(text, grammar, groups.answer, groups.ambiguous):
        return Reading(None, [ambiguous_lists(unclear[0])])
    differing = _differing(text, grammar, groups.answer, groups.mentions)
    reading = _Answer(text, grammar, profile, find).read(groups, differing, scan)
    if drafts := _differing(text, grammar, groups.answer, groups.draft):
        reading.diagnostics.append(replaced_lists(drafts[0], groups.answer))
    return reading


def _differing(text: str, grammar: Scanner, answer: Group, others: list[Listed]) -> list[Listed]:
    """The lists that say something else than the answer's list with the same label."""
    if not others:
        return []
    values = {label: _Answer(text, grammar, "lenient").value(listed) for label, listed in answer.items()}
    differ = (rival for rival in others if _Answer(text, grammar, "lenient").value(rival) != values[label_of(rival)])
    return list(islice(differ, MOST_SHOWN + 1))


class _Answer:
    """Reads one group of lists, and collects what is wrong with it."""

    def __init__(self, text: str, grammar: Scanner, profile: Profile, find: FindWorker | None = None) -> None:
        self.found: list[Diagnostic] = []
        self._text = text
        self._grammar = grammar
        self._find = find
        self._repair_severity: Severity = "error" if profile == "strict" else "warning"
        self._json = False
        self._counts: dict[str, int] = {}
        self._joined: Span | None = None

    def read(self, groups: Groups, differing: list[Listed], scan: Scan) -> Reading:
        answer = groups.answer or {}
        lists = [answer[label] for label in LABELS]
        self._odd_gaps(scan.odd_gaps, lists)
        workers = self._row(lists[0], self._worker)
        subtasks = self._row(lists[1], self._subtask)
        access = self._row(lists[2], self._access)
        for rival in differing:
            self._rival(rival, answer[label_of(rival)])
        for change in groups.changes:
            message = f"`{changed_label(change)}` is changed by code after its list"
            self._error("list-changed", message, change, "write the finished list: no code is run")
        span = Span(min(listed.start for listed in lists), max(listed.end for listed in lists))
        complete = workers is not None and subtasks is not None and access is not None and not groups.changes
        tree = WorkflowTree(workers or (), subtasks or (), access or (), span, joined=self._joined)
        return Reading(tree, self.found, complete=complete)

    def value(self, listed: Listed) -> object:
        """What a list says, to be compared with others; if it has an error, its text."""
        label = label_of(listed)
        read: dict[str, Callable[[Token], Node | AccessNode]] = {"model_id": self._worker, "subtasks": self._subtask}
        row = self._row(listed, read.get(label, self._access))
        if row is None or any(found.is_error for found in self.found):
            return self._text[listed.start : listed.end]
        return [_seen(node) if isinstance(node, AccessNode) else node.value for node in row]

    # ---- lists

    def _row(self, listed: Listed, read: Callable[[Token], T]) -> tuple[T, ...] | None:
        if isinstance(listed, BadList):
            self.found.append(unexpected(self._text, listed))
            return None
        label, row = listed.children
        if label.type.startswith("X_"):
            self._label(label)
        if row.type == "x_tuple_row":
            self._tuple(row)
        self._json = is_json_label(self._text, label)
        if listed.type == "subtasks":
            joined = (Span(item.start, item.end) for item in row.children[1:-1:2] if item.type == "joined")
            self._joined = next(joined, None)
        return tuple([read(item) for item in row.children[1:-1:2]])

    def _label(self, label: Token) -> None:
        name, written = label.type.removeprefix("X_").lower(), label.text
        if _TAG.match(written, len(name)):
            self._repair("label-tag", f"the list of `{name}` is written between tags", label, f"write `{name} = [...]`")
            return
        if _FENCE.search(written) or not _BINDING.search(written):
            help_ = f"write `{name} = [...]` inside the code fence"
            self._repair("label-fence", f"there is a code fence between `{name}` and its list", label, help_)
        if '\\"' in written:
            self._escaped_json(f"the quotation mark after `{name}` is escaped", label)
        if not written.startswith(name) or written[len(name) : len(name) + 1].isalnum():
            self._repair("label-spelling", f"the label of this list is `{name}`", label, f"write `{name}`")
        if "</" in written:
            self._repair("label-tag", f"a tag follows `{name}`", label, f"write `{name} = [...]`")
        if "＝" in written:
            self._repair("full-width", f"a full-width equals sign follows `{name}`", label, "write `=`")
        if "(" in written:
            help_ = "leave the remark out, or write a type annotation: `: list[int] =`"
            self._repair("label-annotation", f"there is a remark between `{name}` and its list", label, help_)
        if "”" in written or "’" in written:
            message = f"there is a typographic quotation mark after `{name}`"
            self._repair("curly-quote", message, label, "write a straight one")
        if _INVISIBLE.search(written):
            message = f"there is a no-break space or an invisible character after `{name}`"
            self._repair("no-break-space", message, label, "write a plain space")

    def _odd_gaps(self, gaps: list[Token], lists: list[Listed]) -> None:
        for gap in gaps:
            if any(isinstance(listed, Phrase) and listed.start <= gap.start < listed.end for listed in lists):
                self._odd_gap(gap)

    def _odd_gap(self, gap: Token) -> None:
        if gap.type == "X_NO_BREAK_SPACE":
            message = "there is a no-break space or an invisible character between items"
            self._repair("no-break-space", message, gap, "write a plain space")
        elif gap.type == "X_SLASH_COMMENT":
            message = f"this comment begins with `{gap.text[:2]}`"
            self._repair("slash-comment", message, gap, "begin it with `#`, or leave it out")
        elif gap.type == "X_QUOTE_MARK":
            self._repair("quoted-block", "the list is written as a quotation", gap, "leave the `>` out")
        elif gap.type != "X_ESCAPED_SPACE":
            self._repair("full-width", f"`{gap.text}` is a full-width character", gap, "write it in ASCII")
        else:
            self._escaped_json(r"there is `\n` between items", gap)

    def _escaped_json(self, message: str, at: Token) -> None:
        self._repair("escaped-json", message, at, "write the lists themselves, not as JSON inside a string")

    def _tuple(self, item: Token) -> None:
        self._repair("tuple-for-list", "this is a tuple, not a list", item, "write square brackets")

    def _rival(self, rival: Listed, counted: Listed) -> None:
        if isinstance(counted, BadList):
            return
        message = f"`{label_of(rival)}` has another value here than in the answer"
        help_ = "the last three lists that belong together are the answer; write each of them only once"
        self._report("list-differs", "warning", message, rival, help_)

    # ---- workers

    def _worker(self, item: Token) -> Node:
        digits = self._digits(item)
        if digits is None:
            return self._wrong_worker(item)
        number = self._integer(item, digits)
        return Node(_NOTHING if number is None else number, item.start, item.end)

    def _wrong_worker(self, item: Token) -> Node:
        name = self._string(item.children[0]) if item.type == "x_worker_text" else ""
        if name and self._find and (index := self._find(name)) is not None:
            message = f"{self._quoted(item)} is the name of worker {index}"
            self._repair("worker-name", message, item, f"write its index: `{index}`")
            return Node(index, item.start, item.end)
        message = f"a worker is an integer, not {self._quoted(item)}"
        self._error("worker-type", message, item, "write the index of a worker, such as `0`")
        return Node(_NOTHING, item.start, item.end)

    # ---- subtasks

    def _subtask(self, item: Token) -> Node:
        if item.type == "x_subtask_type":
            message = f"a subtask is a string, not {self._quoted(item)}"
            self._error("subtask-type", message, item, "write what the worker is asked to do, between quotes")
            return Node("-", item.start, item.end)
        return Node(self._string(item), item.start, item.end)

    # ---- access

    def _access(self, item: Token) -> AccessNode:
        kind = item.type
        if kind == "word":
            return self._word(item)
        if kind == "x_access_tuple":
            self._tuple(item)
        if kind in {"access", "x_access_tuple"}:
            return self._steps(item.children[1:-1:2], item)
        if kind == "x_access_bare":
            return self._bare(self._step(item.children[0]), item)
        if kind == "x_access_none":
            return self._none(item)
        return self._wrong_access(item)

    def _word(self, item: Token) -> AccessNode:
        word = self._string(item.children[0], quietly=True)
        if self._grammar.is_integer(word):
            return self._bare(self._step(item), item)
        self._repairs_of(item.children[0])
        if word.lower() == ALL:
            return AccessNode(ALL, item.start, item.end)
        return self._none(item) if word.lower() == "none" else self._wrong_access(item)

    def _none(self, item: Token) -> AccessNode:
        self._repair("access-none", f"{self._quoted(item)} is not an access entry", item, "write `[]`: it sees nothing")
        return AccessNode((), item.start, item.end)

    def _bare(self, index: Index | None, item: Token) -> AccessNode:
        message = f"the index {self._quoted(item)} is not in a list"
        self._repair("access-bare-index", message, item, f"write `[{self._text[item.start : item.end]}]`")
        return AccessNode((index,) if index else (), item.start, item.end, known=index is not None)

    def _wrong_access(self, item: Token) -> AccessNode:
        message = f'an access entry is "all" or a list of steps, not {self._quoted(item)}'
        self._error("access-type", message, item, 'write `[]`, "all", or a list of earlier steps such as `[0]`')
        return AccessNode((), item.start, item.end, known=False)

    def _steps(self, items: Sequence[Token], entry: Token) -> AccessNode:
        everything: list[Token] = []
        indices: list[Index] = []
        for item in items:
            if item.type == "step_text" and self._string(item.children[0], quietly=True).lower() == ALL:
                everything.append(item)
            elif index := self._step(item):
                indices.append(index)
        if not everything:
            return AccessNode(tuple(indices), entry.start, entry.end, known=len(indices) == len(items))
        for item in everything:
            self._repairs_of(item.children[0])
        if len(items) > 1:
            message = '"all" already includes every earlier step'
            self._repair("access-all-and-more", message, everything[0], 'write "all" alone')
        return AccessNode(ALL, entry.start, entry.end, tuple(indices))

    def _step(self, item: Token) -> Index | None:
        digits = self._digits(item)
        if digits is None:
            self._wrong_step(item)
            return None
        number = self._integer(item, digits)
        return None if number is None else (number, item.start, item.end)

    def _wrong_step(self, item: Token) -> None:
        message = f"an access entry contains the indices of steps, not {self._quoted(item)}"
        self._error("access-type", message, item, 'write integers, or "all" instead of the whole entry')

    # ---- numbers

    def _digits(self, item: Token) -> str | None:
        """The digits of an item that is a number, however it is written."""
        if item.type == "INT":
            return item.text
        if item.type == "X_FLOAT":
            return item.text.partition(".")[0]
        if item.type == "X_WIDE_INT":
            value = item.text.translate(_WIDE_DIGITS)
            return value if self._grammar.is_integer(value) else None
        if item.type not in _TEXTS:
            return None
        value = self._string(item.children[0], quietly=True)
        return value if self._grammar.is_integer(value) else None

    def _integer(self, item: Token, digits: str) -> int | None:
        """The number that an item's digits say; None if there are too many."""
        if item.type == "X_FLOAT":
            self._repair(
                "number-as-float", f"{item.text:.20} is written with a decimal point", item, "write an integer"
            )
        elif item.type == "X_WIDE_INT":
            self._repair("full-width", f"{item.text} is written in full-width digits", item, "write it in ASCII")
        elif item.type != "INT":
            self._repairs_of(item.children[0])
            self._repair(
                "number-as-string", f"the number {digits:.20} is written as a string", item, "remove the quotes"
            )
        if len(digits.lstrip("-")) > MOST_DIGITS:
            help_ = f"write a worker index or a step of at most {MOST_DIGITS} digits"
            self._error("number-too-large", "this number has too many digits", item, help_)
            return None
        return int(digits)

    # ---- strings

    def _string(self, item: Token, *, quietly: bool = False) -> str:
        if isinstance(item, Phrase):
            value = "".join([self._piece(token, quietly=quietly) for token in item.children])
        else:
            value = self._piece(item, quietly=quietly)
        value, lone = joined_surrogates(value)
        if lone and not quietly:
            message = "the string contains half of a surrogate pair, which is not a character"
            self._repair("lone-surrogate", message, item, "write both halves, or the character itself")
        return value

    def _repairs_of(self, item: Token) -> None:
        """Report what is wrong with a string whose value was read quietly."""
        if item.type != "STRING" or "\\" in item.text:
            self._string(item)

    def _piece(self, token: Token, *, quietly: bool) -> str:
        if token.type == "X_ESCAPED_STRING":
            return self._escaped_piece(token, quietly=quietly)
        value, bad = string_value(token.text, token.start, json=self._json)
        if quietly:
            return value
        for escape in bad:
            self._bad_escape(escape)
        if token.type == "X_CURLY_STRING":
            self._repair("curly-quote", "the string has typographic quotation marks", token, _STRAIGHT)
        if token.type == "X_BROKEN_STRING" or (token.type == "X_CURLY_STRING" and has_raw_break(token.text)):
            message = "the string runs over a line break"
            self._repair("line-break-in-string", message, token, r"write `\n`, or use triple quotes")
        return value

    def _escaped_piece(self, token: Token, *, quietly: bool) -> str:
        """The value of a JSON string inside a JSON string: its escapes are read twice."""
        inner, bad = string_value(f'"{token.text}"', token.start - 1, json=True)
        value, more = string_value(inner, json=True)
        if not quietly:
            for escape in [*bad, *(BadEscape(Span(token.start, token.end), each.message) for each in more)]:
                self._bad_escape(escape)
            self._escaped_json("the quotation marks of this string are escaped", token)
        return value

    def _bad_escape(self, escape: BadEscape) -> None:
        self._error("bad-escape", escape.message, escape.span, r"write a literal backslash twice: \\")

    # ---- reports

    def _quoted(self, item: Token) -> str:
        written = self._text[item.start : item.end]
        return f"`{written}`" if len(written) <= 40 and "\n" not in written else "this"

    def _error(self, code: str, message: str, at: Token | Span, help_: str) -> None:
        self._report(code, "error", message, at, help_)

    def _repair(self, code: str, message: str, at: Token | Span, help_: str) -> None:
        self._report(code, self._repair_severity, message, at, help_)

    def _report(self, code: str, severity: Severity, message: str, at: Token | Span, help_: str) -> None:
        count = self._counts[code] = self._counts.get(code, 0) + 1
        if count <= MOST_SHOWN:
            self.found.append(Diagnostic(code, severity, message, Span(at.start, at.end), help=help_))
        elif count == MOST_SHOWN + 1:
            self.found.append(more_of_the_same(code, Span(at.start, at.end)))


def _seen(entry: AccessNode) -> object:
    """What an access entry means, however it is written."""
    return ALL if entry.value == ALL else {index for index, _, _ in entry.value}


def is_json_label(text: str, label: Token) -> bool:
    """Whether a label is in double quotes before a colon, so that its strings are JSON's."""
    rest = label.text[len(label.type.removeprefix("X_")) :]
    return text[label.start - 1 : label.start] == '"' and rest.startswith('"') and "=" not in rest


def has_raw_break(literal: str) -> bool:
    """Whether a literal contains a line break that no backslash precedes."""
    unescaped = literal.replace("\\\\", "").replace("\\\r\n", "").replace("\\\n", "").replace("\\\r", "")
    return "\n" in unescaped or "\r" in unescaped


def print_completion(workflow: Workflow, *, compact: bool = False) -> str:
    """The three lists, one to a line, and with several steps each subtask on a line of its own, unless `compact`.

    Raises:
        WorkflowError: three lists cannot say it (an unresolved worker, a depth of its own).
    """
    lists = workflow.to_lists()
    subtasks = [quoted(subtask) for subtask in lists["subtasks"]]
    one_line = ", ".join(subtasks)
    access = ['"all"' if entry == "all" else str(entry) for entry in lists["access_list"]]
    return (
        f"model_id = {lists['model_id']}\n"
        f"subtasks = {f'[{one_line}]' if compact or len(subtasks) == 1 else _stacked(subtasks)}\n"
        f"access_list = [{', '.join(access)}]\n"
    )


def _stacked(items: list[str]) -> str:
    return "[\n" + "".join(f"    {item},\n" for item in items) + "]"
