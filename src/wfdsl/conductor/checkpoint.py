"""The prompt that a checkpoint was trained with, in the checkpoint's folder: texts, examples, hash and limits.

A model that was trained with one prompt and asked with another is not the model that was trained. So a checkpoint is
prompted with what is in its folder (`prompt_settings`), and a file that was changed is refused.
"""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from wfdsl.conductor.examples import ExampleSet, example_of, row_of
from wfdsl.conductor.prompt import DEFAULT_PROMPT, Prompt, check_texts, shipped_prompts
from wfdsl.errors import UsageError
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.workers.entry import WorkerEntry

FILE: Final = "wfdsl-prompt.json"
FORMAT: Final = "wfdsl-prompt"
VERSION: Final = 1


class PromptSettings(NamedTuple):
    """How a model is prompted: a checkpoint as it was trained, any other model as the caller says."""

    prompt: Prompt
    max_steps: int
    max_rounds: int | None = None
    """The most rounds after round 0 that it was trained for; None: not known."""
    trained: bool = False
    """Whether the model was trained with this prompt and this number of steps."""


def prompt_settings(
    entry: WorkerEntry | None,
    *,
    prompt: str | Prompt | None = None,
    examples: str | None = None,
    max_steps: int | None = None,
) -> PromptSettings:
    """How the model of an entry is prompted: a checkpoint as it was trained, any other model as the caller says.

    Args:
        entry: the model; None: nothing is known of it.
        prompt: a template set; also the folder of a checkpoint, for a model that is served elsewhere.
        examples: the few-shot examples, instead of the template set's.
        max_steps: the most steps; None: 5. Source: arXiv 2512.04388, section 4.

    Raises:
        UsageError: a checkpoint would be prompted in another way than it was trained, or the prompt cannot be used.
    """
    trained = None if entry is None else _beside_model(entry)
    if trained is None and isinstance(prompt, str) and prompt not in shipped_prompts():
        trained = load_prompt(prompt)
        prompt = prompt if trained is None else None
    if trained is not None:
        return _as_trained(trained, prompt, examples, max_steps)
    return PromptSettings(_loaded(prompt, examples), DEFAULT_MAX_STEPS if max_steps is None else max_steps)


def _beside_model(entry: WorkerEntry) -> PromptSettings | None:
    """The prompt in the folder of an entry's model, if it has one; of a GGUF file, the folder that it is in."""
    if entry.provider not in ("local", "transformers") or not entry.model:
        return None
    path = Path(entry.model).expanduser()
    return load_prompt(path.parent if path.is_file() else path)


def _loaded(prompt: str | Prompt | None, examples: str | None) -> Prompt:
    if isinstance(prompt, Prompt):
        return prompt
    return Prompt.load(DEFAULT_PROMPT if prompt is None else prompt, examples=examples)


def _as_trained(
    trained: PromptSettings, prompt: str | Prompt | None, examples: str | None, max_steps: int | None
) -> PromptSettings:
    given = prompt is not None or examples is not None
    if given and _loaded(prompt, examples).hash != trained.prompt.hash:
        raise UsageError(
            "this checkpoint is prompted as it was trained: leave out other prompts and examples, "
            "or name another Conductor"
        )
    if max_steps not in (None, trained.max_steps):
        raise UsageError(
            f"this checkpoint is prompted as it was trained, with max_steps = {trained.max_steps}: leave max_steps out"
        )
    return trained


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


def load_prompt(folder: str | PathLike[str]) -> PromptSettings | None:
    """The prompt in a checkpoint's folder; None if there is none, or the folder has no name.

    Raises:
        UsageError: the file cannot be read, is of a later version, or does not have the hash that it says.
    """
    path = Path(folder) / FILE
    if not str(folder) or not path.is_file():
        return None
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        found = _trained(path, plain)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: this is not the prompt of a checkpoint: {error!r}") from error
    if found.prompt.hash != plain["hash"] or plain.get("seal") != _checksum(plain):
        raise UsageError(f"{path}: this was changed after training; take the file that the training wrote")
    return found


def _checksum(plain: dict[str, Any]) -> str:
    """SHA-256 of all that the file says."""
    content = {key: value for key, value in plain.items() if key != "seal"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _trained(path: Path, plain: dict[str, Any]) -> PromptSettings:
    if plain["format"] != FORMAT or plain["format_version"] != VERSION:
        raise UsageError(f"{path}: this wfdsl reads {FORMAT} of version {VERSION}; use the one that wrote the file")
    shown = tuple(example_of(path, at, row) for at, row in enumerate(plain["shown_examples"]))
    check_texts(path, {**plain["texts"], **{key: plain[key] for key in ("name", "version", "examples")}})
    prompt = Prompt(plain["name"], plain["version"], plain["texts"], ExampleSet(plain["examples"], shown))
    rounds = int(plain["rounds"]) if "rounds" in plain else None
    return PromptSettings(prompt, int(plain["max_steps"]), rounds, trained=True)
