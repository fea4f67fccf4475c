"""The files for Docker and systemd start the server with options that there are."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from wfdsl.cli import serve

DEPLOY = Path(__file__).parents[2] / "deploy"


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    serve.configure(parser)
    assert arguments[0] == "serve"
    return parser.parse_args(arguments[1:])


def test_the_image_starts_with_options_that_there_are() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    command = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)[-1]

    kept = parsed(json.loads(command)).kept
    assert (kept["serve.host"][0], kept["serve.keys"][0]) == ("0.0.0.0", "keys.toml")
    assert re.search(r"^USER \d+$", text, re.MULTILINE), "a user without rights, by number"


def test_the_unit_starts_with_options_that_there_are(tmp_path: Path) -> None:
    text = (DEPLOY / "wfdsl.service").read_text()
    command = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)

    assert parsed(command[0].split()[1:]).set == ["serve.log=json"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "wfdsl.service"
    text = (DEPLOY / "wfdsl.service").read_text()
    unit.write_text(text.replace("/opt/wfdsl/bin/wfdsl", "/bin/true").replace("User=wfdsl", "User=root"))

    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0
    assert str(unit) not in done.stderr  # what is wrong has a place in the file
