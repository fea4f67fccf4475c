"""The task set for verifiers, through its own command and a model server that writes one workflow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.engines.conftest import GOOD, POOL, run_in, write_tasks
from tests.interpreter.chat_server import ChatServer

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
from wfdsl_rl.engines.verifiers import WorkflowTaskset

__all__ = ["WorkflowTaskset"]
"""


def test_the_command_of_verifiers_scores_the_workflows_that_a_model_writes(tmp_path: Path) -> None:
    write_tasks(tmp_path, "verl", "rows.jsonl")
    (tmp_path / "wfdsl_taskset.py").write_text(MODULE)
    model = ChatServer(text=GOOD)
    options = {
        "--client.base-url": model.url,
        "--env.agent.harness.id": "null",
        "--env.agent.runtime.type": "subprocess",
        "--env.taskset.task.pool": POOL,
        "--env.taskset.task.tasks": "tasks.jsonl",
    }
    flags = [part for option in options.items() for part in option]
    try:
        run_in(
            "verifiers",
            tmp_path,
            "vf-eval",
            *["wfdsl_taskset", "-n", "3", "-r", "1", "-m", "conductor", "--no-push", *flags],
            PRIME_API_KEY="none",
            OPENAI_API_KEY="none",
        )
    finally:
        model.close()

    traces = [
        json.loads(line)["traces"][0]
        for path in tmp_path.glob("outputs/*/traces.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert [trace["errors"] for trace in traces] == [[]] * 3
    for trace in traces:
        assert trace["metrics"]["steps"] == 3
        assert trace["rewards"]["workflow"]["score"] == 0.5 + 0.5 * trace["metrics"]["right"]
