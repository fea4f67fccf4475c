"""Grammar files: their terminals and LALR tables, made by Lark and cached, and the loop that parses by such a table.

Making a table takes longer than all the rest of a short command, so it is kept as JSON in the user's cache folder,
under the hash of everything that it is made from: a changed grammar file is another entry, never a stale one. JSON,
because Lark's own cache loads Lark: that makes `wfdsl check` start at 12.0 instead of 8.5 times bare Python.

The loop is our own because with Lark's parser (fed by our scanner, tables from its disk cache) parse + check takes 1.7
times as long (measured in November 2026), and because a list with an error has to be taken off the stack again. What a
rule makes of its children is Lark's convention: filtered terminals are dropped, rules named "_..." are replaced by
their children, and "?" rules pass an only child on.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec, source_hash
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast

if TYPE_CHECKING:  # start-up time: Lark is imported only where a table is made
    from lark import Lark
    from lark.grammar import Rule
    from lark.parsers.lalr_parser_state import ParseConf

_PACKAGE = Path(__file__).resolve().parent.parent
_PLACES = (_PACKAGE.parent.parent / "grammars", _PACKAGE / "grammars")
"""In a checkout the files are read at the root of the repository, so that no copy can be stale; a wheel holds them."""


@cache
def grammar_folder() -> Path:
    """The folder with `conductor.lark`, `workflow.lark` and `literals.lark`.

    Raises:
        FileNotFoundError: the installation is damaged.
    """
    for place in _PLACES:
        if (place / "conductor.lark").is_file():
            return place
    raise FileNotFoundError(f"the grammar files are in none of {', '.join(map(str, _PLACES))}: reinstall wfdsl")


_FORMAT = "2"  # of the cached data
_KEPT = 8  # entries of the cache; more are removed, oldest first


class RuleData(TypedDict):
    """What a rule does with the values that it takes off the stack."""

    origin: str
    name: str
    """Its alternative's name, or its own."""
    size: int
    keep: list[tuple[int, bool]]
    """The children that stay, by index; True: its own children replace it."""
    hands_on: bool
    """Whether an only child is passed on as it is."""


class TableData(TypedDict):
    """An LALR table."""

    start: int
    actions: dict[str, dict[str, int]]
    """By state and symbol: the state to go to, or -1 minus the index of the rule to reduce by."""
    rules: list[RuleData]


class GrammarData(TypedDict):
    """All that a scanner needs to know of a grammar."""

    terminals: dict[str, str]
    """Regular expressions by name, in the order of their priority."""
    ignored: list[str]
    """Terminals that are allowed between others."""
    first: list[str]
    """Terminals that the text may begin with."""
    table: TableData


def load_grammar_data(name: str, *, start: str, also: list[str], folder: Path | None = None) -> GrammarData:
    """What a grammar file says, from the cache if it is there. `also` are rules that `start` does not reach."""
    folder = folder or grammar_folder()
    entry = _cache_folder() / f"{_key(folder, name, start, also)}.json"
    cached = _read(entry)
    if cached is not None:
        return cached
    made = make_grammar_data(name, start=start, also=also, folder=folder)
    _write(entry, made)
    return made


def make_grammar_data(name: str, *, start: str, also: list[str], folder: Path) -> GrammarData:
    """The same, made by Lark."""
    lark = _lark((folder / name).read_text("utf-8"), start=[start, *also], folder=folder)
    table = table_data(lark.parse_interactive("", start=start).parser_state.parse_conf)
    terminals = sorted(lark.terminals, key=lambda terminal: -terminal.priority)
    names = {str(terminal.name) for terminal in terminals}
    return {
        "terminals": {str(terminal.name): terminal.pattern.to_regexp() for terminal in terminals},
        "ignored": [str(ignored) for ignored in lark.ignore_tokens],
        "first": sorted(names & table["actions"][str(table["start"])].keys()),
        "table": table,
    }


def _lark(text: str, *, start: list[str], folder: Path) -> Lark:
    """Lark's parser without a lexer: tokens come from the scanner, and building a lexer takes as long again."""
    from lark import Lark  # noqa: PLC0415  (start-up time: importing Lark is what the cache saves)
    from lark.lexer import Lexer  # noqa: PLC0415

    class NoLexer(Lexer):
        __future_interface__ = 2

        def __init__(self, lexer_conf: Any) -> None:
            del lexer_conf

        def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:  # noqa: ARG002  (Lark's signature)
            raise AssertionError("this parser is fed with tokens")

    return Lark(text, parser="lalr", lexer=NoLexer, import_paths=[str(folder)], start=start, maybe_placeholders=False)


def table_data(conf: ParseConf[Any]) -> TableData:
    """Lark's table as plain data."""
    rules: dict[Rule, int] = {}
    actions: dict[str, dict[str, int]] = {}
    for state, row in conf.states.items():
        actions[str(state)] = {
            str(symbol): -1 - rules.setdefault(argument, len(rules)) if _reduces(argument) else argument
            for symbol, (_, argument) in row.items()
        }
    return {"start": conf.start_state, "actions": actions, "rules": [_rule_data(rule) for rule in rules]}


def _reduces(argument: Any) -> bool:
    return not isinstance(argument, int)


def _rule_data(rule: Rule) -> RuleData:
    keep_all = rule.options.keep_all_tokens
    return {
        "origin": str(rule.origin.name),
        "name": str(rule.alias or rule.options.template_source or rule.origin.name),
        "size": len(rule.expansion),
        "keep": [
            (index, not symbol.is_term and symbol.name.startswith("_"))
            for index, symbol in enumerate(rule.expansion)
            if keep_all or not (symbol.is_term and getattr(symbol, "filter_out", False))
        ],
        "hands_on": bool(rule.options.expand1 and not rule.alias),
    }


def _key(folder: Path, name: str, start: str, also: list[str]) -> str:
    made_from = [_FORMAT, _lark_version(), name, start, *also]
    made_from += [path.read_text("utf-8") for path in sorted(folder.glob("*.lark"))]
    return source_hash("\0".join(made_from).encode()).hex()


def _lark_version() -> str:
    """The text of Lark's package file, which names its version: importing Lark, or the metadata, is what this saves."""
    found = find_spec("lark")
    return Path(found.origin).read_text("utf-8") if found and found.origin else ""


def _cache_folder() -> Path:
    """By the XDG base directory specification; importing platformdirs takes a tenth of the time of `wfdsl check`."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME", "~") + "/.cache"
    return Path(folder, "wfdsl", "grammars")


def _read(entry: Path) -> GrammarData | None:
    try:
        cached = json.loads(entry.read_text("utf-8"))
    except (OSError, ValueError):
        return None  # not there, or damaged: it is made again
    if not isinstance(cached, dict) or cached.keys() != GrammarData.__required_keys__:
        return None
    return cast("GrammarData", cached)


def _write(entry: Path, made: GrammarData) -> None:
    """Keep a table. If the cache cannot be written, the next process makes the table again."""
    draft = entry.with_suffix(f".{os.getpid()}.draft")
    if not entry.is_absolute():
        return  # a user without a home
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(made), "utf-8")
        draft.replace(entry)
        kept = sorted(entry.parent.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in kept[_KEPT:]:
            old.unlink(missing_ok=True)
    except OSError:
        with suppress(OSError):
            draft.unlink()


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
