"""Syntax errors of completions, in words: what is written instead of a literal, or which list is missing.

The grammar decides where an error is; this looks at the text around that place to say what the writer did.
"""

from __future__ import annotations

import re

from wfdsl.language.completion_groups import LABELS, Group, Groups, Listed, label_of
from wfdsl.language.completion_scanner import BadList
from wfdsl.language.diagnostics import Diagnostic
from wfdsl.language.grammar import Token
from wfdsl.language.reasoning import MARKER, begins
from wfdsl.language.source import Span

_WORD = re.compile(r"\w+")
_PREFIXED = re.compile(r"(?P<prefix>[bBfFrRuUtT]{1,2})[\"']")
_REST_OF_LINE = re.compile(r"[^\r\n]{0,40}")
_SEPARATED = re.compile(r"[\[(,]\s*\Z")
_KEYWORDS = {"for", "if", "else", "in", "lambda", "not", "and", "or", "is", "await", "yield"}
_PREFIXES = {"b": "bytes", "f": "an f-string", "t": "a template string"}
_LISTED_NAME = re.compile(r"(?<!\w)(?P<name>\w{1,40})(?!\w)[\"'`*]{0,4}[ \t]{0,4}[=:][ \t]{0,4}\[")
_LABEL_HERE = re.compile(rf"[\"'`*#<\-\s/]{{0,8}}(?P<label>{'|'.join(LABELS)})[\"'`*\s]{{0,8}}[=:：>]")
_LABEL_BEFORE = re.compile(rf"[\"'](?P<label>{'|'.join(LABELS)})[\"']\s*\Z")
_WORD_BEFORE = re.compile(r"\w+\Z")
_BINDING = re.compile(r"[\"'`*]{0,4}\s{0,20}(?:=|:|：)\s{0,20}(?P<list>[\[(])?")
_MOST_OF_NAME = 40  # characters of a longer name around a label
_MOST_MENTIONS = 200  # places where a label is written that are looked at, from the end
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


def missing_marker(text: str) -> Diagnostic:
    """All of a text is reasoning, since the line after which a grammar puts the lists is not there."""
    message = f"there is no workflow: the line `{MARKER}` does not follow the first `</think>`"
    help_ = "raise the token limit, and see that the server applies the grammar; without one, leave `marked` out"
    return Diagnostic("list-missing", "error", message, _end_of(text), help=help_)


def missing_lists(text: str, groups: Groups) -> list[Diagnostic]:
    """Why there is no answer: lists are missing, do not count, or are not next to each other."""
    found = {label_of(listed) for listed in groups.lists}
    missing = [label for label in LABELS if label not in found]
    if not missing:
        return [_split(groups.lists)]
    if not found and not groups.hidden and not any(text.find(label, groups.start) >= 0 for label in LABELS):
        message = "there is no workflow: all three lists are missing"
        help_ = "write `model_id = [...]`, `subtasks = [...]` and `access_list = [...]`"
        if re.search(r"^step \S+ by ", text, re.MULTILINE):
            help_ += "; a workflow file ends in `.wf`, or is read with `--form wf`"
        return [Diagnostic("list-missing", "error", message, _end_of(text), help=help_)]
    found_in = _found_in_lists(text, groups.lists)
    hidden = [_hidden(tag, labels) for tag, labels in _by_tag(groups, missing)]
    return [
        *hidden,
        *(
            _not_closed(*found_in[label]) if label in found_in else _missing(text, label, groups)
            for label in missing
            if label not in groups.hidden
        ),
    ]


def _found_in_lists(text: str, lists: list[Listed]) -> dict[str, tuple[Span, BadList]]:
    """Labels that were read as an item of a list that is not closed before them."""
    bad_lists = [listed for listed in lists if isinstance(listed, BadList)]
    following = [(_following_label(text, bad), bad) for bad in bad_lists]
    return {text[span.start : span.end]: (span, bad) for span, bad in following if span}


def _split(lists: list[Listed]) -> Diagnostic:
    """All three lists are there, but never three different ones next to each other."""
    again = lists[-1] if label_of(lists[-1]) in map(label_of, lists[-3:-1]) else lists[-2]
    message = f"the three lists are not next to each other: `{label_of(again)}` is written more than once"
    help_ = "write each of the three lists once, without another labelled list between them"
    return Diagnostic("list-split", "error", message, _label_span(again), help=help_)


def ambiguous_lists(rival: Listed) -> Diagnostic:
    """There are several ways to cut the lists into groups, with different values."""
    message = f"it is not clear which lists are the answer: `{label_of(rival)}` is written with different values"
    help_ = "write the answer once more: model_id, subtasks, access_list, in this order, and nothing after them"
    return Diagnostic("lists-ambiguous", "error", message, _label_span(rival), help=help_)


def replaced_lists(draft: Listed, answer: Group) -> Diagnostic:
    """The answer is not the only group of three lists, and another one before it says something else."""
    first = min(answer.values(), key=lambda listed: listed.start)
    message = f"the three lists from here on are the answer, and not those before: `{label_of(draft)}` differs"
    help_ = "the last three lists count, whatever is written about them: if they are not meant, leave them out"
    return Diagnostic("lists-replaced", "note", message, _label_span(first), help=help_)


def _label_span(listed: Listed) -> Span:
    start = listed.start
    return Span(start, min(listed.end, start + len(label_of(listed))))


def _by_tag(groups: Groups, missing: list[str]) -> list[tuple[Token, list[str]]]:
    tags: dict[int, tuple[Token, list[str]]] = {}
    for label in missing:
        if tag := groups.hidden.get(label):
            tags.setdefault(tag.start, (tag, []))[1].append(label)
    return list(tags.values())


def _hidden(tag: Token, labels: list[str]) -> Diagnostic:
    """Lists that are only in reasoning."""
    named = ", ".join(f"`{label}`" for label in labels)
    what = f"the list {named} is" if len(labels) == 1 else f"the lists {named} are"
    span = Span(tag.start, tag.end)
    if begins(tag.type):
        message = f"{what} part of the reasoning, because this `{tag.text}` is not closed"
        return Diagnostic("list-missing", "error", message, span, help="close the reasoning before the three lists")
    message = f"{what} only in the reasoning before this `{tag.text}`, where lists do not count"
    return Diagnostic("list-missing", "error", message, span, help="write the three lists after the reasoning")


def _missing(text: str, label: str, groups: Groups) -> Diagnostic:
    mention = _mention(text, label, groups)
    if mention is None:
        return _not_there(text, label, groups.start)
    word, binds = mention
    name = text[word.start : word.end]
    if name != label:
        message = f"`{name}` is one name, and not the label `{label}`"
        help_ = f"write `{label} = [...]` on a line of its own"
        return Diagnostic("list-missing", "error", message, word, help=help_)
    if not binds and (close := _close_name(text, label, groups.start)):
        return _did_you_mean(label, close)
    message = f"`{label}` is not followed by its list"
    help_ = f"write `=` or `:` after the label, and then the list: `{label} = [...]`"
    return Diagnostic("list-missing", "error", message, word, help=help_)


def _mention(text: str, label: str, groups: Groups) -> tuple[Span, bool] | None:
    """The last place outside the lists where a label is written, and whether it is bound to something there.

    A place where it is bound is preferred; as a part of a longer name it counts only there.
    """
    plain: Span | None = None
    lists = groups.lists
    end, before = len(text), len(lists)
    for _ in range(_MOST_MENTIONS):
        if (at := text.rfind(label, groups.start, end)) < 0:
            break
        end = at
        while before and lists[before - 1].start > at:
            before -= 1
        if before and at < lists[before - 1].end:
            continue
        word = _whole_word(text, at, at + len(label))
        bound = _BINDING.match(text, word.end)
        is_label = word.end - word.start == len(label)
        if bound and (is_label or bound["list"]):
            return word, True
        if is_label and plain is None:
            plain = word
    return (plain, False) if plain else None


def _whole_word(text: str, start: int, end: int) -> Span:
    before, after = _WORD_BEFORE.search(text, max(0, start - _MOST_OF_NAME), start), _WORD.match(text, end)
    return Span(before.start() if before else start, min(after.end(), end + _MOST_OF_NAME) if after else end)


def _not_there(text: str, label: str, start: int) -> Diagnostic:
    if close := _close_name(text, label, start):
        return _did_you_mean(label, close)
    help_ = f"write `{label} = [...]`, with one item per step"
    return Diagnostic("list-missing", "error", f"the list `{label}` is missing", _end_of(text), help=help_)


def _did_you_mean(label: str, written: Span) -> Diagnostic:
    message = f"the list `{label}` is missing"
    return Diagnostic("list-missing", "error", message, written, f"did you mean `{label}`?")


def _close_name(text: str, label: str, start: int) -> Span | None:
    """A name with a list that looks like a misspelled label."""
    tail = len(text) - _LOOK_FOR_NAMES
    names = {found["name"]: found.span("name") for found in _LISTED_NAME.finditer(text, max(start, tail))}
    from difflib import get_close_matches  # noqa: PLC0415  (start-up time, and only for a list that is not there)

    close = get_close_matches(label, [name for name in names if name not in LABELS], n=1)
    return Span(*names[close[0]]) if close else None


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
    if following := _following_label(text, bad):
        return _not_closed(following, bad)
    what, help_, end = _culprit(text, bad)
    message = f"the list of `{label}` is not a literal: {what}"
    return Diagnostic("not-a-literal", "error", message, Span(at, end), help=help_)


def _not_closed(following: Span, bad: BadList) -> Diagnostic:
    message = f"the list of `{label_of(bad)}` is not closed"
    help_ = f"write `]` at the end of the list of `{label_of(bad)}`"
    return Diagnostic("not-a-literal", "error", message, following, "it continues up to here", help_)


def _following_label(text: str, bad: BadList) -> Span | None:
    """The next label, if it begins where the list stops being a literal, or is the string before that place."""
    found = _LABEL_HERE.match(text, bad.error)
    if not found and text[bad.error] in ":=：":
        found = _LABEL_BEFORE.search(text, max(bad.opened, bad.error - _LOOK_BACK), bad.error)
    return Span(*found.span("label")) if found else None


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
    gap = text[max(bad.opened, word.start() - _LOOK_BACK) : word.start()]
    before = gap.rstrip()
    if before.endswith(('"', "'", "”", "’")):
        quote = before[-1] if before[-1] in "\"'" else '"'
        return f"`{name}` follows a closed string", f"a quote inside a string is written as \\{quote}", end
    if name in _KEYWORDS:
        return f"`{name}` belongs to code", "write the finished value: nothing is computed", end
    if before.endswith(("[", ",", "(")):
        return f"`{name}` is a name", "write integers, or strings between quotes", end
    if "\n" in gap[len(before) :]:
        return f"`{name}` is not an item", "write `]` at the end of the list", end
    return f"a comma is missing before `{name}`", "put a comma between the items", end
