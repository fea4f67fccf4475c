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
        r"\b(examin|assess|evaluat|scrutini[sz])\w* (the|this|that|each|every)( \w+)? (answer|solution|attempt|reply)",
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

NOT_ASKED: Final = (
    r"\b(do not|don't|without|never|no need to|need not|needn't) (even |just |only |simply )?(double-?)?"
    r"(check|verif|review|criti|inspect|improv|refin|revis|fix|correct|compar|combin|aggregat|plan)\w*"
)
"""What no role is read from: a look, or a plan, that is not wanted."""

KIND_WORDS: Final[dict[Domain, str]] = {
    "code": r"\b(write|implement|complete|give|return)\b[^.;]*\b(program|function|code|script|class)\b|\bpython\b",
    "choice": r"\boptions?\b|\bmultiple.choice\w*|\b(right|correct|best) letter\b|"
    r"\bletter of (the|your)( \w+)? (answer|choice)\b|"
    r"\b(answer|reply|finish|end) with (a|the|its|one)( single)? letter\b",
}
"""Words that fit questions of one kind only. On a question of another kind they confuse the worker."""

METHODS: Final[dict[str, str]] = {
    "steps": r"\bstep[ -]by[ -]step\b|\bone (step|move|thing) at a time\b|\bone by one\b|\bkeep track\b",
    "list": r"\b(make|write|draw up) (a|the) (list|table|tally)\b|\b(use|using|with|in|keep|fill in) a (table|tally)\b|"
    r"\b(use|using|keep) a list\b|\btally\b",
    "cases": r"\b(small|simple|test) (cases|examples)\b",
}
"""Ways to solve that an instruction may name."""

CHECKS: Final[dict[str, str]] = {
    "steps": r"\b(each|every) (step|part|line|move)\b",
    "again": r"\b(again|another way|from scratch|independently)\b",
    "facts": r"\b(irrelevant|unneeded|needless|not needed|distract\w*|misleading)\b",
    "edges": r"\b(edge|boundary|special|corner)[ -]cases?\b|\bempty (input|list|string|text|word)s?\b",
}
"""What a check may look at."""

LAST: Final = -1
"""The number of the last part, however many there are."""
NUMBERS: Final[dict[str, int]] = {
    **{word: number for number, word in enumerate(("one", "two", "three", "four"), start=1)},
    **{word: number for number, word in enumerate(("first", "second", "third", "fourth"), start=1)},
    **{word: number for number, word in enumerate(("1st", "2nd", "3rd", "4th"), start=1)},
    **dict.fromkeys(("last", "final"), LAST),
}
"""Numbers of parts in words."""
_CARDINAL: Final = r"\(?(?:no\. ?|number |#)?(?:\d|one|two|three|four)\b\)?+"
_ORDINAL: Final = r"(?:first|second|third|fourth|1st|2nd|3rd|4th|last|final)"
_AND: Final = r"(?:,? and (?:the )?|,? or (?:the )?|, | to (?:the )?| through (?:the )?| & |-)"
_DO: Final = r"\b(?:do|solve|work out|compute|calculate|answer) (?:only |just )?(?:the )?"
_UNDONE: Final = (
    r"(?! (?:(?:is|are|was|were|has been|have been) (?:already )?(?:done|solved|given|known|above)|gave|yielded)\b)"
)
PARTS: Final[tuple[str, ...]] = (
    rf"\bpart (?P<numbers>{_CARDINAL}(?:{_AND}\d\b)*+){_UNDONE}",
    rf"\bparts (?P<numbers>{_CARDINAL}(?:{_AND}(?:{_CARDINAL}|{_ORDINAL}\b))*+){_UNDONE}",
    rf"\b(?P<numbers>{_ORDINAL}(?:{_AND}{_ORDINAL})*) parts?\b{_UNDONE}",
    rf"{_DO}steps? (?P<numbers>{_CARDINAL}(?:{_AND}\d\b)*)",
    rf"{_DO}(?P<numbers>{_ORDINAL}(?:{_AND}{_ORDINAL})*) steps?\b",
)
"""Ways to name parts of a question that are to be done."""
GIVEN: Final = (
    r"\b(?:(?:take|taking|use|using|with|given|have|from|after) (?:the )?(?:result|answer|output|value)s? "
    r"(?:of|from|to|for) (?:the )?|(?:using|given|from|after|based on) (?:the )?|"
    r"(?:not|skip|ignore|except)(?: (?:do|solve|answer|the))* )$"
)
"""What comes before a part that is not to be done, but used, or left out."""

VOCABULARY: Final = (RULES, NOT_ASKED, KIND_WORDS, METHODS, CHECKS, NUMBERS, PARTS, GIVEN)
"""All that a content hash covers of the words that instructions are read by."""

_METHODS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in METHODS.items()}
_CHECKS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in CHECKS.items()}
_PARTS = tuple(re.compile(pattern, re.IGNORECASE) for pattern in PARTS)
_NUMBER = re.compile(f"\\d(?!st|nd|rd|th)|{'|'.join(NUMBERS)}", re.IGNORECASE)
_GIVEN = re.compile(GIVEN, re.IGNORECASE)
_NOT_ASKED = re.compile(NOT_ASKED, re.IGNORECASE)
_RULES = tuple((role, re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)) for role, patterns in RULES)
_KIND_WORDS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in KIND_WORDS.items()}


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a subtask asks of a worker."""

    role: Role
    wrong_kind: bool = False
    """Whether it speaks of another kind of question."""
    part: int = 0
    """The one part of the question that it asks for, from 1, or `LAST`; 0 if it asks for none, or for several."""
    method: str = ""
    """The first of `METHODS` that it names."""
    check: str = ""
    """The first of `CHECKS` that it names."""


@lru_cache(maxsize=16384)
def role_of(subtask: str) -> Role:
    """The role that a subtask gives."""
    asked = _asked(subtask)
    return next((role for role, pattern in _RULES if pattern.search(asked)), "none")


def _asked(subtask: str) -> str:
    return _NOT_ASKED.sub("", subtask.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


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
    named = [found for pattern in _PARTS for found in pattern.finditer(subtask)]
    asked = [found for found in named if not _GIVEN.search(subtask[: found.start()])]
    numbers = {_number(each) for found in asked for each in _NUMBER.findall(found["numbers"])}
    return numbers.pop() if len(numbers) == 1 else 0


def _number(written: str) -> int:
    return int(written) if written.isdigit() else NUMBERS[written.lower()]
