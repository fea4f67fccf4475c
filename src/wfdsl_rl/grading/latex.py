r"""One spelling for the many of an expression: `\dfrac12`, `1/2` between dollars and `½` become the same text.

Only what cannot change the meaning is done here. Everything deeper is left to math-verify.
"""

from __future__ import annotations

import re

_CHARACTERS = {
    "−": "-", "–": "-", "—": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "π": r"\pi ",
    "∞": r"\infty ",
    "√": r"\sqrt ", "±": r"\pm ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ",
    "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "λ": r"\lambda ", "µ": r"\mu ", "μ": r"\mu ", "°": r"^\circ ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⁰": "^0", "¹": "^1", "²": "^2", "³": "^3", "⁴": "^4", "⁵": "^5", "⁶": "^6", "⁷": "^7", "⁸": "^8", "⁹": "^9",
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "′": "'",
}  # fmt: skip
_TABLE = str.maketrans(_CHARACTERS)
_FUNCTIONS = r"sin|cos|tan|cot|sec|csc|log|ln|exp|arcsin|arccos|arctan"
_REWRITES = [
    (re.compile(pattern), by)
    for pattern, by in (
        (
            r"\\(?:displaystyle|textstyle|limits|bigl?|bigr|Bigl?|Bigr|biggl?|biggr|left|right|mathrm\{~\})(?![a-zA-Z])\.?",
            "",
        ),
        (r"\{,\}|(?<=\d),\s*\\!\s*(?=\d{3}(?!\d))", ","),
        (r"\\[,!;: ]|(?<!\\)~|\\q?quad(?![a-zA-Z])", " "),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\(?:text|mbox|mathrm|mathbf|textbf|textit|rm|operatorname)\s*\{([^{}]*)\}", r"\\text{\1}"),
        (r"\^\s*\{?\s*(?:\\circ|\\degree)\s*\}?|\\degree(?![a-zA-Z])", r" degrees"),
        (r"\\\$|\$", ""),
        (r"\\frac\s*(\d)\s*(\d)(?!\d)", r"\\frac{\1}{\2}"),
        (r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{"),
        (r"\\frac\s*\{([^{}]*)\}\s*([0-9a-zA-Z])", r"\\frac{\1}{\2}"),
        (r"\\sqrt\s*(\d|[a-zA-Z](?![a-zA-Z]))", r"\\sqrt{\1}"),
        (r"\*\*", "^"),
        (r"(?<![\\a-zA-Z])sqrt\s*\(([^()]*)\)|\\sqrt\s*\(([^()]*)\)", lambda m: rf"\sqrt{{{m[1] or m[2] or ''}}}"),
        (rf"(?<![\\a-zA-Z])(pi|infty|theta|alpha|beta|lambda|{_FUNCTIONS})(?![a-zA-Z])", r"\\\1 "),
        (r"(?<![\\a-zA-Z])(?:infinity|oo)(?![a-zA-Z])", r"\\infty "),
        (r"\\leq(?![a-zA-Z])", r"\\le"),
        (r"\\geq(?![a-zA-Z])", r"\\ge"),
        (r"\^\s*\{(\w)\}", r"^\1"),
        (r"_\s*\{(\w+)\}", r"_\1"),
    )
]
_EDGES = " \t\n;:"
_WORDS = re.compile(r"\\text\{([^{}]*)\}")


def normal(text: str) -> str:
    """An expression in one spelling, with spaces where they may matter."""
    text = text.translate(_TABLE).strip(_EDGES).rstrip("." + _EDGES)
    for pattern, by in _REWRITES:
        text = pattern.sub(by, text)
    return _without_parentheses(" ".join(text.split()).strip(_EDGES).removesuffix("."))


def compact(normal_text: str) -> str:
    """Without any space: equal texts are equal expressions."""
    return re.sub(r"\s+", "", normal_text)


def plain(normal_text: str) -> str:
    r"""Without the marks around words: `18 \text{ cm}^2` becomes `18 cm^2`."""
    return " ".join(_WORDS.sub(r" \1 ", normal_text).replace(" ^", "^").split())


def right_side(normal_text: str) -> str:
    r"""The value of `x = value` and of `x \in set`; else the text itself."""
    found = re.fullmatch(
        r"\\?[a-zA-Z]\w{0,8}(?:\([a-z](?:,\s*[a-z])*\))?\s*(?:=|\\in(?![a-zA-Z]))\s*([^=<>]+)", normal_text
    )
    return found[1].strip() if found else normal_text


def top_level_parts(normal_text: str) -> list[str]:
    """The values of a list: split at commas, semicolons, `and` and `or` outside of brackets. Thousands stay whole."""
    text = re.sub(r"\\text\{\s*,?\s*(?:and|or)\s*\}|,?\s*\b(?:and|or)\b(?![^{]*\})", " , ", normal_text)
    parts, depth, start = [], 0, 0
    thousands = {m.start() + len(m[0]) - 4 for m in re.finditer(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])", text)}
    thousands |= {at for m in re.finditer(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])", text) for at in range(*m.span())}
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter in ",;" and depth <= 0 and at not in thousands:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in (*parts, text[start:].strip()) if part]


def is_balanced(text: str) -> bool:
    """Whether braces are closed in the order in which they are opened; of other brackets, only how many there are."""
    depth = 0
    for letter in re.sub(r"\\.", "", text):
        depth += (letter == "{") - (letter == "}")
        if depth < 0:
            return False
    return depth == 0 and sum(text.count(opening) for opening in "([") == sum(text.count(closing) for closing in ")]")


def _without_parentheses(text: str) -> str:
    """`(5)` is 5: one pair of parentheses around a single number says nothing."""
    found = re.fullmatch(r"\(\s*(-?[\d.]+)\s*\)", text)
    return found[1] if found else text
