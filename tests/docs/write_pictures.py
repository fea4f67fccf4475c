"""The pictures of the documentation: workflow files that stand on its pages, drawn by `wfdsl show`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from wfdsl.cli.main import main

from .pages import examples_of

PICTURES = {
    "docs/pictures/three-attempts.svg": ("README.md", "attempts.wf"),
}
"""The page, and the file on it, that each picture shows."""


def picture(path: str) -> str:
    """The picture, as `wfdsl show` draws it now."""
    page, name = PICTURES[path]
    text = next(example.text for example in examples_of(page) if example.marks.get("file") == name)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / name, Path(folder) / Path(path).name
        source.write_text(text, "utf-8")
        assert main(["show", str(source), "--pool", "local", "-o", str(out)]) == 0, f"{path} cannot be drawn"
        return out.read_text("utf-8")
