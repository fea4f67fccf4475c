"""The example notebook: run it, write what its cells show (`python -m tests.docs.notebook`), or make a page of it."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from typing import Any

from .pages import ROOT
from .python_examples import PythonSession, parsed

NOTEBOOK = ROOT / "docs/examples/notebook.ipynb"


def executed() -> dict[str, Any]:
    """The notebook with what its cells print and show when they are run in an empty folder."""
    notebook: dict[str, Any] = json.loads(NOTEBOOK.read_text("utf-8"))
    session = PythonSession()
    with contextlib.closing(session), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = _outputs(cell["source"], session)
    return notebook


def _outputs(source: str, session: PythonSession) -> list[dict[str, Any]]:
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        for statement in parsed(source, "notebook").body:
            value = session.value(statement, "notebook")
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue()})
    if value is not None:
        drawn = value._repr_svg_() if hasattr(value, "_repr_svg_") else None
        data = {"text/plain": repr(value)} | ({"image/svg+xml": drawn} if drawn else {})
        found.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return found


def as_page() -> str:
    """The notebook as Markdown, without its title."""
    parts = []
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        parts.append(f"```python\n{cell['source']}\n```" if cell["cell_type"] == "code" else cell["source"])
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text")})
            parts.append(
                f"<div>{data['image/svg+xml']}</div>"
                if "image/svg+xml" in data
                else f"```text\n{data['text/plain'].rstrip()}\n```"
            )
    return "\n\n".join(parts[1:])


if __name__ == "__main__":
    NOTEBOOK.write_text(json.dumps(executed(), indent=1, ensure_ascii=False) + "\n", "utf-8")
