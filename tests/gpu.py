"""What only a GPU can show, in a few minutes and without a network: `make gpu` (a CPU tries the code with --tiny).

A random model with the shape of Qwen2.5-0.5B takes one step of GRPO by the command, with passes in bfloat16 above
32-bit weights: with all weights, and with FSDP on one process. A group of one process sums over NCCL. `--seven` adds a
step of adapters on a model with the shape of Qwen2.5-7B. The report has the highest memory beside the dry run's
estimate.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HALF_B = {"width": 896, "inner": 4864, "layers": 24, "heads": 14}
SEVEN_B = {"width": 3584, "inner": 18944, "layers": 28, "heads": 28}
TINY = {"width": 64, "inner": 128, "layers": 2, "heads": 2}
ADAPTERS = "qwen2.5-0.5b-lora"
ALONE = (
    *("pool.use=gym/seven", "train.tasks=gym/seven", "train.processes=1", "train.fsdp=on"),
    "train.trl.use_vllm=false",
)
"""The paper's training with the gym's workers, divided among one process."""
STEP = {"max_steps": 1, "prompts_per_step": 2, "num_generations": 4, "max_completion_length": 64}


def trained(folder: Path, preset: str, size: dict[str, int], *settings: str) -> dict[str, Any]:
    """One step of GRPO by the command, in a process of its own, and what it needed."""
    import torch
    from safetensors import safe_open

    from tests.rl.training.random_model import make_model, make_tokenizer, save_new
    from wfdsl_rl.training.checkpoints import device
    from wfdsl_rl.training.estimate import GIB, memory_of, shape_of
    from wfdsl_rl.training.plan import read_plan

    tokenizer = make_tokenizer(["What is 2 times 3?"], vocabulary=300)
    with torch.device(device()):
        save_new(folder / "model", make_model(tokenizer, seed=0, **size).bfloat16(), tokenizer)
    torch.cuda.empty_cache()
    chosen = [f"train.model={folder / 'model'}", *(f"train.stages.base.{key}={value}" for key, value in STEP.items())]
    chosen += ["train.eval_count=0", "train.trl.bf16=true", "conductor.prompt=tiny", "conductor.examples=none"]
    chosen += settings
    plan, shape = read_plan(preset, chosen), shape_of(str(folder / "model"))
    assert shape is not None
    begun = time.monotonic()
    words = [word for setting in chosen for word in ("--set", setting)]
    where = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29512"}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, preset, "--stage", "base", "--out", str(folder / "out"), *words],
        env=os.environ | (where if plan.train.fsdp != "off" else {}),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    dtypes = set()
    for file in (folder / "out/base/final").glob("*.safetensors"):
        with safe_open(file, "pt") as weights:
            dtypes |= {weights.get_slice(name).get_dtype() for name in weights.keys()}  # noqa: SIM118  (no mapping)
    return {
        "exit_code": done.returncode,
        "seconds": round(time.monotonic() - begun, 1),
        "all_weights_in_32_bits": dtypes == {"F32"},
        "peak_gib": float(done.stdout.rpartition("peak ")[2] or "nan") / GIB,
        "estimated_gib": sum(memory_of(plan.train, shape, "base").values()),
    }


_RUN = """
import sys, torch
from wfdsl_rl.training import pipeline
from wfdsl_rl.cli.train import main
pipeline.unusable = lambda *_: ()  # it refuses to divide weights among one process
code = main(sys.argv[1:])
print(f"peak {torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0}")
sys.exit(code)
"""


def summed() -> float:
    """A sum over a group of one process: over NCCL on a GPU."""
    import torch
    from torch import distributed

    cuda = torch.cuda.is_available()
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    distributed.init_process_group("nccl" if cuda else "gloo", rank=0, world_size=1)
    value = torch.ones(1, device="cuda" if cuda else "cpu")
    distributed.all_reduce(value)
    distributed.destroy_process_group()
    return float(value.item())


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a model of two layers, which a CPU can train")
    parser.add_argument("--seven", action="store_true", help="adapters on 7B too: 40 GiB of a GPU, 30 GiB of disk")
    parser.add_argument("--out", type=Path, default=Path("gpu-report.json"))
    args = parser.parse_args()
    import torch

    if not torch.cuda.is_available() and not args.tiny:
        raise SystemExit("this machine has no GPU; --tiny tries the code on a CPU")
    size = TINY if args.tiny else HALF_B
    runs: list[tuple[str, str, dict[str, int], tuple[str, ...]]] = [("grpo", ADAPTERS, size, ())]
    runs += [("fsdp", "paper-7b", size, ALONE)]
    runs += [("seven", ADAPTERS, SEVEN_B, ())] if args.seven else []
    found = {}
    for name, preset, shape, settings in runs:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = trained(Path(folder), preset, shape, *settings)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    report = {"device": device, "torch": torch.__version__, **found, "sum_of_one": summed()}
    args.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
