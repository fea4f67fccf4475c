"""`wfdsl view` and `wfdsl serve --view` as processes: the address that they print, and their end."""

from __future__ import annotations

import re
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from tests.running_server import RunningServer
from wfdsl.cli.main import main

from .conftest import Ask

FILE = 'step solve by 0: "Solve it."\n'


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    running: list[RunningServer] = []

    def begin(*command: str) -> RunningServer:
        running.append(RunningServer(tmp_path, "-m", "wfdsl", *command, "--port", "0"))
        return running[-1]

    yield begin
    for each in running:
        each.stop(signal.SIGKILL)


def address_in(server: RunningServer) -> str:
    while not (found := re.search(r"the runs are shown on (\S+)\n", "".join(server.lines))):
        time.sleep(0.01)
    return found[1]


@pytest.mark.slow
def test_the_printed_address_shows_the_runs_and_a_signal_ends_the_command(start: Any, ask: Ask) -> None:
    ask("Is it shown?")
    server = start("view")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    address = address_in(server)
    page = opener.open(address, timeout=30).read().decode()
    assert "Is it shown?" in page
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(address.partition("?")[0], timeout=30)
    foreign = urllib.request.Request(address, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="400"):
        opener.open(foreign, timeout=30)
    stream = opener.open(address.partition("?")[0] + "events?since=none", timeout=30)
    assert stream.readline() == b"retry: 2000\n"

    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 20
    stream.close()


@pytest.mark.slow
def test_the_server_shows_them_beside_its_api(start: Any, ask: Ask, tmp_path: Path) -> None:
    ask("Is it shown?")
    (tmp_path / "one.wf").write_text(FILE)
    (tmp_path / "pool.toml").write_text(
        '[pool]\nname = "one"\n[[pool.workers]]\nname = "a"\nprovider = "scripted"\noptions = { replies = ["4"] }\n'
    )
    server = start("serve", "--view", "--pool", "pool.toml", "--workflow", "one.wf")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    address = address_in(server)

    assert "Is it shown?" in opener.open(address, timeout=30).read().decode()
    models = opener.open(address.partition("/view")[0] + "/v1/models", timeout=30).read().decode()
    assert '"one"' in models


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["none"], "none is not a folder"),
        (["--port", "70000"], "argument --port: must be at most 65535"),
        (["--set", "a=1"], "the runs keep the parameters that they were started with"),
    ],
)
def test_what_cannot_be_used_is_named(options: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        sys.exit(main(["view", *options]))

    assert stop.value.code == 2
    assert problem in capsys.readouterr().err
