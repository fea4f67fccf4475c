"""What the programs of this folder share: each tries one client, in the environment of that client.

A program is started with the server's address. It reads the name of a cell of the table from each line of its input,
tries it, and writes what the client got as a line of JSON. It uses the client as the client's own documentation does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

URL: Final = sys.argv[1] if len(sys.argv) > 1 else ""
QUESTION: Final = "Why?"
ADD: Final = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
"""The parameters of the tool `add`, which every client offers."""
Cell = Callable[[], dict[str, Any]]


def add(arguments: str | Mapping[str, Any]) -> str:
    """What the tool `add` gives."""
    values = json.loads(arguments) if isinstance(arguments, str) else arguments
    return str(values["a"] + values["b"])


def message_of(work: Callable[[], Any]) -> str:
    """What a client says of an error, and of what has caused it; empty if there was none."""
    said = []
    try:
        work()
    except Exception as caught:  # noqa: BLE001  (each client has its own classes; the test looks at what they say)
        error: BaseException | None = caught
        while error is not None:
            said.append(f"{type(error).__name__}: {error}")
            error = error.__cause__
    return " ".join(said)


def errors_told(ask: Callable[[str], Any], stream: Callable[[str], Any]) -> dict[str, Any]:
    """What a client says of a model that is not there, and of a step that fails, also in a stream."""
    return {
        "unknown": message_of(lambda: ask("missing")),
        "failed": message_of(lambda: ask("broken")),
        "streamed": message_of(lambda: stream("broken")),
    }


def try_cells(*cells: Cell) -> None:
    """Answer the lines of the input, which name cells, until its end."""
    known = {cell.__name__: cell for cell in cells}
    results = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the clients print is no result
    for line in sys.stdin:
        try:
            found = known[line.strip()]()
        except Exception as error:  # noqa: BLE001  (the test says which cell has failed, and why)
            found = {"failure": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), file=results, flush=True)
