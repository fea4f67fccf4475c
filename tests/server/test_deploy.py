"""The files for Docker and systemd start the server with options that there are."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from wfdsl.cli import serve
from wfdsl.cli.options import values_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
IMAGE = (DEPLOY / "Dockerfile").read_text()


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    serve.configure(parser)
    assert arguments[0] == "serve"
    return parser.parse_args(arguments[1:])


def test_the_image_starts_with_options_that_there_are() -> None:
    command = re.findall(r"^CMD (\[.*\])$", IMAGE, re.MULTILINE)[-1]

    given = values_of(parsed(json.loads(command)), "serve")
    assert (given["host"], given["keys"]) == ("0.0.0.0", "keys.toml")
    assert re.search(r"^USER \d+$", IMAGE, re.MULTILINE), "a user without rights, by number"


def test_the_image_installs_pinned_packages_from_all_files_that_the_build_includes() -> None:
    copied = {path for line in re.findall(r"^COPY (?!--)(.*) \S+$", IMAGE, re.MULTILINE) for path in line.split()}
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    allowed = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().split() if line[0] == "!"}

    assert "--constraint constraints.txt" in IMAGE
    assert copied == allowed >= {"constraints.txt", "src"}
    for path in [*wheel["packages"], *wheel["force-include"]]:
        assert any(Path(path).is_relative_to(one) for one in copied), path


def test_the_unit_starts_with_options_that_there_are() -> None:
    text = (DEPLOY / "wfdsl.service").read_text()
    command = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)

    assert parsed(command[0].split()[1:]).config == "wfdsl.toml"


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
