"""The tables of the language reference that repeat what the program knows."""

from __future__ import annotations

from itertools import zip_longest

from wfdsl.language.check import DEFAULT_MAX_STEPS, MAX_CHARS
from wfdsl.language.diagnostics.codes import CODES
from wfdsl.language.file_expansion import MOST_ACCESS_ENTRIES, MOST_COPIES, MOST_COPIES_IN_ALL
from wfdsl.language.literals import MOST_DIGITS


def repairs() -> str:
    """What the lenient profile reads though it is not right."""
    rows = []
    for code in CODES.values():
        if code.kind == "repair":
            wrong, right = _difference(code.wrong, code.right)
            rows.append(f"| [`{code.name}`](codes.md#{code.name}) | {code.summary} | {_code(wrong)} | {_code(right)} |")
    return "\n".join(["| code | what is repaired | such as | right |", "|---|---|---|---|", *rows])


def static_checks() -> str:
    """What is checked once the steps have been read."""
    rows = [
        f"| [`{code.name}`](codes.md#{code.name}) | {code.kind} | {code.summary} |"
        for code in CODES.values()
        if code.kind != "repair" and (code.form == "both" or code.name in {"lengths-differ", "empty-workflow"})
        if code.name not in {"text-too-long", "bad-escape"}
    ]
    return "\n".join(["| code | severity | what it says |", "|---|---|---|", *rows])


def limits() -> str:
    """The numbers that bound what is read."""
    rows = [
        ("length of a text", f"{MAX_CHARS:,} characters", "`--max-chars`, `max_chars=`"),
        ("steps of a completion", str(DEFAULT_MAX_STEPS), "`--max-steps`, `max_steps=`"),
        ("steps of a workflow file", "none", "`--max-steps`, `max_steps=`"),
        ("digits of an integer", str(MOST_DIGITS), ""),
        ("copies or links of one step; levels of a `depth`", f"{MOST_COPIES:,}", ""),
        ("copies of a workflow file in all", f"{MOST_COPIES_IN_ALL:,}", ""),
        ("entries of its access lists in all", f"{MOST_ACCESS_ENTRIES:,}", ""),
    ]
    return "\n".join(["| of | limit | set by |", "|---|---|---|", *(f"| {a} | {b} | {c} |" for a, b, c in rows)])


def _difference(wrong: str, right: str) -> tuple[str, str]:
    """The lines in which two texts differ."""
    pairs = [pair for pair in zip_longest(wrong.split("\n"), right.split("\n")) if pair[0] != pair[1]]
    if len(wrong.split("\n")) == len(right.split("\n")):
        return "\n".join(pair[0] for pair in pairs), "\n".join(pair[1] for pair in pairs)
    return wrong.split("\n", 1)[1].rpartition("\n")[0], right.split("\n", 1)[1].rpartition("\n")[0]


def _code(text: str) -> str:
    """Code in a table's cell; a line break as the sign for one, a no-break space as a small circle."""
    return "`" + text.replace("\n", "⏎").replace("\u00a0", "⍽").replace("|", "\\|") + "`"
