"""Commands whose limit server is not there, or dies: they say so, and a signal ends them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import FLOW, Provider, Serve, eventually

pytestmark = pytest.mark.slow
SOON_S = 20.0
"""More than a stop takes on a busy machine, and less than a thirtieth of the patience with a server."""


class Drawing:
    """A running `wfdsl run` that draws its calls from a server."""

    def __init__(self, folder: Path, url: str) -> None:
        (folder / "flow.wf").write_text(FLOW)
        options = ["--pool", "pool.toml", "--quiet", "--limit-server", url]
        env = {**os.environ, "WFDSL_HOME": str(folder / "node"), "OPENAI_API_KEY": "none"}
        self._said = folder / "said.txt"
        with self._said.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "wfdsl", "run", "flow.wf", "Why?", *options],
                cwd=folder,
                env=env,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )

    @property
    def said(self) -> str:
        return self._said.read_text()

    def stop(self, how: int) -> int:
        self.process.send_signal(how)
        try:
            return self.process.wait(SOON_S)
        finally:
            self.process.kill()


@pytest.mark.usefixtures("serve")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_not_there_is_said_and_a_signal_ends_the_run(tmp_path: Path, how: int) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        run = Drawing(tmp_path, url)
        eventually(lambda: f"the server at {url} does not answer" in run.said, SOON_S)

        code = run.stop(how)

    assert code == 130
    assert run.said.count("does not answer") == 1
    assert "start it, or stop this and correct the address" in run.said


def test_a_server_that_is_killed_in_mid_run_is_said_and_a_signal_ends_the_run(
    serve: Serve, provider: Provider, tmp_path: Path
) -> None:
    server = serve()
    provider.going.clear()
    run = Drawing(tmp_path, server.url)
    provider.wait_for(1)
    server.stop(signal.SIGKILL)
    provider.going.set()
    eventually(lambda: f"the server at {server.url} does not answer" in run.said, SOON_S)

    assert run.stop(signal.SIGTERM) == 130
    assert run.said.count("does not answer") == 1
