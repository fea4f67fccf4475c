"""Which of the lists in a completion are the answer.

A group is three neighbouring lists with three different labels. The lists are cut into groups so that as few as
possible are left over, and the last group is the answer. Of several such cuts the one whose last group is in the order
model_id, subtasks, access_list counts; if none is, their values decide whether the answer is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from wfdsl.language.completion_scanner import REASONING_MARKS, BadList
from wfdsl.language.lalr import Phrase, Token
from wfdsl.language.reasoning import begins, ends

LABELS = ("model_id", "subtasks", "access_list")
Listed: TypeAlias = Phrase | BadList
Group: TypeAlias = dict[str, Listed]
_SIZE = len(LABELS)
_TWO_GROUPS = 2


class Groups(NamedTuple):
    """The group that counts, if there is one, and what else a reader has to know about the lists."""

    answer: Group | None
    rivals: list[Listed]
    """Lists outside the answer that could be meant instead. Where their values differ, it is not a matter of course."""
    ambiguous: list[Listed]
    """Those of them that no rule excludes: with other values than the answer's they make it unknown."""
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


def choose(parts: Sequence[Token], start: int = 0) -> Groups:
    """Find the answer among the parts of a completion, which is read from an offset on."""
    kept, hidden = _outside_reasoning(parts)
    lists = [part for part in kept if isinstance(part, Phrase | BadList)]
    # A text that ends inside a list was cut off, also where it had gone back to reasoning.
    end = parts[-1] if parts else None
    cut = end if isinstance(end, BadList) and end.cut else None
    last, rivals, ambiguous = _cut([label_of(listed) for listed in lists])
    if last is None:
        return Groups(None, [], [], [], lists, hidden, cut, start)
    answer = {label_of(listed): listed for listed in lists[last : last + _SIZE]}
    changes = [part for part in kept if part.type == "CHANGE" and part.start > answer[changed_label(part)].end]
    return Groups(
        answer,
        [lists[index] for index in rivals],
        [lists[index] for index in ambiguous],
        changes,
        lists,
        hidden,
        cut,
        start,
    )


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


def _cut(labels: list[str]) -> tuple[int | None, Sequence[int], Sequence[int]]:
    """Where the answer begins, and the lists that are rivals and ambiguous (see `Groups`)."""
    if len(labels) == _SIZE:
        return (0 if len(set(labels)) == _SIZE else None), (), ()
    most = [0] * _SIZE  # by number of lists: the most groups that the first so many lists can be cut into
    for end in range(_SIZE, len(labels) + 1):
        most.append(max(most[-1], most[end - _SIZE] + _is_group(labels, end - _SIZE)))
    if not most[-1]:
        return None, (), ()
    options = _last_groups(labels, most)
    in_order = [first for first in options if tuple(labels[first : first + _SIZE]) == LABELS]
    last = (in_order or options)[-1]
    return last, _rivals(labels, most, last), () if in_order else range(options[0], last)


def _is_group(labels: list[str], first: int) -> bool:
    return first >= 0 and len(set(labels[first : first + _SIZE])) == _SIZE


def _last_groups(labels: list[str], most: list[int]) -> list[int]:
    """Where the last group of each best cut begins. These groups overlap, so there are at most three."""
    best = most[-1]
    late = most.index(best) - 1  # none begins later: what is before it must leave room for all groups but one
    return [first for first in range(late - 2, late + 1) if _is_group(labels, first) and most[first] == best - 1]


def _rivals(labels: list[str], most: list[int], last: int) -> list[int]:
    """The lists after the answer, and those just before it that could belong to it.

    Two groups that leave nothing over are a draft and the answer.
    """
    if len(labels) == _TWO_GROUPS * _SIZE and most[-1] == _TWO_GROUPS:
        return []
    in_order = tuple(labels[last : last + _SIZE]) == LABELS
    before = [
        index
        for index in range(max(0, last - 2), last)
        if any(_is_group(labels, first) for first in range(last - 2, index + 1))
        or (not in_order and most[index] == most[last])
    ]
    return [*before, *range(last + _SIZE, len(labels))]
