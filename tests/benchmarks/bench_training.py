"""What training against the interpreter costs on top of TRL: time of an optimisation step, ours against plain TRL.

Both write nearly the same completions: the learning rate is so small that the weights hardly change. Plain TRL gives
every completion the same reward and keeps nothing; ours parses, runs and grades every completion and keeps it. The
pool is simulated and takes no time of its own, but for being computed in this process. Each way has to judge every
program itself. Prompts, and what equal completions come to, are shared in the last way only; the preset shares
prompts.

A shared machine has slow minutes. So the ways take turns, several times over. Under torchrun, both ways have several
processes: torchrun --nproc_per_node 2 -m tests.benchmarks.bench_training
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.benchmarks.measuring import show

ROUNDS = 3
ITERATIONS = 8
SKIPPED = 2  # first steps of each round, in which memory is allocated and programs are judged for the first time
PRESET = "gym"


def main() -> None:
    """Measure, and print the table."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    from wfdsl_rl.processes import joined

    with ExitStack() as stack:
        processes = stack.enter_context(joined())
        folder = processes.on_first(lambda: stack.enter_context(tempfile.TemporaryDirectory()))
        plain, ours, valid = _measure(Path(folder), processes)
    if not processes.is_first:
        return
    steps = ROUNDS * (ITERATIONS - 1 - SKIPPED)
    of = f"{PRESET} on the Conductor that ships, {processes.count} process{'es' * (processes.count > 1)}"
    ways = {"plain TRL, constant reward": plain, **ours}
    rows = [(name, f"{seconds:.2f}", f"{seconds / plain:.2f}") for name, seconds in ways.items()]
    title = f"Seconds per step, {of}, median of {steps} in {ROUNDS} turns"
    show(title, ("", "s per step", "ratio"), rows)
    target = 1.10 if processes.count == 1 else 1.15
    print(f"target: at most {target} for one execution, with nothing shared; completions valid: {valid:.0%}")


def _measure(folder: Path, processes: Any) -> tuple[float, dict[str, float], float]:
    """Seconds per step of plain TRL, and ours by what is done in them; the share of valid completions."""
    from wfdsl_rl.gym.source import NAME, conductors
    from wfdsl_rl.training.checkpoints import import_gguf
    from wfdsl_rl.training.data import stage_rows
    from wfdsl_rl.training.plan import read_plan
    from wfdsl_rl.training.stages import quiet_libraries, train_grpo

    quiet_libraries()
    settings = [
        f"train.stages.base.max_steps={ITERATIONS}",
        "train.stages.base.learning_rate=1e-8",
        "train.stages.base.save_steps=1000",
    ]
    plan = read_plan(PRESET, settings).with_tasks(["base"])
    setup = replace(plan, out=folder, processes=processes, say=lambda _: None)
    entries: list[dict[str, Any]] = []
    model = import_gguf(str(conductors(NAME) / "model.gguf"), folder / "model")
    most = plan.train.stages["base"].executions
    ways = {
        "wfdsl-train": (1, False),
        f"wfdsl-train, {most} executions": (most, False),
        f"wfdsl-train, {most} executions, shared": (most, True),
    }
    plain: list[float] = []
    ours: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(ROUNDS):
        plain += _plain(replace(setup, out=folder / f"{turn}"), model, stage_rows(setup, "base"))
        for name, (executions, shared) in ways.items():
            base = replace(plan.train.stages["base"], executions=executions)
            stamps, train = _Stamps(), replace(plan.train, stages={"base": base}, prefix_cache=shared)
            out, listeners = folder / f"{turn} {name}", (entries.append, stamps.hear)
            own = replace(setup, train=train, out=out, listeners=listeners)
            train_grpo(own, "base", model)
            ours[name] += stamps.gaps()
    if not processes.is_first:
        return 0.0, {}, 0.0
    valid = statistics.mean(entry["valid"] for entry in entries if "valid" in entry)
    return statistics.median(plain), {name: statistics.median(gaps) for name, gaps in ours.items()}, valid


def _plain(setup: Any, model: str, rows: list[dict[str, Any]]) -> list[float]:
    """Seconds of each step of plain TRL on the same model, rows and arguments."""
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOTrainer

    from wfdsl_rl.training.checkpoints import load_model
    from wfdsl_rl.training.stages import grpo_config

    stamps = _Stamps()

    class Stamping(TrainerCallback):  # type: ignore[misc,unused-ignore]
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            stamps.hear(logs or {})

    def constant(completions: list[Any], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    tokenizer, network = load_model(model)
    train, folder = setup.train, setup.out / "plain"
    config = grpo_config(train.stages["base"], train, folder)
    trainer = GRPOTrainer(
        model=network,
        processing_class=tokenizer,
        args=config,
        train_dataset=Dataset.from_list(rows),
        reward_funcs=constant,
        callbacks=[Stamping()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return stamps.gaps()


class _Stamps:
    """When each step ended."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def hear(self, entry: dict[str, Any]) -> None:
        if "reward" in entry:
            self.at.append(time.perf_counter())

    def gaps(self) -> list[float]:
        """Seconds of each step but the first ones."""
        return [later - earlier for earlier, later in pairwise(self.at)][SKIPPED:]


if __name__ == "__main__":
    main()
