"""Syntax errors of completions, in words: what is written instead of a literal, or which list is missing.

The grammar decides where an error is; this looks at the text around that place to say what the writer did.
"""

from __future__ import annotations

import re

from wfdsl.language.completion_scanner import LABELS, BadList, Group, label_of
from wfdsl.language.diagnostics.diagnostic import Diagnostic
from wfdsl.language.source import Span

_WORD = re.compile(r"\w+")
_PREFIXED = re.compile(r"(?P<prefix>[bBfFrRuUtT]{1,2})[\"']")
_REST_OF_LINE = re.compile(r"[^\r\n]{0,40}")
_SEPARATED = re.compile(r"[\[(,]\s*\Z")
_KEYWORDS = {"for", "if", "else", "in", "lambda", "not", "and", "or", "is", "await", "yield"}
_PREFIXES = {"b": "bytes", "f": "an f-string", "t": "a template string"}
_LISTED_NAME = re.compile(r"(?<!\w)(?P<name>\w{1,40})(?!\w)[\"'`*]{0,4}[ \t]{0,4}[=:][ \t]{0,4}\[")
_LOOK_BACK = 200  # characters before an error that are looked at
_LOOK_FOR_NAMES = 20_000  # characters before the end in which a misspelled label is looked for


def cut_list(text: str, bad: BadList) -> Diagnostic:
    """The text ends inside a list."""
    return Diagnostic(
        "list-truncated",
        "error",
        f"the text ends inside the list of `{label_of(bad)}`",
        Span(bad.opened, bad.opened + 1) if bad.opened < len(text) else Span(len(text), len(text)),
        "this list is not closed",
        "let the completion end with the closing bracket of its last list: raise the token limit, or write less",
    )


def missing_lists(text: str, partial: Group) -> list[Diagnostic]:
    """The missing lists; `partial` holds the others."""
    if not partial and not any(label in text for label in LABELS):
        message = "there is no workflow: all three lists are missing"
        help_ = "write `model_id = [...]`, `subtasks = [...]` and `access_list = [...]`"
        return [Diagnostic("list-missing", "error", message, _end_of(text), help=help_)]
    return [_missing(text, label) for label in LABELS if label not in partial]


def _missing(text: str, label: str) -> Diagnostic:
    at = text.rfind(label)
    if at < 0:
        return _not_there(text, label)
    message = f"`{label}` is not followed by its list"
    help_ = f"write `=` or `:` after the label, and then the list: `{label} = [...]`"
    return Diagnostic("list-missing", "error", message, Span(at, at + len(label)), help=help_)


def _not_there(text: str, label: str) -> Diagnostic:
    message = f"the list `{label}` is missing"
    tail = len(text) - _LOOK_FOR_NAMES
    names = {found["name"]: found.span("name") for found in _LISTED_NAME.finditer(text, max(0, tail))}
    from difflib import get_close_matches  # noqa: PLC0415  (start-up time, and only for a list that is not there)

    close = get_close_matches(label, [name for name in names if name not in LABELS], n=1)
    if close:
        return Diagnostic("list-missing", "error", message, Span(*names[close[0]]), f"did you mean `{label}`?")
    help_ = f"write `{label} = [...]`, with one item per step"
    return Diagnostic("list-missing", "error", message, _end_of(text), help=help_)


def _end_of(text: str) -> Span:
    end = len(text.rstrip())
    return Span(end, end)


def unexpected(text: str, bad: BadList) -> Diagnostic:
    """What is written where the list stops being a literal."""
    at = bad.error
    label = label_of(bad)
    if text[at] == "]":
        return _continued(text, at, label)
    if text[at] == "[" and _SEPARATED.search(text, max(bad.opened, at - _LOOK_BACK), at):
        message = f"the list of `{label}` has a third level of brackets"
        return Diagnostic(
            "nested-too-deep", "error", message, Span(at, at + 1), "this bracket", "remove a pair of brackets"
        )
    what, help_, end = _culprit(text, bad)
    message = f"the list of `{label}` is not a literal: {what}"
    return Diagnostic("not-a-literal", "error", message, Span(at, end), help=help_)


def _continued(text: str, at: int, label: str) -> Diagnostic:
    rest = _REST_OF_LINE.match(text, at + 1)
    end = rest.end() if rest else at + 1
    return Diagnostic(
        "list-continued",
        "error",
        f"the list of `{label}` continues after its closing bracket",
        Span(at + 1, end),
        "this would change its value",
        "write the finished list: nothing is computed",
    )


def _culprit(text: str, bad: BadList) -> tuple[str, str, int]:
    """What the error is, what to write instead, and where it ends."""
    at = bad.error
    char = text[at]
    prefixed = _PREFIXED.match(text, at)
    if prefixed:
        kind = _PREFIXES.get(prefixed["prefix"].lower().strip("r") or "r", "a string with an unknown prefix")
        return f"{kind} is not one", "write a plain string", prefixed.end()
    word = _WORD.match(text, at)
    if word:
        return _culprit_word(text, bad, word)
    if char == "{":
        return "a dict or set is not one", "write only integers, strings and lists of them", at + 1
    if char == "*":
        return "a starred item is not one", "write every item out", at + 1
    if text.startswith("...", at):
        return "`...` is not one", "write every item out", at + 3
    if char in "+-/%|&<>=@^~!":
        return f"the operator `{char}` is not one", "write the finished value: nothing is computed", at + 1
    if char in "[(":
        return "a comma is missing before this bracket", "put a comma between the items", at + 1
    if char in "\"'“‘":
        return "a comma is missing before this string", "put a comma between the items", at + 1
    what = f"`{char}`" if char.isprintable() else "an invisible character"
    return f"{what} does not belong here", "write only integers, strings and lists, separated by commas", at + 1


def _culprit_word(text: str, bad: BadList, word: re.Match[str]) -> tuple[str, str, int]:
    name = word[0][:40]
    end = word.start() + len(name)
    before = text[max(bad.opened, word.start() - _LOOK_BACK) : word.start()].rstrip()
    if before.endswith(('"', "'", "”", "’")):
        quote = before[-1] if before[-1] in "\"'" else '"'
        return f"`{name}` follows a closed string", f"a quote inside a string is written as \\{quote}", end
    if name in _KEYWORDS:
        return f"`{name}` belongs to code", "write the finished value: nothing is computed", end
    if before.endswith(("[", ",", "(")):
        return f"`{name}` is a name", "write integers, or strings between quotes", end
    return f"a comma is missing before `{name}`", "put a comma between the items", end
