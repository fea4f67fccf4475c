"""Workflows written as completions: in every style, quoting and layout, with prose and drafts around the lists.

Without repairs the strict profile reads them, with repairs only the lenient one. Either way the text means exactly the
workflow that it was written from, and nothing around the lists counts. Every piece of the surroundings is made so that
it cannot run into what follows: it ends where a line ends, it opens no list that a later character could continue, and
its labels are followed by words.
"""

from __future__ import annotations

import json
import unicodedata
from typing import NamedTuple

from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Workflow
from wfdsl.testing.generators import Choices

GAPS = (
    "", " ", "\n", "\t", "\n    ", "\r\n", "\f", " \\\n", " # it's [not] an \"item\"\n", "  # model_id = [9]\n",
)  # fmt: skip
"""What may separate the tokens of a list."""
_SIMPLE = {
    "\\": "\\\\", "'": "\\'", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r",
    "\t": "\\t", "\v": "\\v",
}  # fmt: skip
_MEANS_NOTHING = " .,;:!?-+*$%^&()[]{}<>|~`@dswDSWBcqz"  # after a backslash, which is then kept
_HALF_PAIR = "\\ud83d"
_LAST_OF_BMP = 0xFFFF


def gap(rng: Choices) -> str:
    """White space and comments between two tokens, most often none."""
    if rng.needs_repair("no-break-space"):
        return "\u00a0"
    if rng.needs_repair("slash-comment"):
        return ' // it\'s [not] an "item"\n'
    return rng.choose(GAPS) if rng.one_in(5) else ""


def spelled(rng: Choices, value: str, *, is_json: bool = False) -> str:
    r"""A literal of this value: one string or several neighbours, perhaps between round brackets.

    `is_json`: the label is in double quotes before a colon, so that `\/` means `/`.
    """
    pieces = [_piece(rng, part, is_json=is_json) for part in _parts(rng, value)]
    written = pieces[0]
    for piece in pieces[1:]:
        written += (gap(rng) or " ") + piece
    while rng.one_in(12):
        written = f"({gap(rng)}{written}{gap(rng)})"
    return written


def _parts(rng: Choices, value: str) -> list[str]:
    if not rng.one_in(5):
        return [value]
    cuts = sorted(rng.number(0, len(value)) for _ in range(rng.number(1, 2)))
    return [value[start:end] for start, end in zip([0, *cuts], [*cuts, len(value)], strict=True)]


def _piece(rng: Choices, value: str, *, is_json: bool) -> str:
    if rng.needs_repair("curly-quote"):
        return _curly(rng, value)
    if "\n" in value and rng.needs_repair("line-break-in-string"):
        quote = rng.choose("\"'")
        return quote + "".join(_SIMPLE[char] if char in {"\\", "\r", quote} else char for char in value) + quote
    if "\ufffd" in value and rng.needs_repair("lone-surrogate"):
        return _with_half_pairs(value)
    kind = rng.choose(("plain", "json", "raw", "long"))
    if kind == "json":
        return _as_json(rng, value, is_json=is_json)
    quote = rng.choose(('"', "'"))
    if kind == "raw" and (raw := _raw(rng, value, quote, is_json=is_json)):
        return raw
    prefix = rng.choose(("", "", "u", "U"))
    mark = quote * 3 if kind == "long" else quote
    return prefix + mark + _body(rng, value, forbidden=quote, lines=kind == "long", is_json=is_json) + mark


def _as_json(rng: Choices, value: str, *, is_json: bool) -> str:
    written = json.dumps(value, ensure_ascii=rng.one_in(2))
    return written.replace("/", "\\/") if is_json and rng.one_in(2) else written


def _raw(rng: Choices, value: str, quote: str, *, is_json: bool) -> str:
    """A raw string, or nothing if no raw string says this."""
    ends_in_backslash = (len(value) - len(value.rstrip("\\"))) % 2 == 1
    if quote in value or "\r" in value or "\0" in value or ends_in_backslash or (is_json and "\\/" in value):
        return ""
    mark = quote * 3 if "\n" in value or rng.one_in(3) else quote
    return rng.choose("rR") + mark + value + mark


def _curly(rng: Choices, value: str) -> str:
    if rng.one_in(2):
        return "‘" + _body(rng, value, forbidden="‘’", lines=False, is_json=False) + "’"
    return "“" + _body(rng, value, forbidden="“”", lines=False, is_json=False) + "”"


def _with_half_pairs(value: str) -> str:
    return '"' + "".join(_HALF_PAIR if char == "\ufffd" else _escape_code(char) for char in value) + '"'


def _body(rng: Choices, value: str, *, forbidden: str, lines: bool, is_json: bool) -> str:
    """The text between the quotes."""
    units = escaped(rng, value, forbidden=forbidden, lines=lines)
    if not is_json and rng.one_in(12):
        units.insert(rng.number(0, len(units)), rng.choose(("\\\n", "\\\r\n")))
    return "".join(units)


def escaped(rng: Choices, value: str, *, forbidden: str, lines: bool = False) -> list[str]:
    """The characters of a string, some of them as escapes, each by itself.

    `forbidden` are characters that must be escaped, as a line break must unless `lines` allows it.
    """
    never = {"\\", "\r", "\0", *forbidden, *(() if lines else "\n")}
    one_in = rng.choose((0, 0, 4, 1))
    units: list[str] = []
    at = 0
    while at < len(value):
        char, following = value[at], value[at + 1 : at + 2]
        if char == "\\" and following and following in _MEANS_NOTHING and rng.one_in(2):
            units.append(char + following)
            at += 1
        elif char in never or (one_in and rng.one_in(one_in)):
            units.append(_escape(rng, char))
        else:
            units.append(char)
        at += 1
    return units


def _escape(rng: Choices, char: str) -> str:
    number = ord(char)
    options = [_SIMPLE.get(char, _escape_code(char)), f"\\U{number:08x}"]
    if number <= 0xFF:
        options += [f"\\x{number:02X}", f"\\{number:03o}"]
    if number > _LAST_OF_BMP:
        options.append(json.dumps(char)[1:-1])
    if name := unicodedata.name(char, ""):
        options.append(f"\\N{{{name}}}")
    return rng.choose(options)


def _escape_code(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= _LAST_OF_BMP else f"\\U{ord(char):08x}"


SENTENCES = (
    "I will plan, solve and check.",
    "Let's see: the workers' notes aren't needed, don't you think?",
    "The model_id list says who works on what, so it comes first.",
    "`subtasks` are instructions; access_list: who sees which step.",
    "If model_id == [0] held, one call would do.",
    "max_model_id = [6], my_subtasks = ['x'] and full_access_list = [[0]] are variables of mine.",
    'He said "use [brackets], {braces} and (parentheses)".',
    "An open bracket [ or an open quote ' is nothing here.",
    "# A heading with `code`",
    "| step | worker |\n|------|--------|\n| 0    | 3      |",
    "```python\ndef f(x):\n    return [x] * 2\n```",
    "<answer>42</answer>",
    '{"note": [1, 2, {"deep": [[["x"]]]}]}',
    "model_id = none of these; subtasks = see below; access_list = everything.",
    "Model: GPT. Access granted. Subtasks follow.",
    "“Typographic” quotes, l’été, ‘single’ ones — and an ellipsis…",
    "这里是计划：先推导，再验证。",
    "a < b, c > d, <br/>, </div> and &amp;.",
)
_SYMBOLS = "[](){}'\"`*=:#,.;\\ \t\n019-+<>/é漢😀“”’\u00a0\u2028"
_COMPLETE = (
    'model_id = [3]\nsubtasks = ["just answer"]\naccess_list = [[]]',
    "My first idea: model_id = [3], subtasks = ['just answer'], access_list = [[]]. Too naive.",
    '{"model_id": [1, 2], "subtasks": ["a", "b"], "access_list": [[], "all"]}',
    "model_id: [9, 9]\nsubtasks: ['', 'b']\naccess_list: [[5], 'none of them']",
    "model_id = [int, ...]\nsubtasks = [str, ...]\naccess_list = [list, ...]",
    "model_id = [0] * 2\nsubtasks = [f'solve {x}']\naccess_list = [[[0]]]",
    "model_id = []\nsubtasks = []\naccess_list = []",
    "Model ID: [1]\nSubtasks: [“Try.”]\nAccess List: [None]",
)
_PARTIAL = (
    "model_id = [4, 4]",
    "subtasks = ['a draft', \"with 'quotes'\"]",
    "model_id = [2]\nsubtasks = ['no access yet']",
    'access_list = [[], [0], "all"]',
    "model_id = [i for i in range(3)]",
    'subtasks = ["Say "yes" or "no"."]',
    "access_list: list[list[int]] = [[]]\nmodel_id = [0 1]",
    "subtasks = [...]",
)
_MENTIONS = (
    "(model_id = [0] would be cheaper.)",
    "With subtasks = ['one'] and access_list = [[]] it would be faster.",
    "Note that access_list = [...] could be shorter.",
    "model_id = [0, 1, 2, 3] is the pool.",
)


def prose(rng: Choices) -> str:
    """Some lines of text without a list, ending in a line break; possibly empty."""
    lines = [rng.choose(SENTENCES) for _ in range(rng.number(0, 2))]
    if rng.one_in(4):
        lines.append("".join([rng.choose(_SYMBOLS) for _ in range(rng.number(1, 12))]))
    return "".join(f"{line}\n" for line in lines)


def before(rng: Choices, *, partial: bool) -> str:
    """What may precede the answer. `partial`: drafts may lack lists, which those of the answer could stand in for."""
    text = _reasoning(rng) if rng.one_in(4) else ""
    while rng.one_in(4):
        text += prose(rng) + (rng.choose((*_COMPLETE, *_PARTIAL)) if partial else rng.choose(_COMPLETE)) + "\n"
    return text + prose(rng)


def after(rng: Choices, *, mentions: bool) -> str:
    """What may follow the answer; begins on a line of its own. `mentions`: among it labelled lists."""
    text = "\n" + prose(rng)
    if mentions and rng.one_in(2):
        text += rng.choose(_MENTIONS) + "\n"
    if rng.one_in(8):
        text += "<think>" + prose(rng) + rng.choose(_COMPLETE) + rng.choose(("\n", "\n</think>\n"))
    return text if rng.one_in(2) else text.rstrip("\n")


def _reasoning(rng: Choices) -> str:
    opening = rng.choose(("<think>\n", "<think>", ""))
    text = prose(rng)
    while rng.one_in(2):
        text += rng.choose((*_COMPLETE, *_PARTIAL)) + "\n"
    cut = "model_id = [0,\n" if rng.one_in(4) else ""
    return opening + text + cut + "</think>\n"


LABELS = ("model_id", "subtasks", "access_list")
ALWAYS_POSSIBLE = (
    "escaped-json",
    "label-spelling",
    "label-annotation",
    "label-fence",
    "label-tag",
    "no-break-space",
    "number-as-float",
    "number-as-string",
    "slash-comment",
    "tuple-for-list",
)
"""The repairs that every workflow can be written to need."""
SOMETIMES_POSSIBLE = (
    "access-all-and-more",
    "access-bare-index",
    "access-none",
    "curly-quote",
    "line-break-in-string",
    "lone-surrogate",
)
"""Those for which the workflow, or the spelling of its strings, has to give occasion."""
_SPELLINGS = {
    "model_id": ("Model ID", "MODEL_ID", "model\\_id", "model_ids", "Model_Ids"),
    "subtasks": ("Subtasks", "SUBTASKS"),
    "access_list": ("Access List", "ACCESS_LIST", "access\\_list", "access_lists", "Access lists"),
}
_TYPES = {
    "model_id": ("list[int]", "List[int]", "list", "typing.Sequence[int] | None"),
    "subtasks": ("list[str]", "List[str]", 'list["str"]'),
    "access_list": ("list[list[int]]", "List[Union[str, List[int]]]", "list[list[int] | str]"),
}
_BINDING_SPACE = ("", " ", "\n", "\t", "\r\n    ")


class Written(NamedTuple):
    """A text, and what it means."""

    text: str
    """The text."""
    workflow: Workflow
    """What it means."""
    repairs: frozenset[str] = frozenset()
    """The codes of the repairs that it needs; without any, the strict profile reads it."""


class Style(NamedTuple):
    """How a labelled list is written: what surrounds the label, what binds it, and what surrounds the list."""

    opening: str = ""
    closing: str = ""
    binding: str = " = "
    list_opening: str = ""
    list_closing: str = ""
    annotated: bool = False

    @property
    def is_json(self) -> bool:
        """Whether the label is in double quotes before a colon."""
        return self.closing.startswith('"') and ":" in self.binding


PLAIN = Style()
_STYLES = (
    PLAIN,
    Style(binding="="),
    Style(binding=": "),
    Style(binding="："),
    Style(binding=" = ", annotated=True),
    Style("**", "**", ": "),
    Style("**", "", ":** "),
    Style("`", "`", " = "),
    Style("`", "`", ": ", "`", "`"),
    Style("- **", "**", ": `", "", "`"),
    Style("1. ", "", ": "),
    Style("### ", "", "\n=\n"),
    Style("* ", "", " = ", "**", ""),
    Style("plan.", "", "="),
    Style("'", "'", "="),
)
_DICTS = (Style('"', '"', ": "), Style("'", "'", ": "), Style('    "', '"', " :\n"), Style('"', '"', ":"))


def write_completion(rng: Choices, workflow: Workflow, *, surroundings: bool = True) -> Written:
    """The workflow as a completion. With `surroundings`, prose, drafts and reasoning surround its lists.

    Raises:
        WorkflowError: three lists cannot say it (an unresolved worker, a depth of its own).
    """
    order = rng.shuffled(LABELS)
    in_order = tuple(order) == LABELS
    mentions = in_order and rng.one_in(2)  # with lists on both sides, others than those of the answer may be grouped
    apart = surroundings and rng.one_in(2)  # lists that are nearer to one another than to all of these would count
    text = _lists(rng, workflow, order, between=apart)
    if surroundings:
        words = f"{SENTENCES[0]}\n" if apart else ""
        text = before(rng, partial=in_order and not mentions) + words + _fenced(rng, text)
        text += f"\n{words}" + after(rng, mentions=mentions)
    return Written(text, workflow, frozenset(rng.used))


def _fenced(rng: Choices, text: str) -> str:
    fence = rng.choose(("", "", "```", "~~~"))
    return f"{fence}{rng.choose(('', 'python', 'json'))}\n{text}\n{fence}" if fence else text


def _lists(rng: Choices, workflow: Workflow, order: list[str], *, between: bool) -> str:
    columns = workflow.to_lists()
    if rng.needs_repair("escaped-json"):
        return _escaped(rng, {label: columns[label] for label in order})
    if rng.one_in(4):
        style = rng.choose(_DICTS)
        lists = [_labelled(rng, label, columns[label], style) for label in order]
        return "{" + rng.choose(("", "\n")) + rng.choose((", ", ",\n")).join(lists) + rng.choose(("", ",\n")) + "}"
    style = rng.choose(_STYLES)
    text = ""
    for label in order:
        text += _labelled(rng, label, columns[label], style)
        if label != order[-1]:
            text += _between(rng, style) if between else "\n"
    return text


def _escaped(rng: Choices, columns: dict[str, list[object]]) -> str:
    """The arguments of a tool call: JSON inside a JSON string."""
    ascii_only = rng.one_in(2)
    arguments = json.dumps(columns, ensure_ascii=ascii_only, indent=rng.choose((None, None, 2)))
    return json.dumps({"name": "plan", "arguments": arguments}, ensure_ascii=ascii_only)


def _between(rng: Choices, style: Style) -> str:
    kind = rng.choose(("lines", "lines", "one line", "prose", "comment"))
    if kind == "one line":
        return rng.choose(("; ", ", ", " ", " and ", "\t")) if style.opening.strip("*`'") == "" else "\n"
    if kind == "comment":
        return "  # that's it\n"
    return "\n" + prose(rng) if kind == "prose" else "\n"


def _labelled(rng: Choices, label: str, items: list[object], style: Style) -> str:
    if rng.needs_repair("label-tag"):
        return f"<{label}>{rng.choose(_BINDING_SPACE)}{_row(rng, _items(rng, label, items, is_json=False))}</{label}>"
    if rng.needs_repair("label-fence"):
        row = _row(rng, _items(rng, label, items, is_json=False))
        opening = rng.choose((" =\n```python", ":\n```json", "\n```python", "\n```"))
        return f"**{label}**{opening}\n{row}\n```"
    name = rng.choose(_SPELLINGS[label]) if rng.needs_repair("label-spelling") else label
    binding = style.binding
    if style.annotated and rng.one_in(2):
        binding = f" : {rng.choose(_TYPES[label])} ="
    elif style.annotated:
        binding = f": {rng.choose(_TYPES[label])} = "
    if rng.needs_repair("label-annotation"):
        binding = rng.choose((" (one per step)", "(3 items)")) + binding
    if rng.needs_repair("no-break-space"):
        binding = "\u00a0" + binding
    space = rng.choose(_BINDING_SPACE) if rng.one_in(4) else ""
    row = _row(rng, _items(rng, label, items, is_json=style.is_json))
    return style.opening + name + style.closing + binding + space + style.list_opening + row + style.list_closing


def _items(rng: Choices, label: str, items: list[object], *, is_json: bool) -> list[str]:
    if label == "model_id":
        return [_integer(rng, int(str(item))) for item in items]
    if label == "subtasks":
        return [spelled(rng, str(item), is_json=is_json) for item in items]
    return [_access_entry(rng, item, step) for step, item in enumerate(items)]  # type: ignore[arg-type]


def _row(rng: Choices, items: list[str]) -> str:
    """Items between brackets, or between round ones where that repair is asked for."""
    as_tuple = rng.needs_repair("tuple-for-list")
    layout = rng.choose((", ", ",", ",\n    ")) if len(items) > 1 else ""
    text = layout.join([gap(rng) + item + gap(rng) for item in items])
    if items and ((as_tuple and len(items) == 1) or rng.one_in(5)):
        text += "," + gap(rng)
    return f"({text})" if as_tuple else f"[{text}]"


def _integer(rng: Choices, value: int) -> str:
    if rng.needs_repair("number-as-float"):
        return f"{value}.0"
    if rng.needs_repair("number-as-string"):
        return spelled(rng, str(value))
    return "-0" if value == 0 and rng.one_in(20) else str(value)


def _access_entry(rng: Choices, access: Access, step: int) -> str:
    if access == ALL:
        return _all(rng, step)
    if not access and rng.needs_repair("access-none"):
        return rng.choose(("None", "null", '"none"', "'None'"))
    if len(access) == 1 and rng.needs_repair("access-bare-index"):
        return _integer(rng, access[0])
    indices = rng.shuffled(access)
    if indices and rng.one_in(6):
        indices.append(rng.choose(indices))
    return _row(rng, [_integer(rng, index) for index in indices])


def _all(rng: Choices, step: int) -> str:
    word = spelled(rng, rng.choose(("all", "all", "All", "ALL", "aLL")))
    if step and rng.needs_repair("access-all-and-more"):
        return _row(rng, rng.shuffled([word, _integer(rng, rng.number(0, step - 1))]))
    return _row(rng, [word]) if rng.one_in(3) else word
