"""One seed of the training on the gym, end to end: rows and model, SFT, GRPO, and what each was worth.

`python -m wfdsl_rl.gym.headline FOLDER --seed 0` continues where it was interrupted. The table that it prints at
the end compares the trained models with the one before GRPO, question by question, and with exact values: the best
worker, the best workflow that is the same for all kinds, and the optimum. With `--stages`, GRPO learns from
pools that are drawn for each question and then from second rounds, and models are measured in both.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wfdsl.conductor.checkpoint import load_prompt
from wfdsl_rl.gym.optimum import MAX_STEPS, optimum
from wfdsl_rl.gym.start import NAMED_PROMPT, write_start


def train(preset: str, out: Path, settings: Sequence[str]) -> dict[str, Path]:
    """Train a preset, or continue it; the folder of each stage's model.

    Raises:
        CalledProcessError: the training failed; it has said why.
    """
    options = [part for setting in settings for part in ("--set", setting)]
    begun = (out / "resolved.json").is_file()
    arguments = ["--resume", str(out)] if begun else [preset, *options, "--out", str(out)]
    subprocess.run([sys.executable, "-m", "wfdsl_rl.cli.train", *arguments], check=True)
    return {path.parent.name: path for path in out.glob("*/final")}


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
    parser.add_argument("--layers", type=int, default=4, help="of the 30 that the model has (default: %(default)s)")
    parser.add_argument("--stages", action="store_true", help="drawn pools of named workers, then second rounds")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of GRPO")
    parser.add_argument(
        "--questions", type=int, default=2000, help="fresh ones, for the figures (default: %(default)s)"
    )
    args = parser.parse_args()
    folder = args.folder / f"seed{args.seed}"
    start, seeded = folder / "start", f"train.seed={args.seed}"
    write_start(start, layers=args.layers, seed=args.seed, stages=args.stages)
    first = [seeded, f"train.model={start / 'model'}", f"train.stages.sft.rows={start / 'sft.jsonl'}"]
    if args.stages:
        first += [f"conductor.prompt={NAMED_PROMPT}", "train.stages.sft.max_steps=3500"]
    models = train("gym-sft", folder / "sft", first)
    preset = "gym-stages" if args.stages else "gym"
    grpo = train(preset, folder / "grpo", [seeded, f"train.model={models['sft']}", *args.set])

    from wfdsl_rl.gym.measure import Measured, gain, measure  # noqa: PLC0415  (torch, after the trainings)

    trained = load_prompt(next(iter(grpo.values())))
    assert trained is not None  # each stage writes it
    figures: dict[str, Any] = {"seed": args.seed, "exact": exact_values()}
    for name, temperature in (("as_trained", 1.0), ("greedy", 0.0)):
        found: dict[str, Measured] = {}
        for stage, model in (models | grpo).items():
            found[stage] = measure(
                str(model),
                questions=args.questions,
                seed=1000 + args.seed,
                temperature=temperature,
                max_steps=trained.max_steps,
                sizes=(2, 3, 5, 7) if args.stages else (),
            )
        figures[name] = {stage: each.to_dict() for stage, each in found.items()}
        for stage, each in found.items():
            gained, error = gain(found["sft"], each)
            figures[name][stage] |= {"gain": gained, "gain_error": error}
    text = json.dumps(figures, indent=2)
    (folder / "figures.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
