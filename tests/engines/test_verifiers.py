"""The task set for verifiers, through its own command and a model server that writes one workflow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.engines.conftest import GOOD, POOL, run_in, write_tasks
from tests.interpreter.chat_server import ChatServer
from tests.rl.engines.conftest import RewardProcess

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
from wfdsl_rl.engines.verifiers import WorkflowTaskset

__all__ = ["WorkflowTaskset"]
"""


def test_the_command_of_verifiers_scores_the_workflows_that_a_model_writes(tmp_path: Path) -> None:
    require_rewards(traces(tmp_path))


def test_a_reward_server_scores_them_too(tmp_path: Path) -> None:
    write_tasks(tmp_path)
    server = RewardProcess(tmp_path, "--port", "0", "--pool", POOL)
    try:
        require_rewards(traces(tmp_path, url=server.url))
    finally:
        server.stop()

    assert any("POST /v1/score" in line for line in server.lines)


def traces(folder: Path, **options: str) -> list[dict[str, Any]]:
    """What `vf-eval` writes about three tasks, whose workflows all are `GOOD`; `options` are the task set's."""
    write_tasks(folder)
    (folder / "wfdsl_taskset.py").write_text(MODULE)
    model = ChatServer(text=GOOD)
    flags = ["--client.base-url", model.url, "--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess"]
    for name, value in {"pool": POOL, "tasks": "tasks.jsonl", **options}.items():
        flags += [f"--env.taskset.task.{name}", value]
    command = ["vf-eval", "wfdsl_taskset", "-n", "3", "-r", "1", "-m", "conductor", "--no-push", *flags]
    try:
        run_in("verifiers", folder, *command, PRIME_API_KEY="none", OPENAI_API_KEY="none")
    finally:
        model.close()
    return [
        json.loads(line)["traces"][0]
        for path in folder.glob("outputs/*/traces.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def require_rewards(found: list[dict[str, Any]]) -> None:
    assert [trace["errors"] for trace in found] == [[]] * 3
    for trace in found:
        assert trace["metrics"]["steps"] == 3
        assert trace["rewards"]["workflow"]["score"] == 0.5 + 0.5 * trace["metrics"]["right"]
