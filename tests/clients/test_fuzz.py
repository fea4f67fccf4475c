"""schemathesis on the server's own OpenAPI document: no request makes a status of 5xx."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.server.conftest import ServerProcess

from .conftest import ENVIRONMENTS
from .table import HERE

PROGRAM = ENVIRONMENTS / "sdks/bin/schemathesis"
INSTALLED = "WFDSL_CLIENTS" in os.environ and PROGRAM.exists()
POOL = """
[pool.defaults]
provider = "scripted"
prices = { input = 1.0, output = 2.0 }
options = { replies = ["A reply."], repeat = true }
[[pool.workers]]
name = "ann"
[[pool.workers]]
name = "bob"
"""


@pytest.mark.clients
@pytest.mark.skipif(not INSTALLED, reason="needs schemathesis: `make clients`")
def test_no_request_makes_the_server_fail(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(POOL)
    (tmp_path / "two.wf").write_text('step plan by ann: "Plan it."\nstep solve by bob sees plan: "Solve it."\n')
    server = ServerProcess(tmp_path, "--pool", "pool.toml", "--workflow", "two.wf")
    url = f"{server.url.removesuffix('/v1')}/openapi.json"
    options = ["--checks", "not_a_server_error", "--max-examples", "60", "--seed", "1", "--no-color"]
    env = {**os.environ, "SCHEMATHESIS_HOOKS": "fuzz_hooks", "PYTHONPATH": str(HERE / "programs")}

    done = subprocess.run(
        [PROGRAM, "run", url, *options], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900, check=False
    )

    assert server.stop() == 0
    seen = [line.split()[:3] for line in server.lines if line.startswith(("GET ", "POST "))]
    assert done.returncode == 0, done.stdout[-5000:]
    assert not [line for line in seen if line[2].startswith("5")]
    for path in ("/v1/chat/completions", "/v1/responses"):
        assert ["POST", path, "200"] in seen
