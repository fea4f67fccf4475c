"""Workflow file text to statements (phrases of the grammar), comments and syntax errors, by `workflow.lark`.

The terminals and the LALR table come from the grammar file. What is added here is what the head of that file says:
error recovery repairs small mistakes, and continues after others at the next statement, so one pass finds them all.
Every character is looked at a bounded number of times, nothing recurses, and no input raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from wfdsl.language.diagnostics import Diagnostic
from wfdsl.language.file_errors import SyntaxErrors
from wfdsl.language.file_tree import Broken, Comment, Operand
from wfdsl.language.grammar import END, Stack, Table, Token, load_grammar_data
from wfdsl.language.literals import is_long

_FILE = "file"
_SUBTASK = "subtask"
_MISREAD = "misread"
_VERSION_WORD = "WFDSL"
_NEVER_TOO_MANY = ("{", "}", "\\")  # of a parameter that is written wrongly; before what may be an escaped quote
_AHEAD = 200  # characters that are looked at after an unexpected token, so that recovery stays cheap; our choice
_MARK = re.compile(r"\\?[^\w\s]")  # the pattern of a punctuation mark
_WORD = re.compile(r"([a-z_]+)(\(\?!.*)", re.DOTALL)  # the pattern of a keyword: the word, and what must not follow it


class FileScan(NamedTuple):
    """What a text holds, in order."""

    parts: Sequence[Token]
    """Statements: phrases named after their rules, and what is left of broken ones."""
    comments: list[Comment]
    found: list[Diagnostic]
    """Syntax errors."""


class BrokenToken(Token):
    """The parser's token for a broken statement."""

    __slots__ = ("statement",)

    def __init__(self, statement: Broken) -> None:
        super().__init__("BROKEN", "", statement.start, statement.end)
        self.statement = statement


class FileGrammar:
    """What reading needs of the grammar file."""

    def __init__(self, folder: Path | None = None) -> None:
        data = load_grammar_data("workflow.lark", start=_FILE, also=[_SUBTASK, _MISREAD], folder=folder)
        terminals = data["terminals"]
        apart = {"TEXT", "TWO_BRACES", "X_BRACE", *data["ignored"]}
        gap = _any_of(terminals, data["ignored"], named=False)
        tokens = [name for name in terminals if name not in apart]
        self.table = Table(data["table"])
        self.gap = re.compile(_any_of(terminals, data["ignored"]))
        self.token = re.compile(f"(?:{gap})*+(?:{_any_of(terminals, tokens)})?")
        parted = {name: _parted(pattern) for name, pattern in terminals.items()}
        self.words = {name: word for name, (word, end) in parted.items() if end}
        self.marks = {name: pattern[-1] for name, pattern in terminals.items() if _MARK.fullmatch(pattern)}
        self.statement_words = set(data["first"]) - {_VERSION_WORD}
        self.soft_words = set(self.words) - self.statement_words
        """Keywords that are names where no keyword is allowed."""
        self._data = data

    @cached_property  # start-up time: many files need none of these
    def _name(self) -> re.Pattern[str]:
        return re.compile(self._data["terminals"]["NAME"])

    @cached_property
    def pieces(self) -> re.Pattern[str]:
        """What matches the parts of a subtask with braces."""
        inside = next(row for row in self._data["table"]["actions"].values() if "X_BRACE" in row)
        return re.compile(
            _any_of(self._data["terminals"], [name for name in self._data["terminals"] if name in inside])
        )

    @cached_property
    def resume(self) -> re.Pattern[str]:
        """What finds the next statement after an error."""
        starts = _any_of(self._data["terminals"], self.statement_words, named=False)
        return re.compile(rf"(?:\A|(?<=[\r\n]))[ \t]*+(?={starts})")

    def scan(self, text: str) -> FileScan:
        """Read a text of any kind."""
        return _Reading(self, text).read()

    def is_name(self, text: str, *before: str) -> bool:
        """Whether a text is read as a name after these terminals, and not as a keyword."""
        keyword = next((name for name, word in self.words.items() if word == text), None)
        if keyword and _FileStack(self.table).fits(*before, keyword):
            return False
        return self._name.fullmatch(text) is not None


class _FileStack(Stack):
    """A parse that can be asked what would fit."""

    __slots__ = ("_end", "_expected")

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._end = table.actions[table.start][_FILE]
        self._expected: dict[tuple[int, ...], frozenset[str]] = {}

    @property
    def actions(self) -> dict[str, Any]:
        """What the parser can do with the next terminal."""
        return self._actions[self._states[-1]]

    @property
    def last(self) -> list[Any]:
        """The values of the statement that is being read, and what comes before it."""
        return self._values

    def fits(self, *types: str) -> bool:
        """Whether the parser would take these terminals, one after the other."""
        states = self._states.copy()
        return all(self._shift(states, type_) for type_ in types)

    @property
    def expected(self) -> frozenset[str]:
        """The terminals that would fit."""
        key = tuple(self._states)
        if key not in self._expected:
            self._expected[key] = frozenset(name for name in self.actions if name.isupper() and self.fits(name))
        return self._expected[key]

    def _shift(self, states: list[int], type_: str) -> bool:
        while (action := self._actions[states[-1]].get(type_)) is not None:
            if isinstance(action, int):
                states.append(action)
                return True
            size, _, origin = action
            del states[len(states) - size :]
            target = self._actions[states[-1]][origin]
            assert isinstance(target, int), "a rule's name leads to a state"
            states.append(target)
        return type_ == END and states[-1] == self._end


class _Reading:
    """One text being read."""

    def __init__(self, grammar: FileGrammar, text: str) -> None:
        self._grammar = grammar
        self._text = text
        self._stack = _FileStack(grammar.table)
        self._position = 0
        self._comments: list[Comment] = []
        self._errors = SyntaxErrors(grammar.words, grammar.marks)

    def read(self) -> FileScan:
        stack, soft_words = self._stack, self._grammar.soft_words
        while (token := self._next()).type != END:
            if token.type in soft_words and token.type not in stack.actions:
                token.type = "NAME"
            if stack.feed(token) is None:
                self._recover(token)
        if not stack.fits(END):
            self._give_up(token)
        return FileScan(stack.finish(token).children, self._comments, self._errors.found)

    # ---- tokens -------------------------------------------------------------------------------------------------

    def _next(self) -> Token:
        """The next token; the position moves past it."""
        start = self._position
        token = self._token_at(start, len(self._text))
        self._position = token.end
        if self._text.find("#", start, token.start) >= 0:
            self._keep_comments(start, token.start)
        return token

    def _peek(self, position: int) -> Token:
        """The token after an offset, for recovery: a string may be cut short, and END may mean that it is far away."""
        token = self._token_at(position, min(position + _AHEAD, len(self._text)))
        if token.type == "X_OPEN_STRING":
            token.type = "STRING"
        return token

    def _token_at(self, position: int, end_of_text: int) -> Token:
        match = self._grammar.token.match(self._text, position, end_of_text)
        assert match, "it matches the empty text"
        name = match.lastgroup
        if name is None:
            return Token(END, "", end_of_text, end_of_text)
        start, end = match.span(name)
        return Token(name, self._text[start:end], start, end)

    def _keep_comments(self, start: int, end: int) -> None:
        for match in self._grammar.gap.finditer(self._text, start, end):
            if match.lastgroup == "COMMENT":
                self._comments.append(Comment(match[0].rstrip(), *match.span()))

    # ---- error recovery ----------------------------------------------------------------------------------------

    def _recover(self, token: Token) -> None:
        """Report an unexpected token, and bring the parser to where reading can continue."""
        if self._ends_swallowed_text(token):
            return
        if token.type == "X_OPEN_STRING":
            self._close_string(token)
        elif not any(repair(token) for repair in (self._respell, self._leave_out, self._replace, self._insert)):
            self._give_up(token)

    def _fits(self, *types: str) -> bool:
        """Whether these terminals fit, words also as names."""
        named = tuple("NAME" if type_ in self._grammar.soft_words else type_ for type_ in types)
        return self._stack.fits(*types) or (named != types and self._stack.fits(*named))

    def _feed_instead(self, type_: str, token: Token) -> None:
        """Feed a keyword or mark in the place of a token."""
        written = self._grammar.words.get(type_) or self._grammar.marks[type_]
        self._stack.feed(Token(type_, written, token.start, token.end))

    def _respell(self, token: Token) -> bool:
        """A misspelt keyword."""
        if token.type != "NAME" or self._is_too_much(token):
            return False
        expected = self._stack.expected
        fitting = {word: name for name, word in self._grammar.words.items() if name in expected}
        word = self._errors.misspelt(token, fitting)
        if word is not None:
            self._feed_instead(fitting[word], token)
        return word is not None

    def _insert(self, token: Token) -> bool:
        """A missing mark, or `by` directly after the name of a step."""
        values = self._stack.last
        after_name = len(values) > 1 and _type(values[-2]) == "STEP"
        for mark in (*self._grammar.marks, "BY") if after_name else self._grammar.marks:
            if self._fits(mark, token.type):
                self._errors.missing(mark, token)
                self._feed_instead(mark, Token(mark, "", token.start, token.start))
                token.type = token.type if self._stack.fits(token.type) else "NAME"
                self._stack.feed(token)
                return True
        return False

    def _replace(self, token: Token) -> bool:
        """One mark for another."""
        if not self._is_mark(token) and token.text != "and":
            return False
        following = self._peek(token.end).type
        for mark in self._grammar.marks:
            if mark != token.type and self._fits(mark, following):
                self._errors.confused(mark, token)
                self._feed_instead(mark, token)
                return True
        return False

    def _leave_out(self, token: Token) -> bool:
        """A mark too many, or a word as in `sees all steps`."""
        following = self._peek(token.end)
        on_the_line = "\n" not in self._text[token.end : following.start]  # else it tells nothing
        if (
            not (self._is_mark(token) or self._is_too_much(token))
            or not on_the_line
            or not self._stack.fits(following.type)
        ):
            return False
        self._errors.superfluous(token)
        return True

    def _is_mark(self, token: Token) -> bool:
        return token.type in self._grammar.marks or (token.type == "X_OTHER" and token.text not in _NEVER_TOO_MANY)

    def _is_too_much(self, token: Token) -> bool:
        return token.text == "steps" and bool(self._stack.last) and _type(self._stack.last[-1]) == "ALL"

    # ---- texts that are not closed ------------------------------------------------------------------------------

    def _close_string(self, token: Token) -> None:
        """Take a text without an end as far as it can be meant, and continue at the next statement."""
        bare = token.text.lstrip("rRuU")
        quote = bare[:3] if bare.startswith(3 * bare[0]) else bare[0]
        resume = self._grammar.resume.search(self._text, token.start + 1, token.end) if len(quote) == 3 else None
        end = resume.start() if resume else token.end
        self._errors.open_string(token, quote)
        if self._fits("STRING"):
            self._stack.feed(Token("STRING", self._text[token.start : end] + quote, token.start, end))
        self._continue_at(end)

    def _ends_swallowed_text(self, token: Token) -> bool:
        """Whether the error comes from a text that was not closed and so contains statements."""
        last = self._stack.last[-1] if self._stack.last else token
        if _type(last) != "STRING" or not is_long(last.text):
            return False
        resume = self._grammar.resume.search(self._text, last.start + 1, last.end)
        if resume is None or not self._begins_statement(resume.end()):
            return False
        self._errors.swallowed(last, token)
        self._continue_at(resume.start())
        return True

    def _begins_statement(self, position: int) -> bool:
        """Whether the first three tokens here are those of a statement."""
        types = []
        for _ in range(3):
            token = self._peek(position)
            types.append(token.type)
            position = token.end
        if types[0] not in self._grammar.statement_words:
            return False
        fresh = _FileStack(self._grammar.table)
        return fresh.fits(*types) or fresh.fits(types[0], "NAME", types[2])

    # ---- continuing --------------------------------------------------------------------------------------------

    def _give_up(self, token: Token) -> None:
        """Report the unexpected token, and continue at the next statement."""
        at = self._opening()
        values = self._stack.last
        before = [_type(value) for value in values[-2:]]
        self._errors.unexpected(token, self._stack.expected, None if at is None else values[at], before)
        self._continue_at(token.start)

    def _opening(self) -> int | None:
        """Where the keyword of the statement that is being read lies among the values."""
        keywords = self._grammar.statement_words | {_VERSION_WORD}
        values = self._stack.last
        return next((at for at in range(len(values) - 1, -1, -1) if _type(values[at]) in keywords), None)

    def _continue_at(self, position: int) -> None:
        """Continue at the next statement: the one that begins here, or the next at the start of a line."""
        at = self._opening()
        if at is not None and not self._stack.fits("STEP"):
            self._break_off(at, position)
        else:
            self._stack.feed(BrokenToken(Broken("", None, position, position)))
        if self._begins_statement(position):
            self._position = position
            return
        found = self._grammar.resume.search(self._text, position)
        self._position = found.start() if found else len(self._text)

    def _break_off(self, at: int, end: int) -> None:
        """Put BROKEN in the place of what has been read of a statement."""
        keyword, *rest = self._stack.last[at:]
        name = rest[0] if rest and _type(rest[0]) == "NAME" else None
        operand = Operand("name", name.text, name.start, name.end) if name else None
        self._stack.cut_back(at)
        self._stack.feed(BrokenToken(Broken(self._grammar.words[keyword.type], operand, keyword.start, end)))


def _type(value: Token | list[Token]) -> str:
    """The type of a value of the parser; a list is what a rule has collected so far."""
    return "" if isinstance(value, list) else value.type


def _any_of(terminals: dict[str, str], names: Iterable[str], *, named: bool = True) -> str:
    """What matches any of some terminals.

    What must not follow a keyword is long, and said once for all keywords: `wfdsl check` compiles it each time.
    """
    found = []
    parted = [(name, *_parted(terminals[name])) for name in names]
    for end, group in groupby(parted, key=itemgetter(2)):
        found.append("|".join(f"(?P<{name}>{word})" if named else f"(?:{word})" for name, word, _ in group))
        if end:
            found[-1] = f"(?:{found[-1]}){end}"
    return "|".join(found)


def _parted(pattern: str) -> tuple[str, str]:
    """The word of a keyword's pattern, and what must not follow it; of others the whole, and nothing."""
    found = _WORD.fullmatch(pattern)
    return (found[1], found[2]) if found else (pattern, "")


@cache
def file_grammar() -> FileGrammar:
    """The grammar that comes with the package."""
    return FileGrammar()
