"""The LALR loop: tokens in, phrases out, by the table that Lark makes from a grammar file.

It is our own because with Lark's parser (fed by our scanner, tables from its disk cache) parse + check takes 1.7 times
as long and `wfdsl check` starts at 12.0 instead of 8.5 times bare Python (measured in November 2026), and because a
list with an error has to be taken off the stack again. What a rule makes of its children is Lark's convention: filtered
terminals are dropped, rules named "_..." are replaced by their children, and "?" rules pass an only child on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from wfdsl.language.grammar import RuleData, TableData

END = "$END"
Reduction: TypeAlias = tuple[int, "Callable[[list[Any]], Any] | None", str]
"""How many values a rule takes off the stack, what it makes of them (None: it passes its only one on), its name."""


class Token:
    """What the grammar found in the text: a terminal's match, with its text and offsets."""

    __slots__ = ("children", "end", "start", "text", "type")

    def __init__(self, type_: str, text: str, start: int, end: int) -> None:
        self.type = type_
        """The name of the terminal; of a phrase, the name of its rule or alternative."""
        self.text = text
        self.start = start
        self.end = end
        self.children: Sequence[Token] = ()


class Phrase(Token):
    """A rule's match: what it is made of, from the first token to the last.

    Its first and last child may be a bracket, of which only the offset is kept: where it starts, or where it ends.
    """

    __slots__ = ()

    def __init__(self, type_: str, children: list[Any]) -> None:
        self.type = type_
        self.text = ""
        first: Any = children[0] if children else 0
        last: Any = children[-1] if children else 0
        self.start = first if type(first) is int else first.start
        self.end = last if type(last) is int else last.end
        self.children = children


class Table:
    """The table in the shape that the loop reads: per state, a state to shift to or a reduction to make."""

    def __init__(self, data: TableData) -> None:
        reductions = [_reduction(rule) for rule in data["rules"]]
        self.start = data["start"]
        self.actions: dict[int, dict[str, int | Reduction]] = {
            int(state): {
                sys.intern(symbol): target if target >= 0 else reductions[-1 - target]
                for symbol, target in actions.items()
            }
            for state, actions in data["actions"].items()
        }
        self.ends = frozenset(state for state, actions in self.actions.items() if END in actions)
        """The states in which the text may end."""


class Stack:
    """The state of one parse."""

    __slots__ = ("_actions", "_ends", "_states", "_values")

    def __init__(self, table: Table) -> None:
        self._actions = table.actions
        self._ends = table.ends
        self._states = [table.start]
        self._values: list[Any] = []

    def __len__(self) -> int:
        return len(self._values)

    @property
    def may_end(self) -> bool:
        """Whether the text may end here."""
        return self._states[-1] in self._ends

    def feed(self, token: Token) -> int | None:
        """Take a token; the state after it, or None if it is not expected."""
        return self.take(token.type, token)

    def take(self, name: str, value: Token | int) -> int | None:
        """Take a terminal and its value: a token, or of a bracket just its offset, which costs less."""
        states, values, actions = self._states, self._values, self._actions
        while (action := actions[states[-1]].get(name)) is not None:
            if type(action) is int:
                states.append(action)
                values.append(value)
                return action
            size, make, origin = action  # type: ignore[misc]  # anything but a state is a reduction
            if make is None:
                del states[-1]
            elif size:
                made = make(values[-size:])
                del states[-size:], values[-size:]
                values.append(made)
            else:
                values.append(make([]))
            states.append(actions[states[-1]][origin])  # type: ignore[arg-type]  # a rule's name leads to a state
        return None

    def finish(self, end: Token) -> Any:
        """Take the end of the text, which must fit; what the start rule makes of it all."""
        self.feed(end)
        return self._values[0]

    def cut_back(self, size: int) -> None:
        """Give up all but the first values."""
        del self._states[size + 1 :], self._values[size:]


def _reduction(rule: RuleData) -> Reduction:
    size, keep, hands_on = rule["size"], rule["keep"], rule["hands_on"]
    spliced = rule["origin"].startswith("_")
    if hands_on and size == 1 and keep and not keep[0][1]:
        return size, None, sys.intern(rule["origin"])
    name = sys.intern(rule["name"])
    children = _children(size, [(index, splice) for index, splice in keep])
    if spliced and not hands_on:
        return size, children, sys.intern(rule["origin"])
    if children is _all and not hands_on:
        return size, partial(Phrase, name), sys.intern(rule["origin"])

    def make(values: list[Any]) -> Any:
        kept = children(values)
        if hands_on and len(kept) == 1:
            return kept[0]
        return kept if spliced else Phrase(name, kept)

    return size, make, sys.intern(rule["origin"])


def _children(size: int, keep: list[tuple[int, bool]]) -> Callable[[list[Any]], list[Any]]:
    """What picks a rule's children. A spliced child is a list; the first one is extended in place, so that a long list
    costs no more per item than a short one."""
    spliced = [splice for _, splice in keep]
    if len(keep) == size and not any(spliced):
        return _all
    if len(keep) == size and spliced[0] and not any(spliced[1:]):
        return _grown

    def pick(values: list[Any]) -> list[Any]:
        kept: list[Any] = []
        for index, splice in keep:
            if not splice:
                kept.append(values[index])
            elif kept:
                kept += values[index]
            else:
                kept = values[index]
        return kept

    return pick


def _all(values: list[Any]) -> list[Any]:
    return values


def _grown(values: list[Any]) -> list[Any]:
    kept: list[Any] = values[0]
    kept += values[1:]
    return kept
