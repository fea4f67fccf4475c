"""The tables of the language reference that repeat what the program knows."""

from __future__ import annotations

from itertools import zip_longest

from wfdsl.language.check import DEFAULT_MAX_STEPS, MAX_CHARS
from wfdsl.language.codes import CODES
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
        ("length of a text", f"{MAX_CHARS:,} characters", "`max_chars=`"),
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
    ours, theirs = wrong.split("\n"), right.split("\n")
    while ours and theirs and ours[-1] == theirs[-1]:
        del ours[-1], theirs[-1]
    pairs = [(a, b) for a, b in zip_longest(ours, theirs) if a != b]
    return "\n".join(a for a, _ in pairs if a is not None), "\n".join(b for _, b in pairs if b is not None)


def _code(text: str) -> str:
    """Code in a table's cell; a line break as the sign for one, a no-break space as a small circle."""
    text = text.replace("\n", "⏎").replace("\u00a0", "⍽").replace("|", "\\|")
    return f"```` {text} ````" if "`" in text else f"`{text}`"
