"""One server for all clients, on workers that are scripted, and the program of each client."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT
from tests.server.conftest import ServerProcess
from tests.server.provider import Provider

from .table import HERE, Client, write_results

ENVIRONMENTS = Path(os.environ.get("WFDSL_CLIENTS", ROOT / ".venv-clients"))
POOL = """
[pool.defaults]
provider = "openai"
base_url = "{url}"
prices = {{ input = 1.0, output = 2.0 }}
retries = 0
images = true
"""
LIMIT_S = 180
"""Seconds that a cell may take; aider asks again for a minute after an error."""
LAST = {"two": "bob", "tools": "tess", "slow": "hal", "broken": "bad", "edit": "ed"}
"""The worker of the last step of each workflow file."""


def program_of(client: Client) -> list[str]:
    """The command that tries a client, without its arguments."""
    node = client.environment == "node"
    program = HERE / "node_modules/.bin/node" if node else ENVIRONMENTS / client.environment / "bin/python"
    return [str(program), str(HERE / "programs" / client.program)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs clients, and skip it where they are not installed."""
    for item in items:
        if HERE in item.path.parents and isinstance(item, pytest.Function) and "tried" in item.fixturenames:
            item.add_marker(pytest.mark.clients)
            client = item.callspec.params.get("client") if hasattr(item, "callspec") else None
            if "WFDSL_CLIENTS" not in os.environ:
                item.add_marker(pytest.mark.skip(reason="needs clients of others: run `make clients`"))
            elif isinstance(client, Client) and not Path(program_of(client)[0]).exists():
                item.add_marker(pytest.mark.skip(reason=f"{client.name} is not installed: run `make clients`"))


class Tried:
    """The server, its provider, and the programs that try clients on it."""

    def __init__(self, folder: Path) -> None:
        self.provider = Provider()
        self.provider.status["bad"] = 400
        self.provider.held = {"hal"}
        self.provider.calls["tess"] = [("add", '{"a": 2, "b": 3}')]
        self.provider.answers["ed"] = "notes.txt\n```\nA note.\n```"
        workers = "".join(f'[[pool.workers]]\nname = "{name}"\nmodel = "{name}"\n' for name in ("ann", *LAST.values()))
        (folder / "pool.toml").write_text(POOL.format(url=self.provider.url) + workers)
        for model, last in LAST.items():
            text = f'step plan by ann: "Plan it."\nstep solve by {last} sees plan: "Solve it."\n'
            (folder / f"{model}.wf").write_text(text)
        files = [option for model in LAST for option in ("--workflow", f"{model}.wf")]
        self.server = ServerProcess(folder, "--pool", "pool.toml", *files)
        self.results: dict[str, dict[str, str]] = {}
        self._programs: dict[str, subprocess.Popen[str]] = {}

    def ask(self, client: Client, cell: str) -> dict[str, Any]:
        """What a client got in a cell."""
        if client.id not in self._programs:
            offline = {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
            self._programs[client.id] = subprocess.Popen(
                [*program_of(client), self.server.url, *client.arguments],
                env={**os.environ, **offline},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        program = self._programs[client.id]
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(f"{cell}\n")
        program.stdin.flush()
        limit = threading.Timer(LIMIT_S, program.kill)
        limit.start()
        line = program.stdout.readline()
        limit.cancel()
        if line:
            return dict(json.loads(line))
        del self._programs[client.id]
        return {"failure": f"no result within {LIMIT_S} s: the program ended with {program.wait(60)}"}

    def close(self) -> None:
        self.provider.released.set()
        for program in self._programs.values():
            program.communicate(timeout=60)
        self.server.stop()
        self.provider.close()


@pytest.fixture(scope="session")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    """The server; what was found is kept at the end."""
    found = Tried(tmp_path_factory.mktemp("clients"))
    yield found
    found.close()
    write_results(found.results)


def version_of(client: Client) -> str:
    """The version of a client that is installed."""
    if client.environment == "node":
        package = HERE / "node_modules" / client.package / "package.json"
        return str(json.loads(package.read_text("utf-8"))["version"])
    python = ENVIRONMENTS / client.environment / "bin/python"
    code = f"from importlib.metadata import version; print(version({client.package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
