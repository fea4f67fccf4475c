r"""Normal forms of mathematical answers: exact numbers with units, sets, intervals, tuples, matrices, equations.

`x<3` is the interval `(-\infty,3)`, `\pm 2` the set of two, `x = 5` is 5; `2x = 5` stays an equation. What is neither
is an expression in LaTeX, which the worker process compares, or words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias
from unicodedata import normalize

LONGEST = 1_000
"""How many characters an answer may have: our choice."""
LARGEST_POWER = 400  # of ten, in a number: our choice
_UNITS = {
    "length": "km 1000 kilometer kilometers kilometre kilometres|m 1 meter meters metre metres 米 メートル|"
    "cm 1/100 centimeter centimeters centimetre centimetres 厘米|mm 1/1000 millimeter millimeters millimetre "
    "millimetres|"
    "mi 1609344/1000 mile miles|in 254/10000 inch inches|ft 3048/10000 foot feet|yd 9144/10000 yard yards",
    "mass": "kg 1000 kilogram kilograms|g 1 gram grams|mg 1/1000 milligram milligrams|t 1000000 tonne tonnes|"
    "lb 45359237/100000 lbs pound pounds|oz 28349523125/1000000000 ounce ounces",
    "time": "s 1 sec secs second seconds 秒|min 60 mins minute minutes 分钟 分|h 3600 hr hrs hour hours 小时 時間|"
    "d 86400 day days 天 日|week 604800 weeks|year 31536000 years",
    "volume": "l 1 L liter liters litre litres|ml 1/1000 mL milliliter milliliters millilitre millilitres",
    "money": "$ 1 dollar dollars usd USD 美元|cent 1/100 cents ¢|€ 1 euro euros EUR 欧元 ユーロ|£ 1|¥ 1",
    "angle": "° 1 degree degrees deg 度|rad 573/10 radian radians",
    "speed": "m/s 1 米/秒|km/h 5/18 kph|mph 44704/100000",
}
_KNOWN = {
    name: (dimension, Fraction(words.split()[1]), words.split()[0])
    for dimension, units in _UNITS.items()
    for words in units.split("|")
    for name in (words.split()[0], *words.split()[2:])
}
_SCALES = {"k": 10**3, "dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_SCALES |= {"万": 10**4, "亿": 10**8, "億": 10**8}
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_NAMES = (_WORDS + " seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety").split()
_SMALL = {word: at for at, word in enumerate(_NAMES[:20])}
_TENS = {word: 10 * at for at, word in enumerate(_NAMES[20:], 2)}
_PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8}
_PARTS |= {"tenth": 10}
_CJK_DIGITS = {sign: at for at, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CJK_NUMBER = re.compile(
    r"(?:([〇零一二两三四五六七八九十百千]+)分[之の]([一二三四五六七八九十百千]+)|([〇零一二两三四五六七八九十百千]+)(?!分[之の]))"
)
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?:\s\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    rf"""(?P<sign>[-+]?)\s*(?P<money>\\?[$€£¥]?)\s*
    (?: (?:(?P<whole>\d+)\s*)?\\frac\{{\s*(?P<n>-?\d+)\s*\}}\{{\s*(?P<d>-?\d+)\s*\}}
      | (?:(?P<whole2>\d+)\s+)?(?P<n2>\d+)\s*/\s*(?P<d2>\d+)(?![\d.])
      | (?P<v>{_DIGITS})\.?
        (?:e(?P<e>[-+]?\d{{1,4}})|\s*(?:\\times|\\cdot|[x*])\s*10\s*\^\s*\{{?(?P<p>[-+]?\d{{1,4}})\}}?)?)
    (?P<rest>.*)""",
    re.VERBOSE | re.DOTALL,
)
_AMOUNT = r"[\d,.]+(?: [a-z/ ]+)?[.]?$"
"""What makes a dollar sign before it money, and not the beginning of mathematics."""
_UNIT = re.compile(r"[^\W\d_]+(?:[ /-][^\W\d_]+){0,4}(?:\s?\^\{?[23]\}?|[²³])?|°[CFcf]?|[€£¥¢$]|米/秒")
_UNICODE = {
    "−": "-", "–": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "π": r"\pi ", "∞": r"\infty ",
    "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∈": r"\in ", "∪": r"\cup ", "∅": r"\emptyset ", "±": r"\pm ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}",
    "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}", "θ": r"\theta ", "ℝ": r"\mathbb{R}", "、": ",", "，": ",", "；": ";",
}  # fmt: skip
_LAYOUT = re.compile(
    r"\\(?:left|right|displaystyle|textstyle|large|Large|small|normalsize|bigl?|bigr|Bigl?|Bigr|limits|quad|qquad)"
    r"(?![a-zA-Z])|\\[!,;:]|\\color\{[a-z]+\}|\\cancel\{[^{}]*\}|(?<=\d)\{,\}(?=\d)|[`~]|(?<!\\)\\ "
)
_WRAPPER = re.compile(
    r"\\(?:mathbf|boldsymbol|bm|underline|overline|fbox|boxed|mathit|bf|color|textcolor\{\w+\})\s*\{([^{}]*)\}"
)
_TEXT = re.compile(r"\\(?:text|textbf|textit|mbox|mathrm|rm|textrm|operatorname)\s*\{([^{}]*)\}(\^\{?[23]\}?)?")
_FUNCTIONS = (
    "sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|log|ln|exp|sinh|cosh|tanh|gcd|lcm|max|min|det|lim|sqrt|pi|infty|"
    "binom|mod|bmod"
)
_EMPTY = re.compile(
    r"\\(?:emptyset|varnothing|O)|\\?\{\s*\\?\}|(?:there (?:is|are) )?no (?:real )?solutions?(?: exists?)?|none"
    r"|(?:the )?empty(?: set)?"
    r"|无解|空集|解なし",
    re.IGNORECASE,
)
_ALL = re.compile(r"\\mathbb\{?R\}?|all (?:real )?numbers|all reals?(?: numbers)?", re.IGNORECASE)
_NAME = re.compile(
    r"\\?[a-zA-Z](?:_\{?\w+\}?)?['′]*(?:\s?\(\s*[^()]*\))?|\\(?:theta|alpha|beta|lambda|angle\s?\w+)|[a-zA-Z]{2,}(?:\s+[a-zA-Z]+)*"
    r"|\\(?:sin|cos|tan)\s?(?:\\theta|[a-zA-Z])|\\?(?:det|lim|max|min)\S*|\(\s*[a-z](?:\s*,\s*[a-z])+\s*\)|[A-Z]\^\{-1\}|\\angle\s*[A-Z]+"
    r"|\\frac\{dy\}\{dx\}|\\?[a-zA-Z]+\([^()]*\)"
)
_VARIABLE = re.compile(r"[a-zA-Z](?:_\w)?|\\theta|[a-z]\([a-z]\)")
_RELATION = re.compile(r"\\(?:leq?|geq?|lt|gt|neq?)(?![a-zA-Z])|[<>]=?|=")
_SENSE = {"<": "<", r"\lt": "<", ">": ">", r"\gt": ">"}
_SENSE |= {r"\le": "<=", r"\leq": "<=", "<=": "<=", r"\ge": ">=", r"\geq": ">=", ">=": ">="}


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number."""

    value: Fraction
    unit: str = ""
    """The first name of a known unit, else the words as written."""
    is_percent: bool = False
    digits: int | None = None
    """Significant digits of a decimal; None for an integer or a fraction."""

    def __str__(self) -> str:
        return f"{self.value}{'%' if self.is_percent else ''}{' ' + self.unit if self.unit else ''}"


class Expression(str):
    """LaTeX for the worker process."""

    __slots__ = ()


class Words(str):
    """Words where mathematics could be."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Values in a form: `set`, `list`, `or`, `(]` and the like for intervals and tuples, `union`, `matrix`, `:`."""

    form: str
    items: tuple[Value, ...]

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.items))
        return f"{self.form[0]}{inner}{self.form[1]}" if len(self.form) == 2 else f"{self.form}({inner})"


Value: TypeAlias = "Number | Expression | Words | Group"


def read(text: str) -> Value:
    """The normal form of an answer."""
    if (spanned := re.fullmatch(r"\s*\$([^$]+)\$\s+([^$\d]+)", text[:LONGEST])) and _unit(spanned[2], is_apart=True):
        text = spanned[1]
    return _value(clean(re.sub(r"(?<=\S)\s*\(\s*(?:≈|~|=|approx|about|or|i\.e\.)[^()]*\)\s*$", "", text[:LONGEST])))


def clean(text: str) -> str:
    """LaTeX in one spelling, from LaTeX or plain signs."""
    text = re.sub(rf"^\s*(?:\$\$?(?!{_AMOUNT})|\\\(|\\\[)|(?:\$\$?|\\\)|\\\])[\s.]*$", "", text.strip())
    text = re.sub(r"\$(?!\s*\d)|(?<=[^\s\d,(\\])\$|(?<=\d)\$(?=\s+\w)", "", text)
    text = re.sub(r"(?<=\d)\^?\s?(?:\\circ|\{\\circ\})|\^\s*\{?\\circ\}?", "°", text)
    text = re.sub(r"°\s*\\(?:text|mathrm)\{\s*([CF])\s*\}", r"°\1", text).replace("{:}", ":")
    text = _LAYOUT.sub("", re.sub(r"(?<=\d),\\!\s*(?=\d{3})", ",", text))
    for sign, latex in _UNICODE.items():
        text = text.replace(sign, latex)
    text = re.sub(r"[²³¹⁰⁴-⁹⁻ⁿ]+", lambda found: f"^{{{normalize('NFKC', found[0]).replace('−', '-')}}}", text)
    text = re.sub(r"\\[dtc]frac", r"\\frac", text)
    for _ in range(3):
        text = _WRAPPER.sub(r"\1", text)
    text = re.sub(r"\\frac\s*(\d)\s*(?=[\d{])", r"\\frac{\1}", text)
    text = re.sub(r"\\frac\s*\{([^{}]*)\}\s*(\d)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"(?<=\d)_\{(\d+)\}", r"_\1", text)
    text = re.sub(r"\\mathrm\s*\{([ei])\}", r"\1", text)
    text = re.sub(r"\\sqrt\s*(\w)", r"\\sqrt{\1}", text)
    text = re.sub(r"√\s*(\d+|\w|\([^()]*\))", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\a-zA-Z])sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(rf"(?<![\\a-zA-Z])({_FUNCTIONS})(?![a-zA-Z]|\s*\}})", r"\\\1", text.replace("infinity", "infty"))
    text = re.sub(r"(\\(?:sin|cos|tan|log|ln|exp))\s*\{([^{}]*)\}", r"\1(\2)", text)
    text = text.replace("**", "^").strip().rstrip(".,;:").strip()
    return re.sub(r"\s+", " ", text)


def _value(text: str) -> Value:
    plain = _TEXT.sub(r" \1\2", text).strip()
    if _EMPTY.fullmatch(plain):
        return Group("set", ())
    if _ALL.fullmatch(plain):
        return Group("()", (Expression(r"-\infty"), Expression(r"\infty")))
    if matrix := _matrix(text):
        return matrix
    parts, is_either = _parts(text)
    if len(parts) > 1:
        items = tuple(_value(part) for part in parts)
        if any(isinstance(item, Group) and item.form in _INTERVALS for item in items) and is_either:
            return Group("union", items)
        return Group("list", tuple(one for item in items for one in _members(item)))
    if "\\pm" in text:
        return Group("set", tuple(_value(_signed(text, sign)) for sign in "+-"))
    if number := _number(plain):
        return number
    if relation := _related(text):
        return relation
    if union := re.split(r"\\cup(?![a-zA-Z])", text)[1:]:
        return Group("union", tuple(_value(part.strip()) for part in (text.split("\\cup", maxsplit=1)[0], *union)))
    if group := _group(text):
        return group
    if time := re.fullmatch(r"(\d+)\s?:\s?(\d+)(?:\s*([ap])\.?m\.?)?", plain, re.IGNORECASE):
        half = (Words(f"{time[3].lower()}m"),) if time[3] else ()
        return Group(":", (Number(Fraction(time[1])), Number(Fraction(time[2])), *half))
    if not re.search(r"[\d\\^=+*/]", plain) and re.search(r"[^\W\d]{2,}", plain):
        return Words(plain)
    return Expression(_exact(_without_unit(text)))


_INTERVALS = frozenset({"()", "[]", "(]", "[)"})


def _members(item: Value) -> tuple[Value, ...]:
    return item.items if isinstance(item, Group) and item.form == "set" else (item,)


def _signed(text: str, sign: str) -> str:
    made = text.replace("\\pm", sign).strip()
    made = re.sub(r"(?<=[=(,])\s*\+|^\+", "", made).strip()
    return made.replace("- -", "+").strip()


def _parts(text: str) -> tuple[list[str], bool]:
    """The values of a list, split outside of brackets, and whether `or` joins them. Thousands stay whole."""
    is_either = bool(re.search(r"\bor\b|或|\\lor\b", text))
    text = re.sub(r"\\text\{\s*,?\s*(?:and|or)\s*\}|,?\s+(?:and|or)\s+|\\(?:lor|land)(?![a-z])|[或和と]", " , ", text)
    whole = {at for m in re.finditer(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])", text) for at in range(*m.span())}
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter in ",;" and depth <= 0 and at not in whole:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part], is_either


def _matrix(text: str) -> Group | None:
    if found := re.fullmatch(r"\\begin\{([pbvBV]?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}", text, re.DOTALL):
        rows = [row.split("&") for row in re.split(r"\\\\(?:\[[^\]]*\])?", found[2]) if row.strip()]
    elif found := re.fullmatch(r"\[\s*(\[[^\[\]]*\](?:\s*,\s*\[[^\[\]]*\])*)\s*\]", text):
        rows = [row.split(",") for row in re.findall(r"\[([^\[\]]*)\]", found[1])]
    else:
        return None
    return Group("matrix", tuple(Group("row", tuple(_value(cell.strip()) for cell in row)) for row in rows))


def _group(text: str) -> Value | None:
    """Braces, brackets and parentheses around several values."""
    if text.startswith("{") and _closes(text) == len(text) - 1 and len(_parts(text[1:-1])[0]) == 1:
        return _value(text[1:-1].strip())
    text = text.replace("\\{", "{").replace("\\}", "}").replace("\\lbrace", "{").replace("\\rbrace", "}")
    if len(text) < 3 or text[0] not in "([{" or text[-1] not in ")]}" or _closes(text) != len(text) - 1:
        return None
    parts, _ = _parts(text[1:-1])
    form = text[0] + text[-1]
    if form == "{}":
        return Group("set", tuple(one for part in parts for one in _members(_value(part))))
    return Group(form, tuple(map(_value, parts))) if len(parts) > 1 and form[1] in ")]" else None


def _closes(text: str) -> int:
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if not depth:
            return at
    return -1


def _related(text: str) -> Value | None:
    """Equations and inequalities; the value where a name is on the left."""
    if found := re.fullmatch(r"(?:[a-zA-Z](?:_\w)?|\([a-z], ?[a-z]\))\s*(?:\\in|:)(?![a-zA-Z])\s*(.+)", text):
        return _value(found[1].strip())
    sides = [side.strip() for side in _RELATION.split(text)]
    signs = _RELATION.findall(text)
    if not signs or not all(sides):
        return None
    if set(signs) == {"="}:
        has_letters = [bool(re.search(r"[a-df-hj-zA-Z]", re.sub(r"\\[a-zA-Z]+", " ", side))) for side in sides]
        if _NAME.fullmatch(_TEXT.sub(r"\1", sides[0]).strip()) or not any(has_letters[:-1]) or has_letters[-1]:
            named = len(sides) == 2 and re.fullmatch(r"[a-zA-Z]", sides[0])
            if named:
                return Group("named", (Expression(sides[0]), _value(sides[1])))
            is_chain = not any(has_letters) and not _NAME.fullmatch(sides[0])
            return Group("chain", tuple(map(_value, sides))) if is_chain else _value(sides[-1])
        return Expression(_exact(" = ".join(sides)))
    if any("ne" in sign for sign in signs) or "=" in signs:
        return Group("relation", tuple(Expression(_exact(side)) for side in sides))
    return _interval(sides, [_SENSE[sign] for sign in signs])


def _interval(sides: list[str], signs: list[str]) -> Group:
    if signs[0].startswith(">"):
        sides, signs = sides[::-1], [sign.replace(">", "<") for sign in reversed(signs)]
    low, high = "(" if signs[0] == "<" else "[", ")" if signs[-1] == "<" else "]"
    if len(sides) == 3 and _VARIABLE.fullmatch(sides[1]):
        return Group(low + high, (_value(sides[0]), _value(sides[2])))
    if len(sides) == 2 and re.fullmatch(r"\|[a-z]\||\\lvert ?[a-z] ?\\rvert", sides[0]):
        edge = _value(sides[1])
        minus = Number(-edge.value) if isinstance(edge, Number) else _value(f"-({sides[1]})")
        return Group(("(" if high == ")" else "[") + high, (minus, edge))
    if len(sides) == 2 and _VARIABLE.fullmatch(sides[0]):
        return Group("(" + high, (Expression(r"-\infty"), _value(sides[1])))
    if len(sides) == 2 and _VARIABLE.fullmatch(sides[1]):
        return Group(low + ")", (_value(sides[0]), Expression(r"\infty")))
    return Group("relation", tuple(Expression(_exact(side)) for side in sides))


def _number(text: str) -> Number | None:
    if spelled := _CJK_NUMBER.match(text):
        parts = _cjk(spelled[1] or "一")
        unit = _unit(text[spelled.end() :], is_apart=True)
        return None if unit is None or not parts else Number(Fraction(_cjk(spelled[2] or spelled[3]), parts), unit)
    if text.lower() in _SMALL or text.lower().split("-")[0].split(" ")[0] in _TENS | _SMALL:
        return _worded(text.lower())
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    over, under = found["n"] or found["n2"], found["d"] or found["d2"]
    if over:
        if not int(under):
            return None
        value, digits = Fraction(found["whole"] or found["whole2"] or 0) + Fraction(int(over), int(under)), None
    else:
        power = int(found["e"] or found["p"] or 0)
        if abs(power) > LARGEST_POWER:
            return None
        written = re.sub(r"[,\s]", "", found["v"])
        value = Fraction(written) * Fraction(10) ** power
        digits = len(written.replace(".", "").lstrip("0")) if "." in written and not power else None
    rest = found["rest"].strip()
    value = -value if found["sign"] == "-" else value
    if re.fullmatch(r"(?:\\?%|per\s?cent(?:age points?)?)(?: [a-z]+){0,2}", rest, re.IGNORECASE):
        return Number(value, is_percent=True, digits=digits)
    scale, rest = _scaled(rest)
    unit = _unit(rest, is_apart=found["rest"][:1].isspace() or scale > 1)
    if unit is None:
        return None
    money = found["money"].lstrip("\\")
    return Number(value * scale, unit or money, digits=digits)


def _cjk(text: str) -> int:
    """`四十七`, and digit by digit `一九四九`."""
    if not re.search(r"[十百千]", text):
        return int("".join(str(_CJK_DIGITS[sign]) for sign in text))
    total, digit = 0, 0
    for sign in text:
        if sign in _CJK_DIGITS:
            digit = _CJK_DIGITS[sign]
        else:
            total, digit = total + (digit or 1) * {"十": 10, "百": 100, "千": 1000}[sign], 0
    return total + digit


def _worded(text: str) -> Number | None:
    head, _, rest = re.sub(r"\s+", " ", text).partition(" ")
    tens, _, ones = head.partition("-")
    if head in _SMALL:
        value = _SMALL[head]
    elif tens in _TENS and (not ones or ones in _SMALL):
        value = _TENS[tens] + _SMALL.get(ones, 0)
    else:
        return None
    if rest.rstrip("s") in _PARTS:
        return Number(Fraction(value, _PARTS[rest.rstrip("s")]))
    scale, rest = _scaled(rest)
    unit = _unit(rest, is_apart=True)
    return None if unit is None or re.search(r"\d", rest) else Number(Fraction(value * scale), unit)


def _scaled(rest: str) -> tuple[int, str]:
    """A scale such as `million`, and what comes after it."""
    word = re.match(r"[万亿億]|[^\W\d]+", rest)
    scale = _SCALES.get(word[0] if len(word[0]) == 1 else word[0].lower()) if word else None
    return (scale, rest[word.end() :].strip()) if word and scale else (1, rest)


def _unit(rest: str, *, is_apart: bool) -> str | None:
    """The name of a unit, "" without one; None if what follows is something else."""
    rest = rest.strip(" .")
    if not rest:
        return ""
    if rest in _KNOWN or rest.lower() in _KNOWN:
        known = _KNOWN.get(rest) or _KNOWN[rest.lower()]
        return known[2] if is_apart or len(rest) > 1 or not rest.isascii() or rest == "$" else None
    if squared := re.fullmatch(r"(?:square|sq\.?) (\w+)|(\w+)(?:²| ?\^ ?\{?2\}?)", rest):
        name = squared[1] or squared[2]
        return f"{_KNOWN[name][2] if name in _KNOWN else name}²"
    per = re.sub(r"\s+per\s+", "/", rest.lower())
    if "/" in per and not re.search(r"[\d=\\]", per):
        over, _, under = per.partition("/")
        short = "/".join(_KNOWN[side][2] if side in _KNOWN else side for side in (over.strip(), under.strip()))
        return _KNOWN[short][2] if short in _KNOWN else short
    if re.search(
        r"\b(?:or|and|to|not|plus|minus|times|if|\w+ed|factorial|choose|of|over|mod|more|less|\w+ths)\b(?! per)", rest
    ):
        return None
    first = re.split(r"[ ]", rest)[0]
    if first.lower() in _KNOWN and len(rest.split()) <= 3 and is_apart:
        return _KNOWN[first.lower()][2]
    if not _UNIT.fullmatch(rest) or (len(rest) == 1 and rest.isascii() and rest.isalpha()):
        return None
    return rest if is_apart or not rest[0].isascii() or rest[0] == "°" else None


def in_unit(number: Number, question: str) -> Number:
    """The number in the unit that the question asks for, if it has another one of the same dimension."""
    power = 2 if number.unit.endswith("²") else 1
    if number.unit.removesuffix("²") not in _KNOWN:
        return number
    dimension, factor, name = _KNOWN[number.unit.removesuffix("²")]
    asked = [
        known for word in re.findall(r"[a-zA-Z]+/[a-z]+|[a-zA-Z]+|[^\W\d_a-zA-Z]+|[€£$°]", question)
        if (known := _KNOWN.get(word if len(word) == 1 else word.lower(), _KNOWN.get(word)))
        and known[0] == dimension
    ]  # fmt: skip
    if not asked or any(known[2] == name for known in asked):
        return number
    unit = asked[-1][2] + ("²" if power == 2 else "")
    return Number(number.value * (factor / asked[-1][1]) ** power, unit, number.is_percent, number.digits)


def _without_unit(text: str) -> str:
    r"""`16\pi\text{ cm}^2` is `16\pi`; words alone after an expression are its unit."""
    found = re.search(r"\\(?:text|mathrm|rm|mbox|operatorname)\s*\{([^{}]*)\}(?:\^\{?[23]\}?)?[\s.]*$", text)
    if found and _unit(found[1], is_apart=True):
        text = text[: found.start()].strip()
    return re.sub(
        r"(?<=[\w}])\s+(?:square\s+)?(?:units?|cm|km|meters?|metres?|inches|feet|degrees?)(?:\^\{?[23]\}?)?$", "", text
    )


def _exact(latex: str) -> str:
    """Decimals as fractions, so that nothing is rounded."""
    latex = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", latex)
    return re.sub(r"(?<![\d.])(\d*)\.(\d+)", lambda m: rf"\frac{{{int(m[1] + m[2])}}}{{{10 ** len(m[2])}}}", latex)
