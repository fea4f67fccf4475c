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

_RULES = tuple((role, re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)) for role, patterns in RULES)
_KIND_WORDS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in KIND_WORDS.items()}


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a subtask asks of a worker."""

    role: Role
    wrong_kind: bool = False
    """Whether it speaks of another kind of question."""


@lru_cache(maxsize=16384)
def role_of(subtask: str) -> Role:
    """The role that a subtask gives."""
    return next((role for role, pattern in _RULES if pattern.search(subtask)), "none")


@lru_cache(maxsize=16384)
def instruction_of(subtask: str, domain: Domain) -> Instruction:
    """What a subtask asks of a worker on a question of this domain."""
    fits = {kind: bool(pattern.search(subtask)) for kind, pattern in _KIND_WORDS.items()}
    return Instruction(role_of(subtask), any(fits.values()) and not fits.get(domain, False))
