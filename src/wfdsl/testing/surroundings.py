"""What stands around the three lists of a completion: prose, drafts, reasoning, mentions. None of it may count.

Every piece is made so that it cannot run into what follows: it ends where a line ends, it opens no list that a later
character could continue, and its labels are followed by words.
"""

from __future__ import annotations

from wfdsl.testing.pen import Pen

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


def prose(pen: Pen) -> str:
    """Some lines of text without a list, ending in a line break; possibly empty."""
    lines = [pen.choose(SENTENCES) for _ in range(pen.number(0, 2))]
    if pen.seldom(4):
        lines.append("".join([pen.choose(_SYMBOLS) for _ in range(pen.number(1, 12))]))
    return "".join(f"{line}\n" for line in lines)


def before(pen: Pen, *, in_order: bool) -> str:
    """What may precede the answer. `in_order`: it is written model_id, subtasks, access_list.

    Lists in another order could be joined to a draft that is not complete, or complete in another order.
    """
    text = _reasoning(pen) if pen.seldom(4) else ""
    while pen.seldom(4):
        text += prose(pen) + (pen.choose((*_COMPLETE, *_PARTIAL)) if in_order else pen.choose(_COMPLETE)) + "\n"
    return text + prose(pen)


def behind(pen: Pen, *, in_order: bool) -> str:
    """What may follow the answer; begins on a line of its own."""
    text = "\n" + prose(pen)
    if in_order and pen.seldom(4):
        text += pen.choose(_MENTIONS) + "\n"
    if pen.seldom(8):
        text += "<think>" + prose(pen) + pen.choose(_COMPLETE) + pen.choose(("\n", "\n</think>\n"))
    return text if pen.seldom(2) else text.rstrip("\n")


def _reasoning(pen: Pen) -> str:
    opening = pen.choose(("<think>\n", "<think>", ""))
    text = prose(pen)
    while pen.seldom(2):
        text += pen.choose((*_COMPLETE, *_PARTIAL)) + "\n"
    cut = "model_id = [0,\n" if pen.seldom(4) else ""
    return opening + text + cut + "</think>\n"
