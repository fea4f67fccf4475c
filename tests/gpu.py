"""What only a GPU can show, in a few minutes and without a network: `make gpu` (a CPU tries the code with --tiny).

A random model with the shape of Qwen2.5-0.5B takes one step of GRPO by the command, with passes in bfloat16 above
32-bit weights; a group of one process sums over NCCL. The report has the highest memory beside the dry run's estimate.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

HALF_B = {"width": 896, "inner": 4864, "layers": 24, "heads": 14}
TINY = {"width": 64, "inner": 128, "layers": 2, "heads": 2}
STEP = {"max_steps": 1, "prompts_per_step": 2, "num_generations": 4, "max_completion_length": 64}


def trained(folder: Path, size: dict[str, int]) -> dict[str, Any]:
    """One step of GRPO by the command, and what it needed."""
    import torch
    from safetensors.torch import load_file

    from tests.rl.training.random_model import make_model, make_tokenizer, save_new
    from wfdsl_rl.cli.train import main
    from wfdsl_rl.training.estimate import GIB, memory_of, shape_of
    from wfdsl_rl.training.plan import read_plan

    tokenizer = make_tokenizer(["What is 2 times 3?"], vocabulary=300)
    save_new(folder / "model", make_model(tokenizer, seed=0, **size), tokenizer)
    settings = [f"train.model={folder / 'model'}", *(f"train.stages.base.{key}={value}" for key, value in STEP.items())]
    settings += ["train.lora.r=8"] if size is TINY else []
    settings += ["train.trl.bf16=true", "conductor.prompt=tiny", "conductor.examples=none"]
    plan, shape = read_plan("qwen2.5-0.5b-lora", settings), shape_of(str(folder / "model"))
    assert shape is not None
    begun = time.monotonic()
    words = [word for setting in settings for word in ("--set", setting)]
    code = main(["qwen2.5-0.5b-lora", "--out", str(folder / "out"), *words])
    weights = load_file(folder / "out/base/final/model.safetensors").values()
    return {
        "exit_code": code,
        "seconds": round(time.monotonic() - begun, 1),
        "all_weights_in_32_bits": all(each.dtype == torch.float32 for each in weights),
        "peak_gib": torch.cuda.max_memory_allocated() / GIB if torch.cuda.is_available() else None,
        "estimated_gib": sum(memory_of(plan.train, shape, "base").values()),
    }


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
    parser.add_argument("--out", type=Path, default=Path("gpu-report.json"))
    args = parser.parse_args()
    import torch

    if not torch.cuda.is_available() and not args.tiny:
        raise SystemExit("this machine has no GPU; --tiny tries the code on a CPU")
    with tempfile.TemporaryDirectory() as folder:
        found = trained(Path(folder), TINY if args.tiny else HALF_B)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    report = {"device": device, "torch": torch.__version__, "grpo": found, "sum_of_one": summed()}
    args.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
