"""aider as a program: one message each time, with a file that the reply changes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.clients.programs.cells import QUESTION, URL, try_cells

MODELS = ("two", "edit", "slow", "broken", "missing")
COMMAND = [
    *(sys.executable, "-m", "aider", "--openai-api-base", URL, "--openai-api-key", "none", "--message", QUESTION),
    *("--yes-always", "--no-git", "--no-check-update", "--no-show-model-warnings", "--no-show-release-notes"),
    *("--no-pretty", "--no-fancy-input", "--analytics-disable", "--map-tokens", "0", "--no-detect-urls"),
    *("--model-metadata-file", "models.json"),
]


def begin(model: str, *options: str, folder: str) -> subprocess.Popen[str]:
    command = [*COMMAND, "--model", f"openai/{model}", *options]
    about = {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 100_000}
    Path(folder, "models.json").write_text(json.dumps({f"openai/{each}": about for each in MODELS}), "utf-8")
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def said(model: str, *options: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return begin(model, *options, folder=folder).communicate(timeout=120)[0]


def plain() -> dict[str, Any]:
    """The file that the reply writes."""
    return {"text": written("--no-stream")}


def stream() -> dict[str, Any]:
    return {"text": written("--stream")}


def written(option: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        begin("edit", "--edit-format", "whole", option, folder=folder).communicate(timeout=120)
        return Path(folder, "notes.txt").read_text("utf-8").strip()


def usage() -> dict[str, Any]:
    found = re.search(r"Tokens: (\d+) sent, (\d+) received", said("two", "--no-stream"))
    assert found
    return {"tokens": [[int(found[1]), int(found[2])]], "remark": "in streams it counts by itself"}


def error() -> dict[str, Any]:
    """What it says; it asks again and again for a minute if something has failed."""
    failed = said("broken", "--stream")
    return {"unknown": said("missing", "--no-stream"), "failed": failed, "streamed": failed}


def cancel() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        process = begin("slow", "--stream", folder=folder)
        assert process.stdout is not None
        first = ""
        while "hal" not in first:
            first += process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    return {"first": "hal "}


try_cells(plain, stream, usage, error, cancel)
