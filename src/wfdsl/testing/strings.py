"""String literals: the many ways to write one value that the language reads alike."""

from __future__ import annotations

import json
import unicodedata

from wfdsl.testing.pen import Pen

GAPS = (
    "", " ", "\n", "\t", "\n    ", "\r\n", "\f", " \\\n", " # it's [not] an \"item\"\n", "  # model_id = [9]\n",
)  # fmt: skip
"""What may stand between the tokens of a list."""
_SIMPLE = {
    "\\": "\\\\", "'": "\\'", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r",
    "\t": "\\t", "\v": "\\v",
}  # fmt: skip
_MEANS_NOTHING = " .,;:!?-+*$%^&()[]{}<>|~`@dswDSWBcqz"  # behind a backslash, which then stays
_HALF_PAIR = "\\ud83d"
_LAST_OF_BMP = 0xFFFF


def gap(pen: Pen) -> str:
    """White space and comments between two tokens, most often none."""
    if pen.mends("no-break-space"):
        return "\u00a0"
    return pen.choose(GAPS) if pen.seldom(5) else ""


def spelled(pen: Pen, value: str, *, is_json: bool = False) -> str:
    r"""A literal of this value: one string or several neighbours, perhaps between round brackets.

    `is_json`: the label stands in double quotes before a colon, so that `\/` means `/`.
    """
    pieces = [_piece(pen, part, is_json=is_json) for part in _parts(pen, value)]
    written = pieces[0]
    for piece in pieces[1:]:
        written += (gap(pen) or " ") + piece
    while pen.seldom(12):
        written = f"({gap(pen)}{written}{gap(pen)})"
    return written


def _parts(pen: Pen, value: str) -> list[str]:
    if not pen.seldom(5):
        return [value]
    cuts = sorted(pen.number(0, len(value)) for _ in range(pen.number(1, 2)))
    return [value[start:end] for start, end in zip([0, *cuts], [*cuts, len(value)], strict=True)]


def _piece(pen: Pen, value: str, *, is_json: bool) -> str:
    if pen.mends("curly-quote"):
        return _curly(pen, value)
    if "\n" in value and pen.mends("line-break-in-string"):
        quote = pen.choose("\"'")
        return quote + "".join(_SIMPLE[char] if char in {"\\", "\r", quote} else char for char in value) + quote
    if "\ufffd" in value and pen.mends("lone-surrogate"):
        return _with_half_pairs(value)
    kind = pen.choose(("plain", "json", "raw", "long"))
    if kind == "json":
        return _as_json(pen, value, is_json=is_json)
    quote = pen.choose(('"', "'"))
    if kind == "raw" and (raw := _raw(pen, value, quote, is_json=is_json)):
        return raw
    prefix = pen.choose(("", "", "u", "U"))
    mark = quote * 3 if kind == "long" else quote
    return prefix + mark + _body(pen, value, forbidden=quote, lines=kind == "long", is_json=is_json) + mark


def _as_json(pen: Pen, value: str, *, is_json: bool) -> str:
    written = json.dumps(value, ensure_ascii=pen.seldom(2))
    return written.replace("/", "\\/") if is_json and pen.seldom(2) else written


def _raw(pen: Pen, value: str, quote: str, *, is_json: bool) -> str:
    """A raw string, or nothing if no raw string says this."""
    ends_in_backslash = (len(value) - len(value.rstrip("\\"))) % 2 == 1
    if quote in value or "\r" in value or "\0" in value or ends_in_backslash or (is_json and "\\/" in value):
        return ""
    mark = quote * 3 if "\n" in value or pen.seldom(3) else quote
    return pen.choose("rR") + mark + value + mark


def _curly(pen: Pen, value: str) -> str:
    if pen.seldom(2):
        return "‘" + _body(pen, value, forbidden="‘’", lines=False, is_json=False) + "’"
    return "“" + _body(pen, value, forbidden="“”", lines=False, is_json=False) + "”"


def _with_half_pairs(value: str) -> str:
    return '"' + "".join(_HALF_PAIR if char == "\ufffd" else _escape_code(char) for char in value) + '"'


def _body(pen: Pen, value: str, *, forbidden: str, lines: bool, is_json: bool) -> str:
    """What stands between the quotes."""
    units = escaped(pen, value, forbidden=forbidden, lines=lines)
    if not is_json and pen.seldom(12):
        units.insert(pen.number(0, len(units)), pen.choose(("\\\n", "\\\r\n")))
    return "".join(units)


def escaped(pen: Pen, value: str, *, forbidden: str, lines: bool = False) -> list[str]:
    """The characters of a string, some of them as escapes, each by itself.

    `forbidden` are characters that must be escaped, as a line break must unless `lines` allows it.
    """
    never = {"\\", "\r", "\0", *forbidden, *(() if lines else "\n")}
    one_in = pen.choose((0, 0, 4, 1))
    units: list[str] = []
    at = 0
    while at < len(value):
        char, behind = value[at], value[at + 1 : at + 2]
        if char == "\\" and behind and behind in _MEANS_NOTHING and pen.seldom(2):
            units.append(char + behind)
            at += 1
        elif char in never or (one_in and pen.seldom(one_in)):
            units.append(_escape(pen, char))
        else:
            units.append(char)
        at += 1
    return units


def _escape(pen: Pen, char: str) -> str:
    number = ord(char)
    options = [_SIMPLE.get(char, _escape_code(char)), f"\\U{number:08x}"]
    if number <= 0xFF:
        options += [f"\\x{number:02X}", f"\\{number:03o}"]
    if number > _LAST_OF_BMP:
        options.append(json.dumps(char)[1:-1])
    if name := unicodedata.name(char, ""):
        options.append(f"\\N{{{name}}}")
    return pen.choose(options)


def _escape_code(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= _LAST_OF_BMP else f"\\U{ord(char):08x}"
