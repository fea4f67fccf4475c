"""`wfdsl mcp` as an agent meets it: the SDK's own client, over standard input and output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from wfdsl import Pool, load_tasks
from wfdsl.api import analyze
from wfdsl.workers.pool import pool_names

mcp = pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
from wfdsl.mcp.server import language  # noqa: E402  (needs the extra)

GYM = next(name for name in pool_names() if name.endswith("/seven"))
WF = 'wfdsl 1\nstep view by 0: "Solve the problem."\nstep check by 5 sees view: "Verify the answer."\n'
QUESTION = load_tasks(GYM, limit=1)[0].question


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with workflow files, and things beside it that must stay out of reach."""
    here = tmp_path / "project"
    (here / "deep").mkdir(parents=True)
    (here / "two.wf").write_text(WF)
    (here / "deep" / "one.wf").write_text('wfdsl 1\nstep a by 0: "Solve it."\n')
    (tmp_path / "secret.wf").write_text('wfdsl 1\nstep a by 0: "SECRET"\n')
    (tmp_path / "secret.toml").write_text('[pool]\nname = "SECRET"\n[[pool.workers]]\nname = "w"\nprovider = "local"\n')
    (here / "link.wf").symlink_to(tmp_path / "secret.wf")
    (here / "loop.wf").symlink_to(here / "loop.wf")
    os.mkfifo(here / "pipe.wf")
    (here / "bytes.wf").write_bytes(b"\xff\xfe\x00")
    (here / "unpriced.toml").write_text(
        '[pool]\nname = "unpriced"\n[[pool.workers]]\nname = "w"\nprovider = "openai"\nmodel = "no-such-model"\n'
        'base_url = "http://127.0.0.1:9/v1"\n'
    )
    return here


def test_the_example_of_the_skill_is_valid() -> None:
    page = language()
    assert page.count("\n") <= 120
    checked = analyze(page.split("```wf")[1].split("```")[0].strip(), pool=Pool.load(GYM), form="wf")
    assert [found.code for found in checked.diagnostics] == []


@asynccontextmanager
async def client_in(folder: Path) -> AsyncIterator[Any]:
    command = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "wfdsl", "mcp"],
        cwd=folder,
        env={"WFDSL_HOME": str(folder.parent / "home"), "PATH": os.environ["PATH"]},
    )
    async with mcp.Client(mcp.stdio_client(command)) as client:
        yield client


async def called(client: Any, tool: str, **arguments: Any) -> Any:
    """What a tool gives; it must not be an error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def test_an_agent_lists_checks_draws_prices_runs_and_redoes(folder: Path) -> None:
    async with client_in(folder) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"list", "check", "explain", "draw", "price", "run", "status", "redo"}
        assert all("cap_usd" in tools[name].input_schema["required"] for name in ("run", "redo"))
        assert all(tools[name].description for name in tools)

        listed = await called(client, "list")
        assert {"two.wf", "deep/one.wf"} <= set(listed["workflows"])
        assert GYM in listed["pools"]

        good = await called(client, "check", file="two.wf", pool=GYM)
        assert (good["ok"], good["diagnostics"], good["text"]) == (True, [], WF)
        bad = await called(client, "check", text='wfdsl 1\nstep a by 0 sees b: "x"\n')
        found = bad["diagnostics"][0]
        assert (bad["ok"], found["line"]) == (False, 2)
        assert (await called(client, "explain", code=found["code"]))["summary"]

        assert (await called(client, "draw", file="two.wf"))["result"].startswith("flowchart")
        assert "<svg" in (await called(client, "draw", text=WF, format="svg"))["result"]

        price = await called(client, "price", file="two.wf", question=QUESTION, pool=GYM)
        assert price["calls"] == 2
        assert price["without_a_price"] or price["usd_at_most"] > 0

        heard: list[tuple[float, float | None, str | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, total, message))

        arguments = {"file": "two.wf", "question": QUESTION, "pool": GYM, "cap_usd": 1}
        done = (await client.call_tool("run", arguments, progress_callback=hear)).structured_content
        assert done["status"] == "done"
        assert done["answer"]
        assert 0 < done["usd"] <= 1
        assert [each[:2] for each in heard][-1] == (2, 2)
        assert sum(each["share"] for each in done["workers"]) == pytest.approx(1)
        assert sum(each["usd"] for each in done["workers"]) == pytest.approx(done["usd"])

        state = await called(client, "status", run_id=done["run_id"])
        assert [step["status"] for step in state["steps"]] == ["done", "done"]
        assert "svg" in (await called(client, "draw", run_id=done["run_id"], format="svg"))["result"]

        again = await called(client, "redo", run_id=done["run_id"], step="check", cap_usd=1)
        assert again["run_id"] != done["run_id"]
        assert again["status"] == "done"
        first = {each["worker"]: each["usd"] for each in done["workers"]}
        assert again["usd"] < done["usd"], "the kept reply costs nothing"
        assert set(first) == {each["worker"] for each in again["workers"]}

        page = (await client.read_resource("wfdsl://language")).contents[0].text
        assert page.startswith("---\nname: wfdsl")
        pools = json.loads((await client.read_resource("wfdsl://pools")).contents[0].text)
        assert len(pools[GYM]) == 7


async def test_nothing_runs_without_a_cap(folder: Path) -> None:
    async with client_in(folder) as client:
        for cap in (None, 0, -1, 0.0, "1", True, "Infinity", 1e999, [1], "all", "nan"):
            for tool in ("run", "redo"):
                arguments = {"file": "two.wf", "question": QUESTION, "pool": GYM, "run_id": "x", "step": "view"}
                result = await client.call_tool(tool, arguments if cap is None else {**arguments, "cap_usd": cap})
                assert result.is_error, cap
                assert "cap_usd" in result.content[0].text


async def test_a_cap_stops_a_run_and_what_was_paid_is_said(folder: Path) -> None:
    async with client_in(folder) as client:
        arguments = {"file": "two.wf", "question": QUESTION, "pool": GYM, "cap_usd": 1e-9}
        done = (await client.call_tool("run", arguments)).structured_content
        assert done["status"] == "budget"
        assert done["usd"] <= 1e-9
        assert done["error"]


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("check", {"file": "../secret.wf"}),
    ("check", {"file": "{outside}/secret.wf"}),
    ("check", {"file": "link.wf"}),
    ("check", {"file": "loop.wf"}),
    ("check", {"file": "pipe.wf"}),
    ("check", {"file": "bytes.wf"}),
    ("check", {"file": ""}),
    ("check", {"file": "two.wf\0.wf"}),
    ("check", {"file": "x" * 5000 + ".wf"}),
    ("check", {"file": "/etc/passwd"}),
    ("check", {"file": "file:///etc/passwd"}),
    ("check", {"file": "two.wf", "text": WF}),
    ("check", {}),
    ("check", {"text": WF, "pool": "../secret.toml"}),
    ("check", {"text": WF, "pool": "{outside}/secret.toml"}),
    ("check", {"text": WF, "pool": "x" * 5000}),
    ("check", {"text": WF, "pool": "\0"}),
    ("check", {"text": WF, "pool": "nobody:model"}),
    ("check", {"text": WF, "pool": "openai:../../secret"}),
    ("check", {"text": WF, "params": {"nothing": "1"}}),
    ("check", {"text": 7}),
    ("draw", {"text": "(" * 100_000}),
    ("draw", {"text": WF, "format": "../../x"}),
    ("draw", {"run_id": "last"}),
    ("explain", {"code": "__class__"}),
    ("status", {"run_id": "' OR 1=1 --"}),
    ("price", {"text": WF, "question": "", "pool": GYM}),
    ("price", {"text": 'wfdsl 1\nstep a by 99: "x"\n', "question": "q", "pool": GYM}),
    ("run", {"text": WF, "question": "\0", "pool": GYM, "cap_usd": 1}),
    ("run", {"text": "wfdsl 1\n" * 9, "question": "q", "pool": GYM, "cap_usd": 1}),
    ("run", {"file": "deep/one.wf", "question": "q", "pool": "unpriced.toml", "cap_usd": 1}),
    ("redo", {"run_id": "nothing", "step": "0", "cap_usd": 1}),
    ("delete", {"file": "two.wf"}),
]
"""Calls that must be refused, each with a reason, without a word of what lies outside the folder."""
UNREADABLE = ["\0" * 9, "\ufeffwfdsl 1", "=== workflow ===", "model_id = [0]\n" * 3000, "\u202ewfdsl 1", "step " * 5000]


async def test_hostile_texts_and_paths_are_refused_and_the_server_answers_on(folder: Path) -> None:
    outside = str(folder.parent)
    async with client_in(folder) as client:
        for tool, arguments in HOSTILE:
            plain = {
                name: value.replace("{outside}", outside) if isinstance(value, str) else value
                for name, value in arguments.items()
            }
            try:
                result = await client.call_tool(tool, plain)
            except mcp.MCPError as error:
                said = str(error)
            else:
                said = result.content[0].text
                outcome = result.structured_content or {}
                assert result.is_error or outcome.get("status") == "failed", (tool, arguments, said)
            assert "SECRET" not in said, (tool, arguments)
            assert "Traceback" not in said, (tool, arguments)
            assert said != f"Error executing tool {tool}", ("a crash", tool, arguments)
        for text in UNREADABLE:
            assert not (await called(client, "check", text=text))["ok"]
        assert (await called(client, "check", file="two.wf"))["ok"]
        assert (await called(client, "check", text='param n = 2\nstep a by 0 copies {n}: "x"', params={"n": 3}))["ok"]


async def test_runs_of_other_folders_are_out_of_reach(folder: Path) -> None:
    async with client_in(folder) as client:
        arguments = {"file": "deep/one.wf", "question": QUESTION, "pool": GYM, "cap_usd": 1}
        done = (await client.call_tool("run", arguments)).structured_content
    async with client_in(folder / "deep") as client:
        arguments = {"run_id": done["run_id"], "step": "0", "cap_usd": 1}
        for tool in ("status", "redo", "draw"):
            assert (await client.call_tool(tool, arguments)).is_error
