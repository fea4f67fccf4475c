"""The launch scripts in docs/examples/gpus start what they say, and it fits by the dry run's estimate.

Programs that the scripts start are replaced by one that writes down its arguments.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.rl.training.qwen import seven
from wfdsl_rl.cli.train import main
from wfdsl_rl.training.plan import Setup, read_plan

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = {path.stem: path for path in sorted((ROOT / "docs/examples/gpus").glob("*.sh"))}
SERVER = "2-gpus-and-vllm-server"
RECORDER = """#!/bin/sh
name=$(basename "$0")
{ printf '%s\\n' "$CUDA_VISIBLE_DEVICES" "$VLLM_SERVER_DEV_MODE" "$$" "$@"; } >"$CALLS/$name.part"
mv "$CALLS/$name.part" "$CALLS/$name"
case "$name$AWAITED" in
vllm*) exec sleep 60 ;;
torchrunvllm) while [ ! -e "$CALLS/vllm" ]; do sleep 0.05; done ;;
torchrunstop) exec sleep 60 ;;
esac
exit "${EXIT_CODE:-0}"
"""


class Call(NamedTuple):
    """A program that a script started."""

    gpus: list[str]
    dev_mode: str
    process: int
    arguments: list[str]


class Launch(NamedTuple):
    """What a script started."""

    exit_code: int
    calls: dict[str, Call]

    @property
    def training(self) -> tuple[Call, list[str]]:
        """The training's first program, and the arguments of wfdsl-train."""
        if "torchrun" not in self.calls:
            return self.calls["wfdsl-train"], self.calls["wfdsl-train"].arguments
        call = self.calls["torchrun"]
        assert call.arguments[:4] == ["--nproc_per_node", str(len(call.gpus)), "-m", "wfdsl_rl.cli.train"]
        return call, call.arguments[4:]

    @property
    def plan(self) -> Setup:
        """The training."""
        experiment, *rest = self.training[1]
        assert rest[::2] == ["--set"] * (len(rest) // 2)
        return read_plan(experiment, rest[1::2])


def launched(name: str, folder: Path, *more: str, exit_code: int = 0) -> Launch:
    """Run a script with stand-ins for all that it starts."""
    environment = {**stand_ins(name, folder), "EXIT_CODE": str(exit_code)}
    done = subprocess.run(["sh", SCRIPTS[name], *more], env=environment, timeout=60, check=False)
    return Launch(done.returncode, calls_in(folder))


def stand_ins(name: str, folder: Path) -> dict[str, str]:
    """The environment in which a script finds stand-ins."""
    programs, calls = folder / "programs", folder / "calls"
    for each in (programs, calls):
        each.mkdir(exist_ok=True)
    for program in ("torchrun", "wfdsl-train", "vllm"):
        (programs / program).write_text(RECORDER)
        (programs / program).chmod(0o755)
    awaited = "vllm" if name == SERVER else ""
    return {"PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(calls), "AWAITED": awaited}


def calls_in(folder: Path) -> dict[str, Call]:
    found = {path.name: path.read_text().splitlines() for path in (folder / "calls").iterdir() if not path.suffix}
    return {name: Call(each[0].split(","), each[1], int(each[2]), each[3:]) for name, each in found.items()}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_starts_one_process_on_each_gpu_that_it_names_and_passes_arguments_on(
    name: str, tmp_path: Path
) -> None:
    plain = launched(name, tmp_path)
    more = launched(name, tmp_path, "--out", "a folder", exit_code=3)
    resumed = launched(name, tmp_path, "--resume", "a folder")

    assert len(plain.training[0].gpus) == int(name.partition("-")[0]) == plain.plan.train.processes
    assert (plain.exit_code, more.exit_code, more.training[1][-2:]) == (0, 3, ["--out", "a folder"])
    assert resumed.training[1] == ["--resume", "a folder"]
    train = plain.plan.train
    assert (train.lora is not None, train.fsdp == "off") == (("lora" in name),) * 2
    assert {stage.learning_rate for stage in train.stages.values()} == {1e-5 if "lora" in name else 1e-6}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_fits_and_says_what_the_dry_run_says_that_it_needs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, words = launched(name, tmp_path, "--dry-run", "--set", f"train.model={seven(tmp_path / 'model')}").training
    monkeypatch.chdir(tmp_path)

    assert main([*words, "--json"]) == 0

    memory = sum(json.loads(capsys.readouterr().out)["memory"].values())
    assert memory < 60  # of 80 GB, activations of 8 completions need about 15
    whose = "the" if name.startswith("1-") else "each"
    assert f" {memory:,.0f} GiB of {whose} GPU" in SCRIPTS[name].read_text()


def test_the_server_has_a_gpu_of_its_own_and_what_the_training_asks_for(tmp_path: Path) -> None:
    launch = launched(SERVER, tmp_path)
    server, train = launch.calls["vllm"], launch.plan.train

    assert server.gpus == ["2"]
    assert "2" not in launch.training[0].gpus
    assert (train.trl["use_vllm"], train.trl["vllm_mode"]) == (True, "server")
    assert server.arguments[:2] == ["serve", train.model]
    options = dict(zip(server.arguments[2::2], server.arguments[3::2], strict=True))
    assert options["--max-model-len"] == str(train.trl["vllm_max_model_length"])
    assert train.trl["vllm_server_base_url"] == f"http://{options['--host']}:{options['--port']}"


def test_the_server_is_started_as_trl_starts_it(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs trl, in the extra rl")
    from trl.scripts.vllm_serve import ScriptArguments, build_command

    server = launched(SERVER, tmp_path).calls["vllm"]
    command = build_command(ScriptArguments(model="Qwen/Qwen2.5-7B"))

    assert server.dev_mode == "1"
    for option in ("--weight-transfer-config", "--logprobs-mode", "--max-logprobs"):
        value = command[command.index(option) + 1]
        assert (option, value) in zip(server.arguments, server.arguments[1:], strict=False)


@pytest.mark.parametrize("exit_code", [0, 1])
def test_the_server_ends_with_the_training(exit_code: int, tmp_path: Path) -> None:
    launch = launched(SERVER, tmp_path, exit_code=exit_code)

    assert launch.exit_code == exit_code
    with pytest.raises(ProcessLookupError):
        os.kill(launch.calls["vllm"].process, 0)


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_server_and_the_training(number: int, exit_code: int, tmp_path: Path) -> None:
    environment = {**stand_ins(SERVER, tmp_path), "AWAITED": "stop"}
    with subprocess.Popen(["sh", SCRIPTS[SERVER]], env=environment) as script:
        while script.poll() is None and {*calls_in(tmp_path)} != {"vllm", "torchrun"}:
            time.sleep(0.05)

        script.send_signal(number)

        assert script.wait(30) == exit_code
    for call in calls_in(tmp_path).values():
        with pytest.raises(ProcessLookupError):
            os.kill(call.process, 0)
