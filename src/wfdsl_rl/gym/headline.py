"""One seed of the training on the gym, end to end: rows and model, SFT, GRPO, and what each was worth.

`python -m wfdsl_rl.gym.headline FOLDER --seed 0` continues where it was interrupted. The table that it prints at
the end compares the trained model with the one before GRPO, question by question, and with exact values: the best
worker, the best workflow that is the same for all kinds, and the optimum.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wfdsl_rl.gym.optimum import MAX_STEPS, optimum
from wfdsl_rl.gym.start import write_start


def train(preset: str, out: Path, settings: Sequence[str]) -> Path:
    """Train a preset, or continue it; the folder of the stage's model.

    Raises:
        CalledProcessError: the training failed; it has said why.
    """
    options = [part for setting in settings for part in ("--set", setting)]
    begun = (out / "resolved.json").is_file()
    arguments = ["--resume", str(out)] if begun else [preset, *options, "--out", str(out)]
    subprocess.run([sys.executable, "-m", "wfdsl_rl.cli.train", *arguments], check=True)
    (stage,) = {path.parent for path in out.glob("*/final")}
    return stage / "final"


def exact_values() -> dict[str, float]:
    """What is known of the gym without any training."""
    single, whole = optimum(1), optimum(MAX_STEPS)
    return {
        "best_worker": single.constant[0],
        "best_of_each_kind_in_one_call": single.value,
        "best_constant": whole.constant[0],
        "best_constant_calls": float(len(whole.constant[1])),
        "optimum": whole.value,
    }


def main() -> None:
    """Train one seed and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where everything is written, outside a checkout")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--questions", type=int, default=2000, help="fresh ones, for the figures (default: %(default)s)"
    )
    args = parser.parse_args()
    folder = args.folder / f"seed{args.seed}"
    start = folder / "start"
    write_start(start, seed=args.seed)
    seeded = [f"train.seed={args.seed}"]
    sft = train(
        "gym-sft",
        folder / "sft",
        [*seeded, f"train.model={start / 'model'}", f"train.stages.sft.rows={start / 'sft.jsonl'}"],
    )
    grpo = train("gym", folder / "grpo", [*seeded, f"train.model={sft}"])

    from wfdsl_rl.gym.measure import gain, measure  # noqa: PLC0415  (torch, after the trainings)

    figures: dict[str, Any] = {"seed": args.seed, "exact": exact_values()}
    for name, temperature in (("as_trained", 1.0), ("greedy", 0.0)):
        before, after = (
            measure(str(model), questions=args.questions, seed=1000 + args.seed, temperature=temperature, max_steps=1)
            for model in (sft, grpo)
        )
        difference, error = gain(before, after)
        figures[name] = {"sft": before.to_dict(), "grpo": after.to_dict(), "gain": difference, "gain_error": error}
    text = json.dumps(figures, indent=2)
    (folder / "figures.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
