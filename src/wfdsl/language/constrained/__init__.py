"""The strict completion language as a grammar for constrained decoders, so that all that they write is valid.

    gbnf(indices, max_steps=5, *, max_prose=200, max_subtask=200, max_reasoning=0, recursion=False,
        access="lists") -> str
    llguidance_lark(...) -> str: the same arguments
    openai_lark(...) -> str: the same arguments, for OpenAI's custom tools
    max_tokens_for(...) -> int: the same arguments

The language is bounded prose, or bounded reasoning of any kind and a marker line, and then the canonical print of a
workflow. It is made once as data, from what the printer prints (`completions.py`), and printed in two dialects, so both
describe the same texts.
A decoder that is given one of them and at least `max_tokens_for(...)` tokens ends by itself, with a
completion that the strict profile accepts.
"""

from __future__ import annotations

from collections.abc import Collection

from wfdsl.language.check import DEFAULT_MAX_STEPS, AccessScheme
from wfdsl.language.constrained.completions import MAX_PROSE, MAX_SUBTASK, Bounds, language
from wfdsl.language.constrained.dialects import print_gbnf, print_lark, print_openai_lark
from wfdsl.language.constrained.rules import most_tokens


def gbnf(
    indices: Collection[int],
    max_steps: int = DEFAULT_MAX_STEPS,
    *,
    max_prose: int = MAX_PROSE,
    max_subtask: int = MAX_SUBTASK,
    max_reasoning: int = 0,
    recursion: bool = False,
    access: AccessScheme = "lists",
) -> str:
    """The grammar in llama.cpp's dialect; its server takes it as `grammar` in the body of a request.

    Args:
        indices: the workers that a workflow may use.
        max_steps: the most steps. Source of the default: arXiv 2512.04388, section 4.
        max_prose: the most characters before the lists; 0 for none.
        max_subtask: the most characters of a subtask.
        max_reasoning: the most characters of free reasoning, which `</think>` ends and a marker line separates from the
            lists; it is written instead of prose. 0 for none.
        recursion: whether three empty lists are valid (rounds after the first).
        access: what an access entry may be: also a list of earlier steps, or only [] and all ("binary").

    Raises:
        UsageError: nothing is within these bounds, or there are too many steps to write them out.
    """
    bounds = Bounds(tuple(indices), max_steps, max_prose, max_subtask, max_reasoning, recursion, access)
    return print_gbnf(language(bounds))


def llguidance_lark(
    indices: Collection[int],
    max_steps: int = DEFAULT_MAX_STEPS,
    *,
    max_prose: int = MAX_PROSE,
    max_subtask: int = MAX_SUBTASK,
    max_reasoning: int = 0,
    recursion: bool = False,
    access: AccessScheme = "lists",
) -> str:
    """The grammar in llguidance's dialect of Lark. Arguments and errors as for `gbnf`."""
    bounds = Bounds(tuple(indices), max_steps, max_prose, max_subtask, max_reasoning, recursion, access)
    return print_lark(language(bounds))


def openai_lark(
    indices: Collection[int],
    max_steps: int = DEFAULT_MAX_STEPS,
    *,
    max_prose: int = MAX_PROSE,
    max_subtask: int = MAX_SUBTASK,
    max_reasoning: int = 0,
    recursion: bool = False,
    access: AccessScheme = "lists",
) -> str:
    """The grammar for a custom tool of OpenAI's: `{"type": "grammar", "syntax": "lark", "definition": ...}`.

    Arguments and errors as for `gbnf`. Source of the syntax: OpenAI's guide to function calling, on custom tools.
    """
    bounds = Bounds(tuple(indices), max_steps, max_prose, max_subtask, max_reasoning, recursion, access)
    return print_openai_lark(language(bounds))


def max_tokens_for(
    indices: Collection[int],
    max_steps: int = DEFAULT_MAX_STEPS,
    *,
    max_prose: int = MAX_PROSE,
    max_subtask: int = MAX_SUBTASK,
    max_reasoning: int = 0,
    recursion: bool = False,
    access: AccessScheme = "lists",
) -> int:
    """The number of tokens with which no completion is cut, whatever the model writes within the grammar.

    It is the bytes of the longest completion in UTF-8, and one token for the end: every token that a constrained
    decoder lets through is at least one byte. It is a limit and not an estimate: plain English takes one token for
    about four characters. Arguments and errors as for `gbnf`.

    Units: tokens.
    """
    bounds = Bounds(tuple(indices), max_steps, max_prose, max_subtask, max_reasoning, recursion, access)
    return most_tokens(language(bounds))
