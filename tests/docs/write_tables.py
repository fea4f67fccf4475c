"""Tables of the documentation that repeat what the program knows: baselines, endings of replies, the language."""

from __future__ import annotations

import inspect
from collections import Counter
from itertools import zip_longest

from wfdsl.evaluation.baselines.baseline import is_worker
from wfdsl.evaluation.policy_names import BASELINES
from wfdsl.language.check import DEFAULT_MAX_STEPS, MAX_CHARS
from wfdsl.language.codes import CODES
from wfdsl.language.file_expansion import MOST_ACCESS_ENTRIES, MOST_COPIES, MOST_COPIES_IN_ALL
from wfdsl.language.literals import MOST_DIGITS
from wfdsl.settings import Option, options_of
from wfdsl.workers.endings import ENDINGS

from .pages import table

_SEVERAL = 4  # baselines that have a parameter, from which on it is described once
_MEANING = {
    "stop": "a reply; without any text it is asked for again",
    "length": "a reply that is cut, marked as such; without any text a failure, since it would end so again",
    "refusal": "a reply, marked as such",
    "filtered": "withheld: asked for again",
}


def baseline_table() -> str:
    """What each baseline is, and what it leaves out of its paper."""
    rows = [
        [f"`{each.name}`", (inspect.getdoc(each) or "").replace("\n", " "), each.calls, each.source, each.simplifies]
        for each in BASELINES.values()
    ]
    return table(["name", "what it does", "calls for each question", "source", "what it simplifies"], rows)


def parameter_table() -> str:
    """What may be set of each baseline; what several have is described once, first."""
    counts = Counter(_parameter(parameter) for each in BASELINES.values() for parameter in options_of(each))
    common = {row for row, count in counts.items() if count >= _SEVERAL}
    rows = [["several", *row] for row in counts if row in common]
    for each in BASELINES.values():
        rows += [[f"`{each.name}`", *row] for row in map(_parameter, options_of(each)) if row not in common]
    return table(["baseline", "parameter", "default", "meaning"], rows)


def _parameter(parameter: Option) -> tuple[str, ...]:
    choices = f" ({', '.join(parameter.choices)})" if parameter.choices else ""
    return f"`{parameter.name}`", _default(parameter), f"{parameter.help}{choices}"


def _default(parameter: Option) -> str:
    if is_worker(parameter):
        return ("the pool's first worker", "its second", "its third")[parameter.default]
    return "none" if parameter.default is None else str(parameter.default)


def endings() -> str:
    """Each finish with the words that mean it, and what they lead to."""
    rows = [[f"`{end}`", ", ".join(f"`{word}`" for word in words), _MEANING[end]] for end, words in ENDINGS.items()]
    rows.append(["`broken_off`", "every other word, such as `error` or `abort`", "half a reply: asked for again"])
    return table(["finish", "words of servers", "what it is"], rows)


def repairs() -> str:
    """What the lenient profile reads though it is not right."""
    rows = []
    for code in CODES.values():
        if code.kind == "repair":
            wrong, right = _difference(code.wrong, code.right)
            rows.append([f"[`{code.name}`](codes.md#{code.name})", code.summary, _code(wrong), _code(right)])
    return table(["code", "what is repaired", "such as", "right"], rows)


def static_checks() -> str:
    """What is checked once the steps have been read."""
    rows = [
        [f"[`{code.name}`](codes.md#{code.name})", code.kind, code.summary]
        for code in CODES.values()
        if code.kind != "repair" and (code.form == "both" or code.name in {"lengths-differ", "empty-workflow"})
        if code.name not in {"text-too-long", "bad-escape"}
    ]
    return table(["code", "severity", "what it says"], rows)


def limits() -> str:
    """The numbers that bound what is read."""
    rows = [
        ["length of a text", f"{MAX_CHARS:,} characters", "`max_chars=`"],
        ["steps of a completion", str(DEFAULT_MAX_STEPS), "`--max-steps`, `max_steps=`"],
        ["steps of a workflow file", "none", "`--max-steps`, `max_steps=`"],
        ["digits of an integer", str(MOST_DIGITS), ""],
        ["copies or links of one step; levels of a `depth`", f"{MOST_COPIES:,}", ""],
        ["copies of a workflow file in all", f"{MOST_COPIES_IN_ALL:,}", ""],
        ["entries of its access lists in all", f"{MOST_ACCESS_ENTRIES:,}", ""],
    ]
    return table(["of", "limit", "set by"], rows)


def _difference(wrong: str, right: str) -> tuple[str, str]:
    """The lines in which two texts differ."""
    ours, theirs = wrong.split("\n"), right.split("\n")
    while ours and theirs and ours[-1] == theirs[-1]:
        del ours[-1], theirs[-1]
    pairs = [(a, b) for a, b in zip_longest(ours, theirs) if a != b]
    return "\n".join(a for a, _ in pairs if a is not None), "\n".join(b for _, b in pairs if b is not None)


def _code(text: str) -> str:
    """Code in a table's cell; a line break as the sign for one, a no-break space as a small circle."""
    text = text.replace("\n", "⏎").replace("\u00a0", "⍽").replace("|", "\\|")
    return f"```` {text} ````" if "`" in text else f"`{text}`"
