r"""Normal forms of mathematical answers: exact numbers with units, sets, intervals, tuples, matrices, equations.

`x<3` is the interval `(-\infty,3)`, `\pm 2` the set of two, `x = 5` is 5; `2x = 5` stays an equation. What is neither
is an expression in LaTeX, which the worker process compares, or words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import TypeAlias
from unicodedata import normalize

from wfdsl.grading.in_words import HOURS, SCALES, compiled, in_figures, in_signs

LONGEST = 1_000
"""How many characters an answer may have: our choice."""
_UNITS = {
    "length": "m 1 meter 米 メートル|km 1000 kilometer 千米 公里 キロメートル キロ|"
    "mm 1/1000 millimeter 毫米 ミリメートル|cm 1/100 centimeter 厘米 センチメートル センチ|"
    "mi 1609344/1000 mile|in 254/10000 inch inches|ft 3048/10000 foot feet|yd 9144/10000 yard",
    "mass": "g 1 gram 克 グラム|kg 1000 kilogram 千克 公斤 キログラム|mg 1/1000 milligram|t 1000000 tonne 吨 トン|"
    "lb 45359237/100000 lbs pound|oz 28349523125/1000000000 ounce",
    "time": "s 1 sec second 秒|min 60 minute 分钟 分|h 3600 hr hrs hour 小时 時間|d 86400 day 天 日|week 604800|"
    "year 31536000",
    "volume": "l 1 L liter 升 リットル|ml 1/1000 mL milliliter 毫升 ミリリットル",
    "energy": "J 1 joule|kWh 3600000 kilowatt-hour",
    "dollars": "$ 1 dollar usd 美元 ドル|cent 1/100 ¢",
    "euros": "€ 1 euro eur 欧元 ユーロ",
    "pounds": "£ 1",
    "yen": "¥ 1 円 元 yen yuan 块 块钱",
    "degrees": "° 1 degree deg 度",
    "radians": "rad 1 radian",
    "speed": "m/s 1 米/秒|km/h 5/18 kph|mph 44704/100000 mi/h",
}
_KNOWN = {
    name: (dimension, Fraction(words.split()[1]), words.split()[0])
    for dimension, units in _UNITS.items()
    for words in units.split("|")
    for name in (words.split()[0], *words.split()[2:])
}
"""The units of each dimension, with their sizes and names. What is not exact in another unit has one of its own."""
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?:\s\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    rf"""(?P<sign>[-+]?)\s*(?P<money>\\?[$€£¥]?)\s*
    (?: (?:(?P<whole>\d+)\s+)?(?P<over>\d+)\s*/\s*(?P<under>-?[1-9]\d*)(?![\d.])
      | (?P<v>{_DIGITS})\.?
        (?:e(?P<e>[-+]?\d{{1,3}})|\s*(?:\\times|\\cdot|[x*])\s*10\s*\^\s*[{{(]?(?P<p>[-+]?\d{{1,3}})[)}}]?)?)
    (?P<rest>.*)""",
    re.VERBOSE | re.DOTALL,
)
_AMOUNT = r"[\d,.]+(?: [a-z/ ]+)?[.]?$"
"""What makes a dollar sign before it money, and not the beginning of mathematics."""
_UNIT = re.compile(r"[^\W\d_]+(?:[ /-][^\W\d_]+){0,4}(?:\s?\^\{?[23]\}?|[²³])?|°[CFcf]?|[€£¥¢$]|米/秒")
_NO_UNIT = re.compile(r"\b(?:or|and|to|not|plus|minus|times|if|by|\w+ed$|factorial|of|more|less|\w+ths)\b(?! per)")
_UNICODE = str.maketrans({
    "−": "-", "–": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "π": r"\pi ", "∞": r"\infty ",
    "∈": r"\in ", "∪": r"\cup ", "∅": r"\emptyset ", "±": r"\pm ", "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}",
    "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}", "θ": r"\theta ", "ℝ": r"\mathbb{R}",
    "⟨": "(", "⟩": ")", "Ω": r"\Omega ", "λ": r"\lambda ", "、": ",", "，": ",", "；": ";",
})  # fmt: skip
_TEXT = re.compile(
    r"\\(?:text|textbf|textit|mbox|mathrm|rm|textrm|operatorname)\s*\{((?:[^{}]|\^\{\d\})*)\}(\^\{?[23]\}?)?"
)
_FUNCTIONS = "(?:arc)?(?:sin|cos|tan)h?|cot|sec|csc|log|ln|exp|gcd|lcm|det|lim|sqrt|pi|infty|binom|b?mod"
_WRAPPED = r"\\(?:mathbf|boldsymbol|bm|underline|fbox|boxed|mathit|bf|color|textcolor\{\w+\})\s*\{([^{}]*)\}"
_SIGNS = {"le": "≤", "ge": "≥", "ne": "≠", "lt": "<", "gt": ">", "<": "≤", ">": "≥"}


_SPELLINGS = compiled(
    (rf"^\s*(?:\$\$?(?!{_AMOUNT})|\\\(|\\\[)|(?:\$\$?|\\\)|\\\])[\s.]*$", ""),
    (r"\$(?!\s*\d)|(?<=[^\s\d,(\\])\$|(?<=\d)\$(?=\s+\w)", ""),
    (r"(?<=\d)\^?\s?(?:\\circ|\{\\circ\})|\^\s*\{?\\circ\}?", "°"),
    (r"°\s*\\(?:text|mathrm)\{\s*([CF])\s*\}", r"°\1"),
    (r"(?<=\d)(?:\{([,:])\}|(,)\\!\s*)(?=\d)", r"\1\2"),
    (r"\\(?:left|right|(?:display|text)style|[lL]arge|small|normalsize|[bB]ig[lr]?|limits|q?quad)(?![a-zA-Z])", ""),
    (r"\\[!,;:]|\\color\{[a-z]+\}|\\cancel\{[^{}]*\}|[`~]|(?<!\\)\\ ", ""),
    (r"[²³¹⁰⁴-⁹⁻ⁿ]+", lambda found: f"^{{{normalize('NFKC', found[0]).replace('−', '-')}}}"),
    (r"\\[dtc]frac", r"\\frac"),
    (r"\\([lr])angle(?![a-z])", lambda found: "()"[found[1] == "r"]),
    (_WRAPPED, r"\1"),
    (r"\\frac\s*(\d)\s*(?=[\d{])", r"\\frac{\1}"),
    (r"\\frac\s*\{([^{}]*)\}\s*(\d)", r"\\frac{\1}{\2}"),
    (r"\\(le|ge|ne)q?(?:slant)?(?![a-zA-Z])|\\([lg]t)(?![a-zA-Z])|([<>])=", lambda m: _SIGNS[m[1] or m[2] or m[3]]),
    (r"\((\d+)\)(?=_)|(?<=\d)(_)\{(\d+)\}", r"\1\2\3"),
    (r"\\frac\{\\(?:text|mathrm)\{(\w+)\}\}\{\\(?:text|mathrm)\{(\w+)\}\}", r"\\text{ \1/\2}"),
    (r"(?<=[a-zA-Z])\\cdot\s*(?=h\b)", ""),
    (r"\\mathrm\s*\{([ei])\}", r"\1"),
    (r"\\sqrt\s*(\w)", r"\\sqrt{\1}"),
    (r"√\s*(\d+|\w|\([^()]*\))|(?<![\\a-zA-Z])sqrt\s*(\([^()]*\))", r"\\sqrt{\1\2}"),
    ("infinity", "infty"),
    (rf"(?<![\\a-zA-Z])({_FUNCTIONS})(?![a-zA-Z]|\s*\}})", r"\\\1"),
    (r"(\\(?:sin|cos|tan|log|ln|exp))\s*\{([^{}]*)\}", r"\1(\2)"),
    (r"\*\*", "^"),
    (r"^\\?\{\s*[a-z]\s*(?:\\in\s*(?:\\mathbb\{?)?R\}?\s*)?(?:\||\\mid|:)\s*(.+?)\\?\}$", r"\1"),
    (r"^\{((?:[^{}]|\{[^{}]*\})*)\}$|^(?:[a-zA-Z](?:_\w)?|\([a-z], ?[a-z]\))\s*(?:\\in|:)(?![a-zA-Z])\s*", r"\1"),
    (r"^(?:\\mathbb\{?R\}?|(?:\\text\{)?all (?:reals?|(?:real )?numbers)\}?)$", r"(-\\infty,\\infty)"),
    (r"\^(?:\(([^()]*)\)|(-?\d+))", r"^{\1\2}"),
    (r"[\s.,;:]+$", ""),
    (r"\s+", " "),
)
_EMPTY = re.compile(
    r"(?i)\\(?:emptyset|varnothing|O)|\\?\{\s*\\?\}|(?:there (?:is|are) )?no (?:real )?solutions?(?: exists?)?|none"
    r"|(?:the )?empty(?: set)?|无解|空集|解なし"
)
_COMPUTED = re.compile(r"^\d|[+*/-]|\^(?!\{?-1)|\d[a-z]|\\(?:cdot|times|sqrt|frac(?!\{d))|\s\d")
"""What a name on the left of an equation does not have: `f(x)` and `\\angle A` are names, `2x` is none."""
_VARIABLE = re.compile(r"[a-zA-Z](?:_\w)?|\\theta|[a-z]\([a-z]\)")
_RELATION = re.compile("[<>≤≥≠=]")


def nested(opening: str, closing: str) -> str:
    """A form of what may stand in brackets: other ones too, up to eight deep."""
    inside = plain = rf"[^{opening}{closing}]*+"
    for _ in range(8):
        inside = rf"{plain}(?:[{opening}]{inside}[{closing}]{plain})*+"
    return inside


_INSIDE = nested(r"(\[{", r")\]}")
_PART = re.compile(rf"(?:(?<![\d,.])\d{{1,3}}(?:,\d{{3}})+(?![\d,])|[(\[{{]{_INSIDE}[)\]}}]|[^,;])+")
"""What commas separate, but not those in brackets and in thousands."""


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number."""

    value: Fraction
    unit: str = ""
    """`%`, the first name of a known unit, else the words as written."""

    @property
    def exact(self) -> Fraction:
        """The value; of percents, hundredths."""
        return self.value / 100 if self.unit == "%" else self.value

    def __str__(self) -> str:
        return f"{self.value} {self.unit}".strip()


class Words(str):
    """Words where mathematics could be; an expression in LaTeX is a bare text."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Values in a form: `set`, `(]` and the like for intervals, tuples and the rows of a matrix, `named`, `:`."""

    form: str
    items: tuple[Value, ...]

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.items))
        return f"{self.form[0]}{inner}{self.form[1]}" if len(self.form) == 2 else f"{self.form}({inner})"


Value: TypeAlias = "Number | Group | Words | str"


def read(text: str) -> Value:
    """The normal form of an answer."""
    return _value(clean(text[:LONGEST]))


@lru_cache(maxsize=256)
def clean(text: str) -> str:
    """LaTeX in one spelling, from LaTeX or plain signs."""
    text = text.strip().translate(_UNICODE)
    for form, spelled in _SPELLINGS:
        text = form.sub(spelled, text)
    exact, *about = re.split(r"\(?(?:\\approx|≈)", text, maxsplit=1)  # `\frac{1}{6} \approx 0.17`
    return (exact if about and re.search("[a-z/]", exact) else text).strip()


def _value(text: str) -> Value:
    plain = re.sub(*HOURS, _TEXT.sub(r" \1\2", text)).strip()
    if _EMPTY.fullmatch(plain):
        return Group("set", ())
    found = _matrix(text) or _several(text) or _number(plain) or _related(text) or _group(text) or _time(plain)
    if found is None and not re.search(r"[\d\\^=+*/]", plain) and re.search(r"[^\W\d]{2,}", plain):
        return Words(plain)
    return _without_unit(text) if found is None else found


def _several(text: str) -> Value | None:
    """Values that commas, `and`, `or`, a plus or minus or a union join."""
    parts = _parts(text)
    out = [part for part in parts if re.fullmatch(r"\(?[a-z]\s?≠[^=]+", part)]
    if out:  # `x ≥ 2, x ≠ 5`
        pieces = _set([part for part in parts if part not in out] or [r"(-\infty,\infty)"]).items
        for point in filter(None, (_number(part.strip("()").split("≠")[1].strip()) for part in out)):
            pieces = tuple(chain.from_iterable(_beside(piece, point) for piece in pieces))
        return pieces[0] if len(pieces) == 1 else Group("set", pieces)
    if len(parts) > 1:
        return _set(parts)
    return _set([text.replace("\\pm", sign) for sign in "+-"]) if "\\pm" in text else None


def _beside(value: Value, point: Number) -> tuple[Value, ...]:
    """A value; of an interval the two on both sides of a point that is inside."""
    if isinstance(value, Group) and len(value.form) == 2 and len(value.items) == 2:
        low, high = value.items
        numbers = [one.value for one in (low, point, high) if isinstance(one, Number)]
        if numbers == sorted(set(numbers)):
            return Group(value.form[0] + ")", (low, point)), Group("(" + value.form[1], (point, high))
    return (value,)


def _set(parts: list[str]) -> Group:
    items = map(_value, parts)
    inner = (one.items if isinstance(one, Group) and one.form == "set" else (one,) for one in items)
    return Group("set", tuple(chain.from_iterable(inner)))


def _time(text: str) -> Group | None:
    if found := re.fullmatch(r"(\d+)\s?:\s?(\d+)(?:\s*([ap])\.?m\.?)?", in_signs(text), re.IGNORECASE):
        hour, half = int(found[1]), f"{found[3].lower()}m" if found[3] else "pm" if int(found[1]) > 12 else ""
        hour -= 12 * (hour > 12 and half == "pm")
        return Group(":", (Number(Fraction(hour)), Number(Fraction(found[2])), *([Words(half)] if half else [])))
    return None


def _parts(text: str) -> list[str]:
    """The values of a list."""
    form = r"\\text\{\s*,?\s*(?:and|or)\s*\}|,?\s+(?:and|or)\s+|\\(?:lor|land|cup)(?![a-zA-Z])"
    form += r"|(?:\\text\{\s*)?(?:または|或者?|[和と])(?:\s*\})?"
    return [part for found in _PART.findall(re.sub(form, " , ", text)) if (part := found.strip())]


def _matrix(text: str) -> Group | None:
    found = re.fullmatch(r"\\begin\{([pbvBV]?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}", text, re.DOTALL)
    rows = re.split(r"\\\\(?:\[[^\]]*\])?", found[2]) if found else []
    cells = [tuple(_value(cell.strip()) for cell in row.split("&")) for row in rows if row.strip()]
    if len(cells) > 1 and all(len(row) == 1 for row in cells):  # a vector
        return Group("()", tuple(chain.from_iterable(cells)))
    return Group("[]", tuple(Group("[]", row) for row in cells)) if found else None


def _group(text: str) -> Value | None:
    """Braces, brackets and parentheses around several values."""
    text = re.sub(r"\\([{}])", r"\1", text)
    if len(text) < 3 or not re.fullmatch(rf"[(\[{{]{_INSIDE}[)\]}}]", text):
        return None
    parts, form = _parts(text[1:-1]), text[0] + text[-1]
    if form == "{}":
        return _set(parts)
    return Group(form, tuple(map(_value, parts))) if len(parts) > 1 and form in ("()", "[]", "(]", "[)") else None


def _related(text: str) -> Value | None:
    """Equations and inequalities; the value where a name is on the left."""
    sides, signs = [side.strip() for side in _RELATION.split(text)], "".join(_RELATION.findall(text))
    if not signs or not all(sides):
        return None
    if set(signs) != {"="}:
        return _interval(sides, signs)
    if len(sides) == 2 and re.fullmatch(r"[a-zA-Z]|\\(?:theta|lambda|phi|mu)", sides[0]):
        return Group("named", (sides[0], _value(sides[1])))
    has_letters = [bool(re.search(r"[a-df-hj-zA-Z]", re.sub(r"\\[a-zA-Z]+", " ", side))) for side in sides]
    is_named = not _COMPUTED.search(_TEXT.sub(r"\1", sides[0]).strip())
    numbers = {number.exact for number in map(_number, sides) if number and number.unit in ("", "%")}
    is_found = is_named or not any(has_letters[:-1]) or has_letters[-1] or not all(has_letters[1:-1])
    is_value = len(numbers) < 2 and is_found
    return _value(sides[-1]) if is_value else text


def _interval(sides: list[str], signs: str) -> Group:
    if signs[0] in ">≥":
        sides, signs = sides[::-1], signs[::-1].translate({ord(">"): "<", ord("≥"): "≤"})
    if len(sides) == 2 and re.fullmatch(r"\|[a-z]\||\\lvert ?[a-z] ?\\rvert", sides[0]):
        sides, signs = [f"-({sides[1]})", "x", sides[1]], signs * 2
    elif len(sides) == 2 and _VARIABLE.fullmatch(sides[0]):
        sides, signs = [r"-\infty", *sides], "<" + signs
    elif len(sides) == 2 and _VARIABLE.fullmatch(sides[1]):
        sides, signs = [*sides, r"\infty"], signs + "<"
    if len(sides) != 3 or not _VARIABLE.fullmatch(sides[1]) or not set(signs) <= set("<≤"):
        return Group(f"relation {signs}", tuple(sides))
    form = ("(" if signs[0] == "<" else "[") + (")" if signs[-1] == "<" else "]")
    return Group(form, (_value(sides[0]), _value(sides[2])))


def _number(text: str) -> Number | None:
    plain = re.sub(r"\\frac\{\s*(-?\d+)\s*\}\{\s*(-?\d+)\s*\}", r" \1/\2", in_figures(text), count=1)
    found = _NUMBER.fullmatch(plain.strip())
    if found is None:
        return None
    if found["over"]:
        value = Fraction(found["whole"] or 0) + Fraction(int(found["over"]), int(found["under"]))
    else:
        value = Fraction(re.sub(r"[,\s]", "", found["v"])) * Fraction(10) ** int(found["e"] or found["p"] or 0)
    value = -value if found["sign"] == "-" else value
    rest = found["rest"].strip()
    if re.fullmatch(
        r"(?:\\?%|per\s?cent(?:age points?)?|パーセント)(?:(?: [a-z]+){0,2}|[\u3040-\u9fff]{1,4})", rest, re.IGNORECASE
    ):
        return Number(value, "%")
    scaled = re.match(r"[万亿億]|k\b|(?i:dozen|hundred|thousand|million|billion)\b", rest)
    if scaled:
        value, rest = value * SCALES[scaled[0].lower()], rest[scaled.end() :]
    unit = _unit(rest, is_apart=bool(scaled) or found["rest"][:1].isspace())
    return None if unit is None else Number(value, unit or found["money"].lstrip("\\"))


def _unit(rest: str, *, is_apart: bool) -> str | None:
    """The name of a unit, "" without one; None if what follows is something else."""
    rest = re.sub(r"^(?:square |sq\.? |平方)(\w+)$|^(\w+) ?\^ ?\{?2\}?$", r"\1\2²", rest.strip(" ."))
    rest = re.sub(r"^(?:cubic |立方)(\w+)$|^(\w+) ?\^ ?\{?3\}?$", r"\1\2³", rest)
    name = _short("/".join(map(_short, re.split(r"\s*/\s*|\s+(?:per|every|an?)\s+|毎|每", rest))))
    is_letter = re.fullmatch("[a-zA-Z]", rest)  # `5m` may be a product
    if not name or (name.rstrip("²³") in _KNOWN and (is_apart or not is_letter)):
        return name
    is_unit = not is_letter and (is_apart or not rest[0].isascii()) and not _NO_UNIT.search(rest)
    return name if is_unit and _UNIT.fullmatch(rest) else None


def _known(name: str) -> tuple[str, Fraction, str] | None:
    """The dimension, size and first name of a unit, by any of its names."""
    plain = re.sub(r"tre(?=s?$)", "ter", name.lower() if len(name) > 1 else name)
    return _KNOWN.get(name) or _KNOWN.get(plain) or (_KNOWN.get(plain.removesuffix("s")) if len(plain) > 3 else None)


def _short(name: str) -> str:
    plain = name.rstrip("²³")
    known = _known(plain)
    return known[2] + name[len(plain) :] if known else name


def in_unit(number: Number, asked: str) -> Number:
    """The number in the unit that a question or another number has, if it has another one of the same dimension."""
    plain = number.unit.rstrip("²³")
    power, known = number.unit[len(plain) :], _known(plain)
    words = re.findall(r"[a-zA-Z]+(?:/[a-z]+)?|[^\W\d_a-zA-Z]+|[€£$°]", asked)
    units = [unit for word in words if known and (unit := _known(word)) and unit[0] == known[0]]
    if not known or not units or known in units:
        return number
    _, size, name = units[-1]
    return Number(number.value * (known[1] / size) ** {"": 1, "²": 2, "³": 3}[power], name + power)


def _without_unit(text: str) -> str:
    r"""`16\pi\text{ cm}^2` is `16\pi`; words alone after an expression are its unit."""
    found = re.search(
        rf"(?<=[\w}})])(?:\s*{_TEXT.pattern}|(\s+[a-z ]{{2,}}|\s*[\u3040-\u9fff]+)(?:\^\{{?[23]\}}?)?)[\s.]*$", text
    )
    return text[: found.start()].strip() if found and _unit(found[1] or found[3], is_apart=True) else text
