"""A workflow written as a completion: in any style, quoting and layout that the strict profile reads.

With a pen that is asked for repairs, in a way that only the lenient profile reads. Either way the text means exactly
the workflow that it was written from.
"""

from __future__ import annotations

from typing import NamedTuple

from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Workflow
from wfdsl.testing.pen import Pen
from wfdsl.testing.strings import gap, spelled
from wfdsl.testing.surroundings import before, behind, prose

LABELS = ("model_id", "subtasks", "access_list")
ALWAYS_POSSIBLE = (
    "label-spelling",
    "label-annotation",
    "no-break-space",
    "number-as-float",
    "number-as-string",
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
    workflow: Workflow
    repairs: frozenset[str] = frozenset()
    """The codes of the repairs that it needs; without any, the strict profile reads it."""


class Style(NamedTuple):
    """How a labelled list is written: what stands around the label, what binds it, and what stands around the list."""

    opening: str = ""
    closing: str = ""
    binding: str = " = "
    list_opening: str = ""
    list_closing: str = ""
    annotated: bool = False

    @property
    def is_json(self) -> bool:
        """Whether the label stands in double quotes before a colon."""
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


def write_completion(pen: Pen, workflow: Workflow, *, surroundings: bool = True) -> Written:
    """The workflow as a completion. With `surroundings`, prose, drafts and reasoning stand around its lists.

    Raises:
        WorkflowError: three lists cannot say it (an unresolved worker, a depth of its own).
    """
    order = pen.shuffled(LABELS)
    in_order = tuple(order) == LABELS
    text = _lists(pen, workflow, order, between=surroundings)
    if surroundings:
        text = before(pen, in_order=in_order) + _fenced(pen, text) + behind(pen, in_order=in_order)
    return Written(text, workflow, frozenset(pen.used))


def _fenced(pen: Pen, text: str) -> str:
    fence = pen.choose(("", "", "```", "~~~"))
    return f"{fence}{pen.choose(('', 'python', 'json'))}\n{text}\n{fence}" if fence else text


def _lists(pen: Pen, workflow: Workflow, order: list[str], *, between: bool) -> str:
    columns = workflow.to_lists()
    if pen.seldom(4):
        style = pen.choose(_DICTS)
        lists = [_labelled(pen, label, columns[label], style) for label in order]
        return "{" + pen.choose(("", "\n")) + pen.choose((", ", ",\n")).join(lists) + pen.choose(("", ",\n")) + "}"
    style = pen.choose(_STYLES)
    text = ""
    for label in order:
        text += _labelled(pen, label, columns[label], style)
        if label != order[-1]:
            text += _between(pen, style) if between else "\n"
    return text


def _between(pen: Pen, style: Style) -> str:
    kind = pen.choose(("lines", "lines", "one line", "prose", "comment"))
    if kind == "one line":
        return pen.choose(("; ", ", ", " ", " and ", "\t")) if style.opening.strip("*`'") == "" else "\n"
    if kind == "comment":
        return "  # that's it\n"
    return "\n" + prose(pen) if kind == "prose" else "\n"


def _labelled(pen: Pen, label: str, items: list[object], style: Style) -> str:
    name = pen.choose(_SPELLINGS[label]) if pen.mends("label-spelling") else label
    binding = style.binding
    if style.annotated and pen.seldom(2):
        binding = f" : {pen.choose(_TYPES[label])} ="
    elif style.annotated:
        binding = f": {pen.choose(_TYPES[label])} = "
    if pen.mends("label-annotation"):
        binding = pen.choose((" (one per step)", "(3 items)")) + binding
    if pen.mends("no-break-space"):
        binding = "\u00a0" + binding
    space = pen.choose(_BINDING_SPACE) if pen.seldom(4) else ""
    row = _row(pen, _items(pen, label, items, is_json=style.is_json))
    return style.opening + name + style.closing + binding + space + style.list_opening + row + style.list_closing


def _items(pen: Pen, label: str, items: list[object], *, is_json: bool) -> list[str]:
    if label == "model_id":
        return [_integer(pen, int(str(item))) for item in items]
    if label == "subtasks":
        return [spelled(pen, str(item), is_json=is_json) for item in items]
    return [_sight(pen, item, step) for step, item in enumerate(items)]  # type: ignore[arg-type]


def _row(pen: Pen, items: list[str]) -> str:
    """Items between brackets, or between round ones where that repair is asked for."""
    as_tuple = pen.mends("tuple-for-list")
    layout = pen.choose((", ", ",", ",\n    ")) if len(items) > 1 else ""
    text = layout.join([gap(pen) + item + gap(pen) for item in items])
    if items and ((as_tuple and len(items) == 1) or pen.seldom(5)):
        text += "," + gap(pen)
    return f"({text})" if as_tuple else f"[{text}]"


def _integer(pen: Pen, value: int) -> str:
    if pen.mends("number-as-float"):
        return f"{value}.0"
    if pen.mends("number-as-string"):
        return spelled(pen, str(value))
    return "-0" if value == 0 and pen.seldom(20) else str(value)


def _sight(pen: Pen, access: Access, step: int) -> str:
    if access == ALL:
        return _all(pen, step)
    if not access and pen.mends("access-none"):
        return pen.choose(("None", "null", '"none"', "'None'"))
    if len(access) == 1 and pen.mends("access-bare-index"):
        return _integer(pen, access[0])
    indices = pen.shuffled(access)
    if indices and pen.seldom(6):
        indices.append(pen.choose(indices))
    return _row(pen, [_integer(pen, index) for index in indices])


def _all(pen: Pen, step: int) -> str:
    word = spelled(pen, pen.choose(("all", "all", "All", "ALL", "aLL")))
    if step and pen.mends("access-all-and-more"):
        return _row(pen, pen.shuffled([word, _integer(pen, pen.number(0, step - 1))]))
    return _row(pen, [word]) if pen.seldom(3) else word
