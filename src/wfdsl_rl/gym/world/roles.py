"""Roles of instructions (plan, solve, verify, ...), recognised by published rules for their wording.

The first rule that fits gives the role, in the order of `RULES`; a text that none fits has the role `none`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from wfdsl_rl.gym.world.profiles import Domain

Role: TypeAlias = Literal["plan", "solve", "verify", "refine", "aggregate", "none"]

RULES: Final[tuple[tuple[Role, tuple[str, ...]], ...]] = (
    ("plan", (
        r"\b(do not|don't|without) (solve|solving|answer|answering|give an answer|calculate|compute)",
        r"\b(no|not the) (answer|solution|code) yet\b",
        r"\bonly (a|the) (plan|outline|approach)\b",
    )),
    ("aggregate", (
        r"\baggregat\w*|\bcombin\w*|\bmerg(e|ing)\b|\bcompar\w*|\breconcil\w*|\bsynthesi[sz]\w*",
        r"\bconsensus\b|\bmajority\b|\bvote\b|\bmost\b.*\bagree\b|\bbetter supported\b",
        r"\b(proposals|candidates|attempts|solutions|answers|views|(workers|groups) have)\b.*\b(choose|pick|select)\b",
        r"\b(proposals|candidates|attempts|solutions|answers|views|(workers|groups) have)\b.*\b(decide|judge|agree)\b",
        r"\b(proposals|candidates|attempts|solutions|answers|views)\b.*\b(best|most|soundest)\b",
        r"\b(choose|pick|select|decide)\b.*\b(proposals|candidates|attempts|solutions|answers)\b",
    )),
    ("verify", (
        r"\bverif\w*|\b(double-?)?check\w*|\breview\w*|\bcriti(ci[sz]|que)\w*|\bvalidat\w*|\binspect\w*|\baudit\w*",
        r"\btest (it|the|this|that)\b|\bgoes? wrong\b|\bis (it|this|that) (right|correct)\b|\bproof-?read\w*",
        r"\b(look for|find|spot|search for) (any |the |all )?(mistakes?|errors?|bugs?)",
    )),
    ("refine", (
        r"\brefin\w*|\bimprov\w*|\bfix\w*|\bmend\w*|\brevis\w*|\brepair\w*|\brewrite\b|\bdebug\w*|\bpolish\w*",
        r"\bcorrect (it|the|this|that|any|all)\b",
    )),
    ("solve", (
        r"\bplan\b.*\bthen\b.*\b(solve|answer|write|carry|execute|implement)\b",
        r"\b(follow|use|using|with|from|carry out|execute|according to)\b[^.]*\b(plan|outline|approach|strategy)\b",
    )),
    ("plan", (
        r"^\W*(plan|outline|sketch)\b|\bplan (how|the|a|for|out)\b|\b(list|name) the steps\b|\bdecompos\w*",
        r"\b(make|write|draft|give|devise|propose|prepare)\b[^.:;]*\b(plan|outline|approach|strategy)\b",
        r"\b(draw up|suggest|create|develop|produce|state)\b[^.:;]*\b(plan|outline|approach|strategy)\b",
        r"\bbreak (it|this|the \w+) (down|into)\b",
    )),
    ("solve", (
        r"\bsolv\w*|\banswer\w*|\bwork (it |this |that )?(out|through)\b|\bcalculat\w*|\bcomput\w*|\bfind\b|\bderiv\w*",
        r"\bwrite\b|\bimplement\w*|\bprogram\w*|\bdetermin\w*|\bgive\b|\bdecide\b|\bpick\b|\bchoose\b",
    )),
)  # fmt: skip
"""Role and regular expressions, without regard to case. The first role with an expression that is found decides."""

KIND_WORDS: Final[dict[Domain, str]] = {
    "code": r"\b(write|implement|complete|give|return)\b[^.;]*\b(program|function|code|script|class)\b|\bpython\b",
    "choice": r"\b(option|letter|multiple.choice)\w*\b",
}
"""Words that fit questions of one kind only. On a question of another kind they confuse the worker."""

METHODS: Final[dict[str, str]] = {
    "steps": r"\bstep by step\b|\bone (step|move|thing) at a time\b|\bkeep track\b",
    "list": r"\b(make|write|draw up) (a|the) (list|table|tally)\b|\btally\b",
    "cases": r"\b(small|simple|test) (cases|examples)\b",
}
"""Ways to solve that an instruction may name."""

CHECKS: Final[dict[str, str]] = {
    "steps": r"\b(each|every) (step|part|line|move)\b",
    "again": r"\b(again|another way|from scratch|independently)\b",
    "facts": r"\b(irrelevant|unneeded|needless|not needed|distract\w*|misleading)\b",
    "edges": r"\b(edge|boundary|special) cases?\b|\bempty input\b",
}
"""What a check may look at."""

_PART = re.compile(r"\bparts? (\d)\b|\b(first|second|third|fourth) part\b", re.IGNORECASE)
_ORDINALS = ("first", "second", "third", "fourth")

_METHODS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in METHODS.items()}
_CHECKS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in CHECKS.items()}
_RULES = tuple((role, re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)) for role, patterns in RULES)
_KIND_WORDS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in KIND_WORDS.items()}


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a subtask asks of a worker."""

    role: Role
    wrong_kind: bool = False
    """Whether it speaks of another kind of question."""
    part: int = 0
    """The one part of the question that it names, from 1; 0 if it names none, or several."""
    method: str = ""
    """The first of `METHODS` that it names."""
    check: str = ""
    """The first of `CHECKS` that it names."""


@lru_cache(maxsize=16384)
def role_of(subtask: str) -> Role:
    """The role that a subtask gives."""
    return next((role for role, pattern in _RULES if pattern.search(subtask)), "none")


@lru_cache(maxsize=16384)
def instruction_of(subtask: str, domain: Domain) -> Instruction:
    """What a subtask asks of a worker on a question of this domain."""
    fits = {kind: bool(pattern.search(subtask)) for kind, pattern in _KIND_WORDS.items()}
    wrong_kind = any(fits.values()) and not fits.get(domain, False)
    method, check = _first_named(_METHODS, subtask), _first_named(_CHECKS, subtask)
    return Instruction(role_of(subtask), wrong_kind, _part_of(subtask), method, check)


def _first_named(patterns: dict[str, re.Pattern[str]], subtask: str) -> str:
    return next((name for name, pattern in patterns.items() if pattern.search(subtask)), "")


def _part_of(subtask: str) -> int:
    named = {int(digit) if digit else _ORDINALS.index(word.lower()) + 1 for digit, word in _PART.findall(subtask)}
    return named.pop() if len(named) == 1 else 0
