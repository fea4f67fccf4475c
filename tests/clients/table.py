"""The clients of others that are tried on the server, and the table of what works."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results.json"
"""What came out when it was tried last: by client and cell."""
CELLS: Final = ("plain", "stream", "usage", "tools", "error", "cancel")
YES: Final = "yes"
NOT_RUN: Final = "not run"


SUITE: Final = "Open Responses"
_SOCKET, _COMPACT = "only HTTP is served, no WebSocket", "there is no `/v1/responses/compact`"
ABSENT: Final[Mapping[str, str]] = {
    "websocket-response": _SOCKET,
    "websocket-sequential-responses": _SOCKET,
    "websocket-continuation": _SOCKET,
    "websocket-reconnect-store-false-recovery": _SOCKET,
    "websocket-previous-response-not-found": _SOCKET,
    "websocket-failed-continuation-evicts-cache": _SOCKET,
    "websocket-compact-new-chain": f"{_SOCKET}, and {_COMPACT}",
    "compact-response": _COMPACT,
    "compact-missing-model": _COMPACT,
}
"""Tests of the suite that the server does not pass, with the reason."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client, as one row of the table."""

    name: str
    environment: str
    """The environment that it is installed in; `node` is the folder node_modules."""
    package: str
    program: str
    arguments: tuple[str, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Cells that the client itself does not have, with the reason."""
    endpoint: str = "chat"

    @property
    def id(self) -> str:
        """Its name among the results."""
        return f"{self.name}, {self.endpoint}"


CLIENTS: Final = (
    Client("openai-python", "sdks", "openai", "openai_chat.py"),
    Client("openai-node", "node", "openai", "openai_chat.mjs"),
    Client("LiteLLM", "litellm", "litellm", "litellm_chat.py"),
    Client("langchain-openai", "sdks", "langchain-openai", "langchain_chat.py"),
    Client("AI SDK, openai-compatible", "node", "@ai-sdk/openai-compatible", "ai_sdk.mjs", ("openai-compatible",)),
    Client("aider", "aider", "aider-chat", "aider_chat.py", lacks={"tools": "it offers none"}),
    Client("openai-agents", "sdks", "openai-agents", "agents_chat.py"),
    Client("inspect-ai", "sdks", "inspect-ai", "inspect_chat.py"),
    Client("openai-python", "sdks", "openai", "openai_responses.py", endpoint="responses"),
    Client("LiteLLM", "litellm", "litellm", "litellm_responses.py", endpoint="responses"),
    Client("openai-agents", "sdks", "openai-agents", "agents_responses.py", endpoint="responses"),
    Client("AI SDK, openai", "node", "@ai-sdk/openai", "ai_sdk.mjs", ("openai",), endpoint="responses"),
    Client(
        "AI SDK, open-responses",
        "node",
        "@ai-sdk/open-responses",
        "ai_sdk.mjs",
        ("open-responses",),
        endpoint="responses",
    ),
)


def read_results() -> dict[str, dict[str, str]]:
    """The results by client: `version` and each cell that was tried."""
    return dict(json.loads(RESULTS.read_text("utf-8"))) if RESULTS.exists() else {}


def write_results(found: Mapping[str, Mapping[str, str]]) -> None:
    """Add to the results what was found in this run."""
    before = read_results()
    names = [*(client.id for client in CLIENTS), SUITE]
    after = {name: {**before.get(name, {}), **found.get(name, {})} for name in names}
    RESULTS.write_text(json.dumps(after, indent=2, sort_keys=True) + "\n", "utf-8")


def rows() -> Iterator[str]:
    """The table as Markdown. A cell that was not tried says so."""
    yield f"| client | version | endpoint | {' | '.join(CELLS)} |"
    yield "|---" * (3 + len(CELLS)) + "|"
    results = read_results()
    for client in CLIENTS:
        tried = results.get(client.id, {})
        cells = [f"none: {client.lacks[cell]}" if cell in client.lacks else tried.get(cell, NOT_RUN) for cell in CELLS]
        yield f"| {client.name} | {tried.get('version', NOT_RUN)} | {client.endpoint} | {' | '.join(cells)} |"


def suite_rows() -> Iterator[str]:
    """The tests of the compliance suite as Markdown."""
    found = read_results().get(SUITE, {})
    yield f"| test (version {found.get('version', NOT_RUN)}) | passed |"
    yield "|---|---|"
    for name, what in sorted(found.items()):
        if name != "version":
            yield f"| `{name}` | {f'no: {ABSENT[name]}' if what != YES and name in ABSENT else what} |"


def problem(cell: str, facts: Mapping[str, Any], asked: list[str], *, hung_up: bool) -> str:
    """What is wrong with what a client got in a cell, in one line; empty: nothing.

    `asked` are the workers in the order of their calls; `hung_up`: the provider has seen the call in flight end.
    """
    if "failure" in facts:
        return one_line(facts["failure"])
    right: Callable[[], bool] = {
        "plain": lambda: facts["text"] in ANSWERS,
        "stream": lambda: facts["text"] in ANSWERS and facts.get("pieces", 2) > 1,
        "usage": lambda: facts["tokens"] in ([USED, USED], [USED]),
        "tools": lambda: facts["text"] == "tess did: 5" and asked == ["ann", "tess", "tess"],
        "error": lambda: _errors_told(facts),
        "cancel": lambda: bool(facts["first"]) and hung_up,
    }[cell]
    return "" if right() else one_line(f"got {json.dumps(facts)}; workers asked: {', '.join(asked) or 'none'}")


ANSWERS: Final = ("bob did: Solve it.", "A note.")
"""What the workflow answers; and the file that aider writes from its answer."""
USED: Final = [20, 8]
"""The tokens of both steps, in and out."""


def _errors_told(facts: Mapping[str, Any]) -> bool:
    unknown, *failed = (re.sub(r"\s+", " ", facts[name]) for name in ("unknown", "failed", "streamed"))
    return "there is no model" in unknown and all("step 1 (solve) failed" in text for text in failed)


def one_line(text: str) -> str:
    """A text as a cell of a table can hold it."""
    found = re.sub(r"\s+", " ", text).replace("|", "/")
    return found if len(found) <= 200 else f"{found[:197]}..."
