"""Which of the lists in a completion are the answer.

Lists in reasoning tags are none; the others are grouped from left to right, and the last group that has all three
labels counts, right or wrong, so that an earlier draft never takes the place of a later answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from wfdsl.language.lalr import Phrase
from wfdsl.language.scan import BadList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.language.lalr import Token

LABELS = ("model_id", "subtasks", "access_list")
Listed: TypeAlias = Phrase | BadList
Group: TypeAlias = dict[str, Listed]


class Groups(NamedTuple):
    """The group that counts, if one does; else the last one that comes closest, and the list that the text ends in."""

    answer: Group | None
    partial: Group
    cut: BadList | None


def label_of(listed: Listed) -> str:
    """The label of a list, as it should be spelled."""
    return listed.type if isinstance(listed, Phrase) else listed.label.type.removeprefix("X_").lower()


def choose(parts: Sequence[Token]) -> Groups:
    """Find the answer among the parts of a completion."""
    lists = _outside_reasoning(parts)
    groups = _grouped(lists)
    answer = next((group for group in reversed(groups) if len(group) == len(LABELS)), None)
    partial = max(reversed(groups), key=len, default={})
    # A text that ends inside a list was cut off, also where it had gone back to reasoning.
    last = parts[-1] if parts else None
    return Groups(answer, partial, last if isinstance(last, BadList) and last.cut else None)


def _outside_reasoning(parts: Sequence[Token]) -> list[Listed]:
    """The lists that stand neither between reasoning tags, nor before a lone closing, nor behind a lone opening one."""
    kept: list[Listed] = []
    opened: int | None = None
    for part in parts:
        if isinstance(part, Phrase | BadList):
            kept.append(part)
        elif part.type == "END_THINK":
            del kept[opened or 0 :]
            opened = None
        elif opened is None:
            opened = len(kept)
    return kept if opened is None else kept[:opened]


def _grouped(lists: list[Listed]) -> list[Group]:
    """Three labels that follow one another in their order are always a group; else one starts when a label returns."""
    labels = [label_of(listed) for listed in lists]
    groups: list[Group] = [{}]
    index = 0
    while index < len(lists):
        if tuple(labels[index : index + 3]) == LABELS:
            groups += [dict(zip(LABELS, lists[index : index + 3], strict=True)), {}]
            index += 3
            continue
        if labels[index] in groups[-1]:
            groups.append({})
        groups[-1][labels[index]] = lists[index]
        index += 1
    return [group for group in groups if group]
