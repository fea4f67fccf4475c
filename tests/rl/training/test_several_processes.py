"""Trainings of several processes, through the real command: the same rewards and weights as of one.

One of them is started by torchrun, the others by what is behind it, as forks.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from tests.forked import TRAINING, Program, ended  # noqa: E402
from tests.rl.training.toy import PROMPT, same, samples, write_model  # noqa: E402
from wfdsl.interpreter.journal_reading import summaries  # noqa: E402

pytestmark = pytest.mark.slow

EXPERIMENT = f"""
[[pool.workers]]
name = "right"
provider = "fixed"
model = "right"
options = {{ replies = ["The answer is 4."], repeat = true }}

[[pool.workers]]
name = "wrong"
provider = "fixed"
model = "wrong"
options = {{ replies = ["The answer is 5."], repeat = true }}

[conductor]
prompt = "{PROMPT}"

[train]
model = "model"
tasks = "tasks.jsonl"
task_count = 30

[train.stages.base]
max_steps = 6
prompts_per_step = 3
num_generations = 6
learning_rate = 1e-3
max_completion_length = 80
save_steps = 2
"""
PLUGIN = '''
"""The command of a training, with completions that depend on their place only, so that they are the same however they
are split over processes.

Its workers are like scripted ones, but count as real, so that their calls are in the journal. Accelerate divides
weights by FSDP among accelerators only; here it does so among processes on a CPU too.
"""

import hashlib
import os
import sys
import time
from pathlib import Path

from wfdsl.workers.scripted import build


def begin_with_fsdp(self, *arguments, fsdp_plugin=None, **options):
    begin(self, *arguments, fsdp_plugin=fsdp_plugin, **options)
    self.fsdp_plugin = fsdp_plugin or self.__dict__.get("fsdp_plugin")
    if self.fsdp_plugin is not None:
        self.distributed_type = DistributedType.FSDP


def begin_with_completions(self, *arguments, **options):
    made(self, *arguments, rollout_func=generate, **options)


def generate(prompts, trainer):
    rank, tokenizer = trainer.accelerator.process_index, trainer.processing_class
    if not (own := Path(f"rank-{rank}.pid")).exists():
        own.write_text(str(os.getpid()))
    while trainer.state.global_step >= 2 and Path("hold").exists():
        time.sleep(0.05)
    if Path(f"broken-{rank}").exists():
        raise RuntimeError(f"process {rank} is broken")
    while Path("broken-1").exists():  # else its own error, that the other is gone, may come first
        time.sleep(0.05)

    def ids(place):
        key = f"{trainer.state.global_step} {trainer.model.training} {place}"
        worker = hashlib.blake2b(key.encode()).digest()[0] % 3
        text = f'model_id = [{worker}]\\nsubtasks = ["Solve it."]\\naccess_list = [[]]'
        return tokenizer(text)["input_ids"] + [tokenizer.eos_token_id]

    chats = [tokenizer.apply_chat_template(each, add_generation_prompt=True, return_dict=False) for each in prompts]
    return {
        "prompt_ids": chats,
        "completion_ids": [ids(rank * len(prompts) + at) for at in range(len(prompts))],
        "logprobs": None,
    }


def step(trainer, model, *batch, **options):
    loss = trained(trainer, model, *batch, **options)
    whole = [name for name, each in model.named_parameters() if each.requires_grad and each.grad is None]
    with Path(f"undivided-{trainer.accelerator.process_index}").open("a") as file:
        print(len(whole), file=file)
    return loss


if __name__ == "__main__":
    from accelerate.state import AcceleratorState, DistributedType
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch
    from trl import GRPOTrainer

    from wfdsl_rl.cli.train import main

    begin, AcceleratorState.__init__ = AcceleratorState.__init__, begin_with_fsdp
    trained, GRPOTrainer.training_step = GRPOTrainer.training_step, step
    made, GRPOTrainer.__init__ = GRPOTrainer.__init__, begin_with_completions
    if "FORKS" not in os.environ:
        sys.exit(main())
    own = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "run_id": "forks", "start_method": "fork"}
    elastic_launch(LaunchConfig(1, 1, int(os.environ["FORKS"]), max_restarts=0, **own), lambda: sys.exit(main()))()
'''
FSDP = ("--set", "train.fsdp=on")
"""Each process has a part of the weights, gradients and moments."""
PASSES = ("--set", "train.stages.base.per_device_train_batch_size=3")
"""Three passes for each step, of two processes."""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")


def prepared(folder: Path) -> Path:
    """A folder with the experiment, its tasks and model, and an installed package with its workers."""
    plugin = folder / "site" / "fixed_completions-1.0.dist-info"
    plugin.mkdir(parents=True)
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: fixed-completions\nVersion: 1.0\n")
    (plugin / "entry_points.txt").write_text("[wfdsl.workers]\nfixed = fixed_completions:build\n")
    (folder / "site" / "fixed_completions.py").write_text(PLUGIN)
    (folder / "experiment.toml").write_text(EXPERIMENT)
    tasks = [{"id": str(each), "question": f"What is {each} + 4 - {each}?", "gold": "4"} for each in range(30)]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    write_model(folder / "model")
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    paths = [str(folder / "site"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1", **more}


def train(folder: Path, processes: int, *arguments: str) -> Program:
    more = {"FORKS": str(processes)} if processes > 1 else {}
    env = environment(folder, **more)
    return ended("-m", "fixed_completions", *arguments, folder=folder, env=env, imported=TRAINING)


def trained(folder: Path, processes: int, *settings: str) -> Path:
    """The output of an uninterrupted training."""
    done = train(prepared(folder), processes, "experiment.toml", "--out", "out", *settings)
    assert done.returncode == 0, done.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("one"), 1)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Groups of six completions in shares of nine: each process has a part of a group."""
    return trained(tmp_path_factory.mktemp("two"), 2)


@pytest.fixture(scope="module")
def fsdp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("fsdp"), 2, *FSDP, *PASSES)


def weights(out: Path) -> dict[str, torch.Tensor]:
    return dict(load_file(out / "base/final/model.safetensors"))


def started_from(out: Path) -> dict[str, torch.Tensor]:
    return dict(load_file(out.parent / "model/model.safetensors"))


def runs_in(out: Path) -> list[str]:
    return [each.id for each in summaries(out / "journal.db")]


def calls_in(out: Path) -> int:
    return sum(each.charged.calls for each in summaries(out / "journal.db"))


@pytest.mark.parametrize("name", ["two", "fsdp"])
def test_processes_come_to_the_rewards_and_weights_of_one(one: Path, name: str, request: pytest.FixtureRequest) -> None:
    several = request.getfixturevalue(name)

    alone, together = (samples(out / "base/samples") for out in (one, several))
    assert {each["outcome"] for batch in alone.values() for each in batch} == {"right", "wrong", "invalid"}
    assert sorted(runs_in(several)) == sorted(runs_in(one)) == sorted(set(runs_in(one)))
    for file in alone:
        assert scores(together[file]) == scores(alone[file])
    start = started_from(one)
    for key, expected in weights(one).items():
        torch.testing.assert_close(weights(several)[key], expected, atol=1e-4, rtol=1e-3)
        assert not torch.equal(expected, start[key])


def scores(batch: list[dict[str, object]]) -> dict[object, object]:
    return {each["sample_id"]: each["reward"] for each in batch}


def test_a_model_whose_passes_have_16_bits_is_saved_in_32(tmp_path: Path) -> None:
    few = ("--set", "train.stages.base.max_steps=2", "--set", "train.trl.bf16=true")

    out = trained(tmp_path, 2, *few, *FSDP)

    saved, start = weights(out), started_from(out)
    changed = [key for key, each in start.items() if not torch.equal(each, saved[key])]
    assert changed
    assert not any(torch.equal(saved[key], saved[key].bfloat16().float()) for key in changed)


def test_weights_are_divided_and_gradients_after_each_pass_of_a_step(two: Path, fsdp: Path) -> None:
    assert (fsdp / "base/checkpoint-6/pytorch_model_fsdp.bin").exists()
    assert not (two / "base/checkpoint-6/pytorch_model_fsdp.bin").exists()
    assert (fsdp.parent / "undivided-0").read_text().split() == ["0"] * (6 * 18 // 2 // 3)


def test_adapters_of_divided_weights_are_those_of_one_process(tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="needs peft, in the extra rl")
    adapted = ("--set", "train.lora.r=4", "--set", "train.stages.base.max_steps=2")

    alone = trained(tmp_path / "one", 1, *adapted)
    together = trained(tmp_path / "two", 2, *adapted, *FSDP)

    start = started_from(alone)
    for key, expected in weights(alone).items():
        torch.testing.assert_close(weights(together)[key], expected, atol=1e-5, rtol=1e-3)
        assert torch.equal(expected, start[key]) == ("proj.weight" not in key)


def test_a_killed_process_ends_all_and_the_training_resumes_to_the_same_weights(fsdp: Path, tmp_path: Path) -> None:
    with begun(tmp_path, *FSDP, *PASSES) as training:
        os.kill(training.ranks[1], signal.SIGKILL)

        assert "--resume" in training.ended()
    assert not (tmp_path / "out/base/final").exists()
    assert resumed(tmp_path, fsdp)


def test_an_error_in_another_process_than_the_first_is_shown_ends_all_and_the_training_resumes_to_the_same_weights(
    two: Path, tmp_path: Path
) -> None:
    with begun(tmp_path) as training:
        (tmp_path / "broken-1").touch()

        assert "RuntimeError: process 1 is broken" in training.ended()
    (tmp_path / "broken-1").unlink()
    assert resumed(tmp_path, two)


def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    with begun(tmp_path, by=TORCHRUN) as training:
        os.killpg(training.process.pid, signal.SIGINT)  # as Ctrl-C does: ranks are in sessions of their own

        said = training.ended()
    assert "continue with: wfdsl-train --resume out" in said
    assert message_in(said) == "wfdsl-train: interrupted"


@dataclass(frozen=True)
class Begun:
    """A training of two processes that has a checkpoint, and waits until its file `hold` is gone."""

    folder: Path
    process: Program
    ranks: tuple[int, int]
    """Its processes."""

    def ended(self) -> str:
        """Let it go on until all processes have ended with an error; everything that they wrote."""
        (self.folder / "hold").unlink()
        assert self.process.wait(60) != 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in self.ranks)
        return (self.folder / "stderr").read_text()


@contextmanager
def begun(folder: Path, *settings: str, by: tuple[str, ...] = ()) -> Iterator[Begun]:
    (prepared(folder) / "hold").touch()
    with (folder / "stderr").open("w") as stderr:
        command = (*by, "-m", "fixed_completions", "experiment.toml", "--out", "out", *settings)
        env = environment(folder, **({} if by else {"FORKS": "2"}))
        process = Program(*command, folder=folder, env=env, stderr=stderr.fileno(), own_group=True, imported=TRAINING)
    try:
        deadline = time.monotonic() + 200
        kept = (folder / "out/base").glob
        while not (any(kept("checkpoint-*/wfdsl-prompt.json")) and any(kept("checkpoint-*/rng_state_1.pth"))):
            assert process.poll() is None, (folder / "stderr").read_text()
            assert time.monotonic() < deadline, (folder / "stderr").read_text()
            time.sleep(0.05)
        yield Begun(folder, process, (_pid(folder, 0), _pid(folder, 1)))
    finally:
        for started in [process.pid, *(int(file.read_text()) for file in folder.glob("rank-*.pid"))]:
            with suppress(ProcessLookupError):
                os.kill(started, signal.SIGKILL)
        process.wait()


def _pid(folder: Path, rank: int) -> int:
    return int((folder / f"rank-{rank}.pid").read_text())


def message_in(said: str) -> str:
    """The one message of the training."""
    (line,) = (line for line in said.splitlines() if line.startswith("wfdsl-train: "))
    return line


def resumed(folder: Path, uninterrupted: Path) -> bool:
    """Whether a training that is resumed makes the missing calls, and ends with the weights of another one."""
    done = train(folder, 2, "--resume", "out")
    assert done.returncode == 0, done.stderr
    assert "resumes from out/base/checkpoint-" in done.stderr
    assert sorted(runs_in(folder / "out")) == sorted(runs_in(uninterrupted))
    assert calls_in(folder / "out") == calls_in(uninterrupted)
    return same(folder / "out/base/final", uninterrupted / "base/final")


def test_a_spent_budget_is_one_for_all_processes_and_ends_them_with_one_message(tmp_path: Path) -> None:
    folder = prepared(tmp_path)

    spent = train(folder, 2, "experiment.toml", "--out", "out", "--set", "budget.calls=12")

    assert spent.returncode != 0
    assert "budget" in message_in(spent.stderr)
    assert calls_in(folder / "out") <= 12
