"""The prompt that a checkpoint was trained with, in the checkpoint's folder: texts, examples, hash and limits.

A model that was trained with one prompt and asked with another is not the model that was trained. So a checkpoint is
prompted with what is in its folder (`settings.resolve`), and a file that was changed is refused.
"""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from wfdsl.conductor.examples import ExampleSet, example_of, row_of
from wfdsl.conductor.prompt import Prompt, check_texts
from wfdsl.errors import UsageError

FILE: Final = "wfdsl-prompt.json"
FORMAT: Final = "wfdsl-prompt"
VERSION: Final = 1


class TrainedPrompt(NamedTuple):
    """How a model was prompted in training."""

    prompt: Prompt
    max_steps: int
    max_rounds: int | None = None
    """The most rounds after round 0; None: not known."""


def save_prompt(folder: str | PathLike[str], prompt: Prompt, *, max_steps: int, max_rounds: int | None = None) -> Path:
    """Put a prompt into a checkpoint's folder; the file. `max_rounds`: the most rounds after round 0 in training."""
    path = Path(folder) / FILE
    plain: dict[str, Any] = {
        "format": FORMAT,
        "format_version": VERSION,
        **prompt.fingerprint,
        "texts": prompt.texts,
        "shown_examples": [row_of(each) for each in prompt.examples.examples],
        "max_steps": max_steps,
        **({} if max_rounds is None else {"rounds": max_rounds}),
    }
    plain["seal"] = _checksum(plain)
    path.write_text(json.dumps(plain, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return path


def load_prompt(folder: str | PathLike[str]) -> TrainedPrompt | None:
    """The prompt in a checkpoint's folder; None if there is none, or the folder has no name.

    Raises:
        UsageError: the file cannot be read, is of a later version, or does not have the hash that it says.
    """
    path = Path(folder) / FILE
    if not str(folder) or not path.is_file():
        return None
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        if plain["format"] != FORMAT or plain["format_version"] != VERSION:
            raise UsageError(f"{path}: this wfdsl reads {FORMAT} of version {VERSION}; use the one that wrote the file")
        shown = tuple(example_of(path, at, row) for at, row in enumerate(plain["shown_examples"]))
        check_texts(path, {**plain["texts"], **{key: plain[key] for key in ("name", "version", "examples")}})
        prompt = Prompt(plain["name"], plain["version"], plain["texts"], ExampleSet(plain["examples"], shown))
        found = TrainedPrompt(prompt, int(plain["max_steps"]), int(plain["rounds"]) if "rounds" in plain else None)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: this is not the prompt of a checkpoint: {error!r}") from error
    if prompt.hash != plain["hash"] or plain.get("seal") != _checksum(plain):
        raise UsageError(f"{path}: this was changed after training; take the file that the training wrote")
    return found


def _checksum(plain: dict[str, Any]) -> str:
    """SHA-256 of all that the file says."""
    content = {key: value for key, value in plain.items() if key != "seal"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
