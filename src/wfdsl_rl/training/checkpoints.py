"""Which checkpoint a training can go on from: the newest one that is whole.

transformers loads a checkpoint without optimizer or random states silently, and dies on a truncated file. Both would
make a resumed training another one than the interrupted. So each file is looked at before, and whoever asks is told
what was skipped and why.
"""

from __future__ import annotations

import json
import re
import zipfile
from typing import TYPE_CHECKING, NamedTuple

from safetensors import SafetensorError, safe_open

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"checkpoint-(\d+)")
_ARCHIVES = ("optimizer.pt", "scheduler.pt")


class Found(NamedTuple):
    """The checkpoint to go on from."""

    path: Path | None
    """None: there is no whole one, so that the stage starts anew."""
    skipped: tuple[str, ...]
    """What is damaged, newest first, a line each."""


def newest_whole(folder: Path) -> Found:
    """The newest checkpoint of a stage's folder that has everything."""
    skipped: list[str] = []
    for path in sorted(folder.glob("checkpoint-*"), key=_step, reverse=True):
        problem = damage(path)
        if problem is None:
            return Found(path, tuple(skipped))
        skipped.append(f"{path}: {problem}")
    return Found(None, tuple(skipped))


def damage(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint; None if it is whole."""
    return _bad_state(checkpoint) or _bad_weights(checkpoint) or _bad_archives(checkpoint)


def _step(path: Path) -> int:
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else -1


def _bad_state(checkpoint: Path) -> str | None:
    path = checkpoint / "trainer_state.json"
    try:
        step = json.loads(path.read_text(encoding="utf-8"))["global_step"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"trainer_state.json cannot be read ({error!r})"
    return None if step == _step(checkpoint) else f"trainer_state.json is that of step {step}"


def _bad_weights(checkpoint: Path) -> str | None:
    weights = sorted(checkpoint.glob("*.safetensors"))
    if not weights:
        return "there are no weights (*.safetensors)"
    for path in weights:
        try:
            with safe_open(path, framework="pt") as opened:
                opened.keys()
        except (SafetensorError, OSError) as error:
            return f"{path.name} is damaged ({error})"
    return None


def _bad_archives(checkpoint: Path) -> str | None:
    states = sorted(path.name for path in checkpoint.glob("rng_state*.pth"))
    if not states:
        return "the random states (rng_state.pth) are missing"
    for name in (*_ARCHIVES, *states):
        try:
            with zipfile.ZipFile(checkpoint / name) as archive:
                broken = archive.testzip()
        except FileNotFoundError:
            return f"{name} is missing"
        except (zipfile.BadZipFile, OSError) as error:
            return f"{name} is damaged ({error})"
        if broken is not None:
            return f"{name} is damaged (in {broken})"
    return None
