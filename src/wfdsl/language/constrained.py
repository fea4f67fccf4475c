"""The strict completion language as a grammar for constrained decoders, so that all that they write is valid.

It is bounded prose, or bounded reasoning of any kind and a marker line, and then the canonical print of any workflow
within `Bounds`, which are the arguments of `gbnf`, `llguidance_lark`, `openai_lark` and `max_tokens_for`. The layout is
not written down a second time: a workflow of each length is printed by the printer, and what may vary replaces its
workers, subtasks and access entries. One alternative per number of steps keeps the three lists equally long and lets
each entry name only earlier steps.

A decoder that is given one of the grammars and at least `max_tokens_for(...)` tokens ends by itself, with a completion
that the strict profile accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import ParamSpec, TypeVar

from wfdsl.errors import UsageError
from wfdsl.language.check import DEFAULT_MAX_STEPS, AccessScheme
from wfdsl.language.completion import print_completion
from wfdsl.language.constrained_rules import (
    Chars,
    Choice,
    Expression,
    Literal,
    Name,
    Repeat,
    Rule,
    RuleSet,
    Sequence,
    most_tokens,
    print_gbnf,
    print_lark,
    print_openai_lark,
)
from wfdsl.language.literals import MOST_DIGITS
from wfdsl.language.reasoning import MARKER
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow

MAX_PROSE = 200
MAX_SUBTASK = 200
"""Characters. Our choice: room for a sentence or two."""

MOST_REASONING = 100_000  # characters; our choice
_CHUNK = 1000  # characters of reasoning that are one rule, since long repetitions are refused

MOST_STEPS = 32  # what is written out grows with the cube of it; our choice
MOST_CHARS = 2000  # of prose or a subtask: llama.cpp refuses longer repetitions

SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space beyond the space and the controls."""
_EVERY = Chars(((0x20, 0x7E), (0xA1, 0xD7FF), (0xE000, 0x10FFFF)))
TEXT = _EVERY.without(SPACES)
"""Every character but controls, surrogates, and white space other than the plain space."""

ESCAPES = ("\\\\", '\\"', "\\n", "\\r", "\\t")
"""The printer's escapes of what is often meant in a subtask."""
NOT_IN_PROSE = "<[◁(=:：`"
"""A label needs one of "=", ":" and "：" between itself and its list, or a remark in brackets before that, or a code
fence; a mark of reasoning begins with "<", "[" or "◁". Without them nothing in the prose, and nothing that begins in
it, can be a label or a mark."""

_END_OF_REASONING = "</think>"
_REASONING = Chars(((0x09, 0x0A), (0x20, 0x7E), (0xA0, 0xD7FF), (0xE000, 0x10FFFF)))
"""Every character but most controls, and surrogates."""

_WORKER, _SUBTASK = 10**12, "a subtask"  # placeholders in what the printer is given
_VARYING = re.compile(f'{_WORKER}|"{_SUBTASK}"|"{ALL}"')


@dataclass(frozen=True, slots=True)
class Bounds:
    """What workflows, and the prose before them, are held to."""

    indices: Collection[int]
    """The workers that a workflow may use."""
    max_steps: int = DEFAULT_MAX_STEPS
    """The most steps. Source of the default: arXiv 2512.04388, section 4."""
    _: KW_ONLY
    max_prose: int = MAX_PROSE
    """The most characters before the lists, but for the line break that ends them."""
    max_subtask: int = MAX_SUBTASK
    """The most characters of a subtask."""
    max_reasoning: int = 0
    """The most characters of free reasoning, which `</think>` ends and a marker line separates from the lists; it is
    written instead of prose. 0: there is none."""
    recursion: bool = False
    """Whether three empty lists are valid (rounds after the first)."""
    access: AccessScheme = "lists"
    """What an access entry may be; under "binary" it is nothing or all."""

    def __post_init__(self) -> None:
        """Refuse what describes no language.

        Raises:
            UsageError: see the messages.
        """
        if not self.indices or not all(0 <= index < 10**MOST_DIGITS for index in self.indices):
            raise UsageError(
                f"a grammar needs at least one worker index, each from 0 and of at most {MOST_DIGITS} digits"
            )
        if not 1 <= self.max_steps <= MOST_STEPS:
            raise UsageError(f"max_steps must be from 1 to {MOST_STEPS} (got {self.max_steps})")
        if not 0 <= self.max_prose <= MOST_CHARS:
            raise UsageError(f"max_prose must be from 0 to {MOST_CHARS} (got {self.max_prose})")
        if not 1 <= self.max_subtask <= MOST_CHARS:
            raise UsageError(f"max_subtask must be from 1 to {MOST_CHARS} (got {self.max_subtask})")
        if not 0 <= self.max_reasoning <= MOST_REASONING:
            raise UsageError(f"max_reasoning must be from 0 to {MOST_REASONING} (got {self.max_reasoning})")

    def admit(self, workflow: Workflow) -> bool:
        """Whether the canonical print of a workflow is in the language.

        Subtasks must begin with a character that is not white space, and hold nothing that cannot be printed but line
        breaks and tabs.
        """
        return (
            1 <= len(workflow) <= self.max_steps
            and all(step.worker in self.indices and step.depth is None and not step.settings for step in workflow)
            and all(self._admit_subtask(step.subtask) for step in workflow)
            and (self.access == "lists" or all(step.access in ((), ALL) for step in workflow))
        )

    def _admit_subtask(self, subtask: str) -> bool:
        plain = re.sub(r"[\n\r\t]", "", subtask)
        return len(subtask) <= self.max_subtask and plain.isprintable() and not subtask[:1].isspace()


def language(bounds: Bounds) -> RuleSet:
    """The completions within some bounds."""
    rules = {"root": _root(bounds)}
    for count in range(1, bounds.max_steps + 1):
        rules[f"steps-{count}"] = _steps(count)
    for step in range(bounds.max_steps):
        earlier = 0 if bounds.access == "binary" else step
        rules[f"sees-{step}"] = _sees(step, earlier)
        rules |= {f"after-{index}-of-{step}": _after(index, step) for index in range(earlier)}
    return RuleSet(rules | _words(bounds), remark=_remark(bounds))


def _root(bounds: Bounds) -> Rule:
    workflows: list[Expression] = [Name(f"steps-{count}") for count in range(1, bounds.max_steps + 1)]
    if bounds.recursion:
        workflows.append(Literal("".join(_layout(1)[1:])))
    return Rule(Sequence((Name("head"), Choice(tuple(workflows)))))


def _remark(bounds: Bounds) -> str:
    indices = ", ".join(map(str, sorted(set(bounds.indices))))
    empty = ", or three empty lists" if bounds.recursion else ""
    return f"wfdsl completions: workers {indices}; 1 to {bounds.max_steps} steps{empty}"


def _words(bounds: Bounds) -> dict[str, Rule]:
    """What the lists are made of, and what precedes them."""
    escapes = tuple(map(Literal, ESCAPES))
    words = {
        "head": _head(bounds),
        "worker": Rule(Choice(tuple(Literal(str(index)) for index in sorted(set(bounds.indices)))), is_token=True),
        "subtask": _subtask(bounds),
        "first": Rule(Choice((TEXT.without('"\\ '), *escapes[:2])), is_token=True),
        "more": Rule(Choice((TEXT.without('"\\'), *escapes)), is_token=True),
    }
    if bounds.max_reasoning:
        words |= _reasoning(bounds.max_reasoning)
    elif bounds.max_prose:
        prose = TEXT.without(NOT_IN_PROSE)
        words["prose-first"] = Rule(prose.without(" "), is_token=True)
        words["prose-more"] = Rule(Choice((prose, Literal("\n"))), is_token=True)
    return words


def _subtask(bounds: Bounds) -> Rule:
    remark = f"at most {bounds.max_subtask:,} characters, the first of which is not white space"
    value = _text("first", "more", bounds.max_subtask)
    return Rule(Sequence((Literal('"'), *value, Literal('"'))), remark, is_token=True)


def _text(first: str, more: str, most: int) -> tuple[Expression, ...]:
    """From 1 to `most` characters."""
    return (Name(first), Repeat(Name(more), 0, most - 1)) if most > 1 else (Name(first),)


def _head(bounds: Bounds) -> Rule:
    opening = Literal(_layout(1)[0])
    if bounds.max_reasoning:
        marker = Literal(f"{_END_OF_REASONING}\n{MARKER}\n")
        whole = _chunks(bounds.max_reasoning)
        chunks = (Repeat(Name("thoughts"), 0, whole),) if whole else ()
        last = Repeat(Name("thought"), 0, bounds.max_reasoning - _CHUNK * whole)
        remark = f"reasoning of at most {bounds.max_reasoning:,} characters, which the closing tag ends"
        return Rule(Sequence((*chunks, last, marker, opening)), remark, is_token=True)
    if not bounds.max_prose:
        return Rule(opening, is_token=True)
    prose = Sequence((*_text("prose-first", "prose-more", bounds.max_prose), Literal("\n"), opening))
    remark = f"prose of at most {bounds.max_prose:,} characters, in which nothing can be read as a label or a tag"
    return Rule(Choice((opening, prose)), remark, is_token=True)


def _chunks(most: int) -> int:
    """The whole chunks of the longest reasoning: so many that what is left may make up every shorter length, too."""
    return max(0, (most - _CHUNK + 1) // _CHUNK)


def _reasoning(most: int) -> dict[str, Rule]:
    """Reasoning, a piece at a time. No piece, and no row of pieces, contains the closing tag.

    A "<" is one piece with what follows it, which is ASCII: so a piece takes no more bytes than a character may.
    """
    after = Chars(((0x09, 0x0A), (0x20, 0x7E)))
    tag = Chars(((ord("A"), ord("Z")), (ord("a"), ord("z")))).without("t")
    pieces = (
        _REASONING.without("<"),
        Sequence((Literal("<"), after.without("</"))),
        Sequence((Literal("</"), tag)),
    )
    rules = {"thoughts": Rule(Repeat(Name("thought"), _CHUNK, _CHUNK), is_token=True)} if _chunks(most) else {}
    return rules | {"thought": Rule(Choice(pieces), is_token=True)}


def _steps(count: int) -> Rule:
    """What follows the opening of the first list, in a workflow with this number of steps."""
    varying = ["worker"] * count + ["subtask"] * count + [f"sees-{step}" for step in range(count)]
    layout = _layout(count)[1:]
    pairs = zip(varying, layout, strict=True)
    return Rule(Sequence(tuple(part for name, fixed in pairs for part in (Name(name), Literal(fixed)))))


@cache
def _layout(count: int) -> tuple[str, ...]:
    """The print of this number of steps, without its workers, subtasks and access entries."""
    return tuple(_VARYING.split(print_completion(Workflow((Step(_WORKER, _SUBTASK, ALL),) * count))))


def _sees(step: int, earlier: int) -> Rule:
    """An access entry: nothing, all, or distinct steps of the first `earlier` ones in ascending order."""
    lists = [Sequence((Literal(f"[{index}"), Name(f"after-{index}-of-{step}"))) for index in range(earlier)]
    return Rule(Choice((Literal("[]"), Literal(f'"{ALL}"'), *lists)), is_token=True)


def _after(index: int, step: int) -> Rule:
    """How the entry of a step may continue after an index."""
    later = [Sequence((Literal(f", {other}"), Name(f"after-{other}-of-{step}"))) for other in range(index + 1, step)]
    return Rule(Choice((Literal("]"), *later)), is_token=True)


P = ParamSpec("P")
T = TypeVar("T")


def _within(bounds: Callable[P, Bounds], write: Callable[[RuleSet], T]) -> Callable[P, T]:
    def written(*args: P.args, **kwargs: P.kwargs) -> T:
        return write(language(bounds(*args, **kwargs)))

    return written


gbnf = _within(Bounds, print_gbnf)
"""The grammar in llama.cpp's dialect; its server takes it as `grammar` in the body of a request."""

llguidance_lark = _within(Bounds, print_lark)
"""The grammar in llguidance's dialect of Lark."""

openai_lark = _within(Bounds, print_openai_lark)
"""The grammar for a custom tool of OpenAI's: `{"type": "grammar", "syntax": "lark", "definition": ...}`.

Source of the syntax: OpenAI's guide to function calling, on custom tools.
"""

max_tokens_for = _within(Bounds, most_tokens)
"""The number of tokens with which no completion is cut, whatever the model writes within the grammar.

It is the bytes of the longest completion in UTF-8, and one token for the end: every token that a constrained decoder
lets through is at least one byte. It is a limit and not an estimate: plain English takes one token for about four
characters. Units: tokens.
"""
