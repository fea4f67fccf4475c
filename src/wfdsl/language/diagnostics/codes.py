"""The table of diagnostic codes: what each means, how bad it is, an example and its cure.

Codes are public API: they are never renamed or reused. `wfdsl explain CODE` and the reference page are made from this
table. Severity "repair" means: a warning in the lenient profile, an error in the strict one.
"""

from __future__ import annotations

from wfdsl.language.diagnostics.code import Code
from wfdsl.language.diagnostics.file_codes import FILE_CODES


def _plan(access: str = "[[], [0]]", model_id: str = "[0, 1]", subtasks: str = '["Plan it.", "Do it."]') -> str:
    return f"model_id = {model_id}\nsubtasks = {subtasks}\naccess_list = {access}"


_FINE = _plan()

_COMPLETION = (
    Code(
        "list-missing",
        "error",
        "completion",
        "one of the three lists is missing",
        "A completion holds three labelled lists: model_id, subtasks and access_list. Each label is followed by `=` or "
        "`:` and then directly by its list. Lists in reasoning (between `<think>` and `</think>`, before a lone "
        "`</think>`, or after a `<think>` that is not closed; or the marks of another model) do not count.",
        'model_id = [0]\nsubtasks = ["Solve it."]',
        'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]',
    ),
    Code(
        "list-split",
        "error",
        "completion",
        "the three lists are not next to each other",
        "The answer is three neighbouring lists with three different labels. Prose may stand between them, but not "
        "a second list with the label of one of them.",
        _plan().replace("subtasks", 'subtasks = ["Solve it."]\nsubtasks'),
        _FINE,
    ),
    Code(
        "lists-ambiguous",
        "error",
        "completion",
        "it is not clear which lists are the answer",
        "Lists are grouped by threes, and the last group is the answer. Where groups can be made in several ways, the "
        "one in the order model_id, subtasks, access_list counts. If it is not in this order, and another group that "
        "overlaps with it says something else, nothing is guessed.",
        'access_list = [[]]\nsubtasks = ["Solve it."]\nmodel_id = [0]\naccess_list = ["all"]',
        'access_list = [[]]\nsubtasks = ["Solve it."]\nmodel_id = [0]',
    ),
    Code(
        "list-differs",
        "warning",
        "completion",
        "a list beside the answer has another value",
        "A label is written again after the answer, or just before it, with a list of another value. It does not "
        "count; the warning is there because it may have been meant as a correction.",
        _FINE + "\nSo much for the plan, but model_id = [0, 0] would be cheaper.",
        _FINE,
    ),
    Code(
        "lists-replaced",
        "note",
        "completion",
        "three lists before the answer say something else",
        "The last three lists that belong together are the answer, also where they are struck out, commented out or "
        "introduced as an example of what not to do: the text around the lists is not understood.",
        _FINE + "\nDo not write:\n" + _plan(model_id="[0, 0]"),
        "Do not ask one worker twice.\n" + _FINE,
    ),
    Code(
        "list-truncated",
        "error",
        "completion",
        "the text ends inside a list",
        "The last list is not closed before the text ends, so the completion was cut off, most often by a token limit. "
        "Nothing is guessed: a cut list may have continued, and an earlier draft is not used instead.",
        'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[',
        'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]',
    ),
    Code(
        "not-a-literal",
        "error",
        "completion",
        "a list contains something that is not a literal",
        "The lists are data, never code: integers, strings and lists of them. Names, calls, operators, comprehensions, "
        "f-strings, bytes, dicts, sets and starred items are not evaluated.",
        _plan(model_id="[i for i in range(2)]"),
        _FINE,
    ),
    Code(
        "list-continued",
        "error",
        "completion",
        "a list continues after its closing bracket",
        "An operator, a call, an index or an attribute directly after a list would change its value, so the list "
        "alone is not what was meant.",
        _plan(model_id="[0] * 2"),
        _plan(model_id="[0, 0]"),
    ),
    Code(
        "list-changed",
        "error",
        "completion",
        "code changes a list after it",
        "A completion is data: nothing in it is run. Where code such as `model_id.append(1)`, `model_id += [1]` or "
        "`model_id[0] = 1` follows the list of the answer, the list alone is not what was meant.",
        _plan(model_id="[0]") + "\nmodel_id.append(1)",
        _FINE,
    ),
    Code(
        "nested-too-deep",
        "error",
        "completion",
        "a list has a third level of brackets",
        "access_list is a list of lists; nothing in the language is nested deeper than that.",
        _plan(access="[[], [[0]]]"),
        _FINE,
    ),
    Code(
        "worker-type",
        "error",
        "completion",
        "an item of model_id is not an integer",
        "A worker is written as its index in the pool, a decimal integer.",
        _plan(model_id='["Model 0", 1]'),
        _FINE,
    ),
    Code(
        "subtask-type",
        "error",
        "completion",
        "an item of subtasks is not a string",
        "Each subtask is a string literal; neighbouring strings are joined.",
        _plan(subtasks='[3, "Do it."]'),
        _FINE,
    ),
    Code(
        "access-type",
        "error",
        "completion",
        'an entry of access_list is neither a list of steps nor "all"',
        'An access entry is `[]` (sees nothing), `"all"` or `["all"]` (sees every earlier step), or a list with the '
        "indices of earlier steps.",
        _plan(access='[[], "first"]'),
        _FINE,
    ),
    Code(
        "number-too-large",
        "error",
        "both",
        "an integer has too many digits",
        "No pool and no workflow is that large; integers of more than 18 digits are not read.",
        _plan(model_id=f"[0, 1{'0' * 20}]"),
        _FINE,
    ),
    Code(
        "bad-escape",
        "error",
        "both",
        "a string holds a broken escape sequence",
        r"`\x` needs two hexadecimal digits, `\u` four, `\U` eight (at most 10FFFF), and `\N{...}` the name of a "
        "character. A literal backslash is written twice.",
        _plan(subtasks=r'["Look in C:\x.", "Do it."]'),
        _plan(subtasks=r'["Look in C:\\x.", "Do it."]'),
    ),
    Code(
        "text-too-long",
        "error",
        "both",
        "the text is longer than the limit",
        "Longer texts are not read, so that time and memory stay bounded. The limit is a setting; it counts "
        "characters, and is 1,048,576 (1 MiB) unless given.",
        "",
    ),
    Code(
        "depth-unlisted",
        "error",
        "wf",
        "a step's own recursion depth cannot be written as three lists",
        "The completion form has no place for a depth: print a workflow file instead, or leave the depth to the run's "
        "settings.",
        "",
    ),
    Code(
        "settings-unlisted",
        "error",
        "wf",
        "a step's own temperature or max_tokens cannot be written as three lists",
        "The completion form has no place for the settings of a step: print a workflow file instead, or leave them to "
        "the pool's entries.",
        "",
    ),
    Code(
        "more-of-the-same",
        "note",
        "both",
        "there are more problems of a kind than are shown",
        "Of each code the first 100 are shown, so that checking a text that is made of problems takes no longer than "
        "reading it.",
        "",
    ),
    Code(
        "lengths-differ",
        "error",
        "completion",
        "the three lists do not have the same length",
        "Step i is made of the i-th item of each list, so all three need one item per step.",
        _plan(access="[[]]"),
        _FINE,
    ),
    Code(
        "empty-workflow",
        "error",
        "completion",
        "three empty lists in the first round",
        "After the first round, three empty lists mean: return the previous response as it is. In the first round "
        "there is nothing to return.",
        "model_id = []\nsubtasks = []\naccess_list = []",
        'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]',
    ),
)

_MEANING = (
    Code(
        "too-many-steps",
        "error",
        "both",
        "the workflow has more steps than are allowed",
        "The limit is a setting (`--max-steps`, `max_steps=`): 5 for completions unless given, none for files.",
        _plan("[[], [], [], [], [], []]", "[0, 0, 0, 0, 0, 0]", '["a", "b", "c", "d", "e", "f"]'),
        _FINE,
    ),
    Code(
        "worker-not-in-pool",
        "error",
        "both",
        "a worker is not in the pool",
        "Workers are numbered from 0, and a pool may offer only some of them.",
        _plan(model_id="[0, -1]"),
        _FINE,
    ),
    Code(
        "subtask-blank",
        "error",
        "both",
        "a subtask is empty",
        "A subtask needs at least one character that is not white space: a worker cannot be asked nothing.",
        _plan(subtasks='["", "Do it."]'),
        _FINE,
    ),
    Code(
        "access-not-earlier",
        "error",
        "both",
        "a step is asked to see itself or a later step",
        "Steps run in order and see only what is there: the subtask and response of earlier steps. Steps are numbered "
        "from 0.",
        _plan(access="[[], [1]]"),
        _FINE,
    ),
    Code(
        "access-negative",
        "error",
        "both",
        "an access entry contains a negative index",
        "Steps are numbered from 0; negative indices do not count from the end.",
        _plan(access="[[], [-1]]"),
        _FINE,
    ),
    Code(
        "access-not-binary",
        "error",
        "both",
        "a step is asked to see some of the earlier steps, and only none or all is allowed",
        'Under the binary scheme (`access = "binary"`), which is that of the paper\'s main results, an access entry is '
        '`[]` or `"all"`.',
        "",
    ),
    Code(
        "conductor-too-deep",
        "error",
        "both",
        "a Conductor node where no recursion depth is left",
        "At the last level of recursion a workflow may not hand the work to a Conductor again; the listing of workers "
        "does not show it there.",
        "",
    ),
    Code(
        "dead-step",
        "warning",
        "both",
        "a step cannot affect the answer",
        "The answer is the last step's response, and no path of access leads from this step to the last one. Such "
        "steps are not run unless asked for.",
        _plan(access="[[], []]"),
        _FINE,
    ),
    Code(
        "access-repeated",
        "note",
        "both",
        "an access entry names a step twice",
        "Each step is shown once, in the order of the workflow, however often it is named.",
        _plan(access="[[], [0, 0]]"),
        _FINE,
    ),
    Code(
        "all-at-first-step",
        "note",
        "both",
        'the first step sees "all", which is nothing',
        "Before the first step there is nothing to see; in a later round it sees the end of the previous round.",
        _plan(access='["all", [0]]'),
        _FINE,
    ),
)

_REPAIRS = (
    Code(
        "label-spelling",
        "repair",
        "completion",
        "a label is not spelled as it should be",
        r"The labels are `model_id`, `subtasks` and `access_list`, in lower case. `Model ID`, `MODEL_ID`, `model\_id` "
        "and `model_ids` are understood in the lenient profile.",
        'Model ID: [0]\nsubtasks: ["Solve it."]\naccess_list: [[]]',
        'model_id: [0]\nsubtasks: ["Solve it."]\naccess_list: [[]]',
    ),
    Code(
        "label-annotation",
        "repair",
        "completion",
        "there is a remark in round brackets after a label",
        "Only a type annotation (`model_id: list[int] = ...`) is allowed between a label and its list.",
        'model_id (one worker): [0]\nsubtasks: ["Solve it."]\naccess_list: [[]]',
        'model_id: [0]\nsubtasks: ["Solve it."]\naccess_list: [[]]',
    ),
    Code(
        "label-fence",
        "repair",
        "completion",
        "a code fence stands between a label and its list",
        "A fence may surround labelled lists. One that begins after a label is understood in the lenient profile, with "
        "or without `=` or `:` after the label.",
        _FINE.replace("model_id = [0, 1]", "model_id:\n```python\n[0, 1]\n```"),
        _FINE,
    ),
    Code(
        "label-tag",
        "repair",
        "completion",
        "a label or its list is written between tags",
        "A label is followed by `=` or `:`. `<model_id>[0]</model_id>`, `<b>model_id</b> = [0]` and a parameter of a "
        "tool call in XML are understood in the lenient profile.",
        _FINE.replace("model_id = [0, 1]", "<model_id>[0, 1]</model_id>"),
        _FINE,
    ),
    Code(
        "escaped-json",
        "repair",
        "completion",
        "the lists are JSON inside a JSON string",
        "Arguments of tool calls are often written like this: every quotation mark has a backslash before it, and "
        "escapes have two. The lenient profile reads the escapes twice.",
        r'{"arguments": "{\"model_id\": [0], \"subtasks\": [\"Solve it.\"], \"access_list\": [[]]}"}',
        '{"model_id": [0], "subtasks": ["Solve it."], "access_list": [[]]}',
    ),
    Code(
        "slash-comment",
        "repair",
        "completion",
        "a comment in a list is written as in JavaScript",
        "Comments in lists begin with `#`, as in Python. `//` before a number is a division, and never a comment.",
        _FINE.replace("[0, 1]", "[0, // the planner\n 1]"),
        _FINE.replace("[0, 1]", "[0, # the planner\n 1]"),
    ),
    Code(
        "curly-quote",
        "repair",
        "completion",
        "typographic quotation marks delimit a string",
        "Strings are written between straight quotes, \" or '.",
        _plan(subtasks='[“Plan it.”, "Do it."]'),
        _FINE,
    ),
    Code(
        "line-break-in-string",
        "repair",
        "completion",
        "a string that is not triple-quoted runs over a line break",
        r"A line break inside such a string is written as `\n`; text of several lines may be triple-quoted.",
        _plan(subtasks='["Plan\nit.", "Do it."]'),
        _plan(subtasks='["Plan\\nit.", "Do it."]'),
    ),
    Code(
        "no-break-space",
        "repair",
        "completion",
        "there is a no-break space or an invisible character",
        "Between items and around `=` and `:` only plain white space is allowed.",
        _plan(model_id="[0,\u00a01]"),
        _FINE,
    ),
    Code(
        "full-width",
        "repair",
        "completion",
        "a full-width character is written instead of one in ASCII",
        "Brackets, commas, digits and the `=` of a label are written in ASCII. In strings, every character is itself.",
        _plan(model_id="［0，1］"),
        _FINE,
    ),
    Code(
        "quoted-block",
        "repair",
        "completion",
        "a list is written as a quotation",
        "The lines of a list do not begin with `>`.",
        _plan(model_id="[\n> 0, 1]"),
        _FINE,
    ),
    Code(
        "worker-name",
        "repair",
        "completion",
        "a worker is written with its name",
        "A worker is written as its index in the pool. Where the pool has names, they are understood in the lenient "
        "profile.",
        _plan(model_id='["planner", 1]'),
        _FINE,
    ),
    Code(
        "number-as-string",
        "repair",
        "completion",
        "a number is written as a string",
        "Workers and steps are integers, without quotes.",
        _plan(model_id='["0", 1]'),
        _FINE,
    ),
    Code(
        "number-as-float",
        "repair",
        "completion",
        "an integer is written with a decimal point",
        "Workers and steps are integers.",
        _plan(model_id="[0.0, 1]"),
        _FINE,
    ),
    Code(
        "access-bare-index",
        "repair",
        "completion",
        "an access entry is a bare index",
        "A single step is written as a list, too.",
        _plan(access="[[], 0]"),
        _FINE,
    ),
    Code(
        "access-none",
        "repair",
        "completion",
        "an access entry is None",
        "A step that sees nothing has an empty list.",
        _plan(access="[None, [0]]"),
        _FINE,
    ),
    Code(
        "access-all-and-more",
        "repair",
        "completion",
        'an access entry names steps beside "all"',
        '"all" already includes every earlier step.',
        _plan(access='[[], ["all", 0]]'),
        _plan(access='[[], "all"]'),
    ),
    Code(
        "tuple-for-list",
        "repair",
        "completion",
        "a tuple is written instead of a list",
        "Lists are written with square brackets.",
        _plan(access="[(), (0,)]"),
        _FINE,
    ),
    Code(
        "lone-surrogate",
        "repair",
        "completion",
        "a string contains half of a surrogate pair",
        "It is not a character and cannot be sent anywhere; the lenient profile replaces it with U+FFFD.",
        _plan(subtasks=r'["Plan \ud83d it.", "Do it."]'),
        _plan(subtasks=r'["Plan \ud83d\ude00 it.", "Do it."]'),
    ),
)

CODES: dict[str, Code] = {code.name: code for code in (*_COMPLETION, *_MEANING, *_REPAIRS, *FILE_CODES)}
"""Every code by its name, in the order of the reference page."""
