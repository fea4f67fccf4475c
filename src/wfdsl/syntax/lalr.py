"""The LALR loop: tokens in, phrases out, by the tables that Lark makes from a grammar file.

Lark builds the tables and says what each rule makes of its children; this only runs them. It does so because feeding
Lark's own parser costs twice as much, and because a list that does not fit has to be taken back off the stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from lark.parsers.lalr_analysis import Shift

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lark.parsers.lalr_parser_state import ParseConf

END = "$END"
Reduction: TypeAlias = tuple[int, "Callable[[list[Any]], Any] | None", str]
"""How many values a rule takes off the stack, what it makes of them (None: it hands its only one on), its name."""


class Token:
    """What the grammar found in the text: a terminal's match, with its text and offsets."""

    __slots__ = ("children", "end", "start", "text", "type")

    def __init__(self, type_: str, text: str, start: int, end: int) -> None:
        self.type = type_
        """The name of the terminal; of a phrase, that of its rule or alternative."""
        self.text = text
        self.start = start
        self.end = end
        self.children: Sequence[Token] = ()


class Table:
    """Lark's table in the shape that the loop reads: per state, a state to shift to or a reduction to make."""

    def __init__(self, conf: ParseConf[Any]) -> None:
        self.start: int = conf.start_state
        self.end: int = conf.end_state
        self.actions: dict[int, dict[str, int | Reduction]] = {
            state: {
                str(symbol): argument if action is Shift else _reduction(argument, conf.callbacks[argument])
                for symbol, (action, argument) in actions.items()
            }
            for state, actions in conf.states.items()
        }
        self.ends = frozenset(state for state, actions in self.actions.items() if END in actions)
        """The states in which the text may end."""


def _reduction(rule: Any, make: Callable[[list[Any]], Any]) -> Reduction:
    size = len(rule.expansion)
    inlined = any(symbol.name.startswith("_") for symbol in (rule.origin, *rule.expansion) if not symbol.is_term)
    hands_on = size == 1 and rule.options.expand1 and not rule.alias and not inlined
    return size, None if hands_on else make, str(rule.origin.name)


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
        """Take a token; the state behind it, or None if it does not fit."""
        states, values, actions, name = self._states, self._values, self._actions, token.type
        while (action := actions[states[-1]].get(name)) is not None:
            if type(action) is int:
                states.append(action)
                values.append(token)
                return action
            size, make, origin = action  # type: ignore[misc]  # what is no state is a reduction
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
