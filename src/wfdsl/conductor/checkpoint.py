"""The prompt that a checkpoint was trained with, in the checkpoint's folder: texts, examples, hash and limits.

A model that was trained with one prompt and asked with another is not the model that was trained. So whoever loads a
checkpoint asks it with what lies here, and a file that was changed is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wfdsl.conductor.example_sets import ExampleSet, example_of
from wfdsl.conductor.prompt import Prompt, check_texts
from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from os import PathLike

FILE: Final = "wfdsl-prompt.json"
FORMAT: Final = "wfdsl-prompt"
VERSION: Final = 1


class Trained(NamedTuple):
    """How a checkpoint is asked."""

    prompt: Prompt
    max_steps: int


def save_prompt(folder: str | PathLike[str], prompt: Prompt, *, max_steps: int) -> Path:
    """Put a prompt into a checkpoint's folder; the file."""
    path = Path(folder) / FILE
    examples = [{"question": each.question, "completion": each.completion} for each in prompt.examples.examples]
    plain = {
        "format": FORMAT,
        "format_version": VERSION,
        **prompt.stamp,
        "texts": prompt.texts,
        "shown_examples": examples,
        "max_steps": max_steps,
    }
    path.write_text(json.dumps(plain, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return path


def load_prompt(folder: str | PathLike[str]) -> Trained | None:
    """The prompt in a checkpoint's folder; None if there is none.

    Raises:
        UsageError: the file cannot be read, is of a later version, or does not have the hash that it says.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        return None
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        found = _trained(path, plain)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: this is no prompt of a checkpoint: {error!r}") from error
    if found.prompt.hash != plain["hash"]:
        raise UsageError(f"{path}: the texts were changed after training; take the file that the training wrote")
    return found


def _trained(path: Path, plain: dict[str, Any]) -> Trained:
    if plain["format"] != FORMAT or plain["format_version"] != VERSION:
        raise UsageError(f"{path}: this wfdsl reads {FORMAT} of version {VERSION}; use the one that wrote the file")
    shown = tuple(example_of(path, at, row) for at, row in enumerate(plain["shown_examples"]))
    check_texts(path, {**plain["texts"], **{key: plain[key] for key in ("name", "version", "examples")}})
    prompt = Prompt(plain["name"], plain["version"], plain["texts"], ExampleSet(plain["examples"], shown))
    return Trained(prompt, int(plain["max_steps"]))
