"""What a first training on the small gym starts from: a model cut from a larger one, and supervised rows for the form.

`python -m wfdsl_rl.small_gym.start FOLDER` writes `FOLDER/model` and `FOLDER/sft.jsonl`. The rows teach how a workflow
is written, and no route: for each kind of question, and in each place, all workers are equally frequent. Before the
lists, a row says what kind of question it is, so that a model has named the kind before it chooses.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.prompt import Prompt
from wfdsl.language.completion import print_completion
from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.small_gym.optimum import MAX_STEPS
from wfdsl_rl.small_gym.questions import KINDS, Kind, draw
from wfdsl_rl.small_gym.source import NAME, pools
from wfdsl_rl.small_gym.world import WORKERS, Role

PROMPT: Final = Path(__file__).parent / "prompt.toml"
SUBTASKS: Final[dict[Role, str]] = {
    "plan": "Make a plan.",
    "solve": "Solve it.",
    "check": "Check the answer.",
    "combine": "Combine the answers.",
}
_SHAPES: Final[tuple[tuple[int, tuple[tuple[Role, tuple[int, ...]], ...]], ...]] = (
    (6, (("solve", ()),)),
    (3, (("plan", ()), ("solve", (0,)))),
    (3, (("solve", ()), ("check", (0,)))),
    (1, (("plan", ()), ("solve", (0,)), ("check", (1,)))),
    (1, (("solve", ()), ("check", (0,)), ("check", (1,)))),
    (1, (("solve", ()), ("solve", ()), ("combine", (0, 1)))),
)
"""How often in fifteen rows, and the role and access of each step. Our choice."""
_THOUGHTS: Final[dict[Kind, str]] = {
    "sums": "This is about sums.",
    "dates": "This is about dates.",
    "words": "This is about words.",
    "animals": "This is about animals.",
}


def sft_rows(per_kind: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of messages `prompt` and `completion` for supervised steps, kinds in turns.

    Args:
        per_kind: How many rows of each kind of question.
        seed: Which questions and workflows.
    """
    prompt, listing = Prompt.load(str(PROMPT)), WorkerListing.of(pools(NAME))
    series = {kind: draw(kind, "train", seed) for kind in KINDS}
    flows = {kind: _workflows(kind, seed) for kind in KINDS}
    rows = []
    for kind in list(KINDS) * per_kind:
        asked = prompt.ask(next(series[kind]).text, listing, max_steps=MAX_STEPS)
        lists = print_completion(next(flows[kind]), compact=True).rstrip("\n")
        written = f"{_THOUGHTS[kind]}\n{lists}"
        rows.append({"prompt": list(asked), "completion": [{"role": "assistant", "content": written}]})
    return rows


def _workflows(kind: Kind, seed: int) -> Iterator[Workflow]:
    """An endless series of workflows with all workers equally often in each place of each shape."""
    shapes = [steps for often, steps in _SHAPES for _ in range(often)]
    order, turns = Random(f"shapes/{kind}/{seed}"), Counter[Any]()
    while True:
        order.shuffle(shapes)
        for steps in shapes:
            turn = turns[steps]
            turns[steps] += 1
            yield Workflow(
                tuple(
                    Step(_worker(f"{kind}/{seed}/{steps}/{place}", turn), SUBTASKS[role], access)
                    for place, (role, access) in enumerate(steps)
                )
            )


def _worker(place: str, turn: int) -> int:
    """The worker of a place in a turn: each once in as many turns as there are workers, in an order of its own."""
    cycle, at = divmod(turn, len(WORKERS))
    order = list(range(len(WORKERS)))
    Random(f"{place}/{cycle}").shuffle(order)
    return order[at]


def cut_model(folder: Path, layers: int) -> None:
    """Write the first layers of SmolLM2-135M-Instruct, in 32 bits, as a model of its own.

    Raises:
        UsageError: the package with its weights is not installed.
    """
    import torch  # noqa: PLC0415  (only this needs it)
    import transformers  # noqa: PLC0415

    from wfdsl_rl.training.checkpoints import import_gguf  # noqa: PLC0415

    whole = import_gguf("SmolLM2-135M-Instruct", folder.with_name("whole"))
    network = transformers.AutoModelForCausalLM.from_pretrained(whole, dtype=torch.float32)
    network.model.layers = network.model.layers[:layers]
    network.config.num_hidden_layers = layers
    network.config.layer_types = None
    network.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(whole).save_pretrained(folder)


def main() -> None:
    """Write the model and the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=8, help="of the 30 that the model has (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=448, help="for each kind of question (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in sft_rows(args.rows, args.seed))
    (args.folder / "sft.jsonl").write_text("".join(lines), encoding="utf-8")
    if not (args.folder / "model" / "config.json").is_file():
        cut_model(args.folder / "model", args.layers)


if __name__ == "__main__":
    main()
