"""Which of the lists in a completion are the answer.

A group is three neighbouring lists with three different labels. The lists are cut into groups so that as few as
possible are left over, and the last group is the answer; of several such cuts the one whose last group is in the order
model_id, subtasks, access_list counts. Where the answer is not in this order, no group that overlaps with it may say
something else. Three lists with no prose between them, and prose around them, are always one group.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from wfdsl.language.completion_scanner import REASONING_MARKS, BadList
from wfdsl.language.grammar import Phrase, Token
from wfdsl.language.reasoning import begins, ends

LABELS = ("model_id", "subtasks", "access_list")
Listed: TypeAlias = Phrase | BadList
Group: TypeAlias = dict[str, Listed]
_SIZE = len(LABELS)
_NO_PROSE = re.compile(r"\A[ \t,;]*(?:#|//)[^\r\n]*|</?[^<>]{0,60}>|<[^<>]{0,60}\Z|(?<![\w.\[])[\w.\[]{1,20}[\"']?\Z")
_WORD = re.compile(r"[^\W\d_]|```|\}")


class Groups(NamedTuple):
    """The group that counts, if there is one, and what else a reader has to know about the lists."""

    answer: Group | None
    ambiguous: list[Listed]
    """The lists of groups that overlap with the answer, and make it unknown if their values differ."""
    mentions: list[Listed]
    """Other lists after the answer, and those of groups that overlap with it where its order decides."""
    draft: list[Listed]
    """The last group that ends before the answer, if there is one."""
    changes: list[Token]
    """Code that changes a list of the answer after it."""
    lists: list[Listed]
    """All lists outside reasoning."""
    hidden: dict[str, Token]
    """By label, the mark that makes reasoning of the last list in reasoning: the opening one if it is not closed."""
    cut: BadList | None
    """The list that the text ends in."""
    start: int
    """Where what is read begins."""


def label_of(listed: Listed) -> str:
    """The label of a list, as it should be spelled."""
    return listed.type if isinstance(listed, Phrase) else listed.label.type.removeprefix("X_").lower()


def changed_label(change: Token) -> str:
    """The label of the list that a change is about."""
    return next(label for label in LABELS if change.text.startswith(label))


def choose(text: str, parts: Sequence[Token], start: int = 0) -> Groups:
    """Find the answer among the parts of a completion, which is read from an offset on."""
    kept, hidden = _outside_reasoning(parts)
    lists = [part for part in kept if isinstance(part, Phrase | BadList)]
    # A text that ends inside a list was cut off, also where it had gone back to reasoning.
    end = parts[-1] if parts else None
    cut = end if isinstance(end, BadList) and end.cut else None
    groups = _possible_groups(text, lists)
    if len(groups) == 1 == len(lists) - 2:
        answer = {label_of(listed): listed for listed in lists}
        return Groups(answer, [], [], [], _changes(kept, answer), lists, hidden, cut, start)
    if not groups:
        return Groups(None, [], [], [], [], lists, hidden, cut, start)
    last = _last_group(lists, groups)
    overlapping = {at for first in groups if abs(first - last) < _SIZE for at in range(first, first + _SIZE)}
    outside = [lists[at] for at in sorted(overlapping - set(range(last, last + _SIZE)))]
    after = [lists[at] for at in range(last + _SIZE, len(lists)) if at not in overlapping]
    before = [] if outside else [first for first in groups if first <= last - _SIZE]
    answer = {label_of(listed): listed for listed in lists[last : last + _SIZE]}
    decided = _in_order(lists, last)
    return Groups(
        answer,
        [] if decided else outside,
        [*outside, *after] if decided else after,
        lists[before[-1] : before[-1] + _SIZE] if before else [],
        _changes(kept, answer),
        lists,
        hidden,
        cut,
        start,
    )


def _changes(kept: list[Token], answer: Group) -> list[Token]:
    return [part for part in kept if part.type == "CHANGE" and part.start > answer[changed_label(part)].end]


def _outside_reasoning(parts: Sequence[Token]) -> tuple[list[Token], dict[str, Token]]:
    """The parts that are neither between marks of reasoning, nor before or after a lone one."""
    kept: list[Token] = []
    hidden: dict[str, Token] = {}
    opened = 0
    mark: Token | None = None
    for part in parts:
        if part.type not in REASONING_MARKS:
            kept.append(part)
        elif ends(part.type, mark.type if mark else ""):
            _hide(kept, opened if mark else 0, part, hidden)
            mark = None
        elif begins(part.type) and mark is None:
            opened, mark = len(kept), part
    if mark is not None:
        _hide(kept, opened, mark, hidden)
    return kept, hidden


def _hide(kept: list[Token], start: int, tag: Token, hidden: dict[str, Token]) -> None:
    hidden.update((label_of(part), tag) for part in kept[start:] if isinstance(part, Phrase | BadList))
    del kept[start:]


def _possible_groups(text: str, lists: list[Listed]) -> list[int]:
    """Where a group may begin: none overlaps with three lists that stand alone."""
    labels = [label_of(listed) for listed in lists]
    groups = [first for first in range(len(labels) - _SIZE + 1) if len(set(labels[first : first + _SIZE])) == _SIZE]
    if len(lists) == _SIZE:
        return groups
    apart = [True, *(_is_prose(text, one, other) for one, other in pairwise(lists)), True]
    alone = {first for first in groups if apart[first : first + _SIZE + 1] == [True, False, False, True]}
    return [first for first in groups if first in alone or not alone.intersection(range(first - 2, first + _SIZE))]


def _is_prose(text: str, one: Listed, other: Listed) -> bool:
    """Whether there are words between two lists, a code fence or the end of a dict; comments and tags do not count."""
    return bool(_WORD.search(_NO_PROSE.sub("", text[one.end : other.start])))


def _last_group(lists: list[Listed], groups: list[int]) -> int:
    """Where the last group begins, in the cut that leaves the fewest lists over."""
    begins_here = set(groups)
    most = [0] * _SIZE  # by number of lists: the most groups that the first so many lists can be cut into
    for end in range(_SIZE, len(lists) + 1):
        most.append(max(most[-1], most[end - _SIZE] + (end - _SIZE in begins_here)))
    best = most[-1]
    late = most.index(best) - 1  # none begins later: what is before it must leave room for all groups but one
    options = [first for first in range(late - 2, late + 1) if first in begins_here and most[first] == best - 1]
    return ([first for first in options if _in_order(lists, first)] or options)[-1]


def _in_order(lists: list[Listed], first: int) -> bool:
    return tuple(map(label_of, lists[first : first + _SIZE])) == LABELS
