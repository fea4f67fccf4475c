"""What a first training on the gym starts from: a model cut from a larger one, and supervised rows for the form.

`python -m wfdsl_rl.gym.start FOLDER` writes `FOLDER/model` and `FOLDER/sft.jsonl`. The rows teach how a workflow
is written, and no route: for each kind of question, and in each place, all workers are equally frequent. Before the
lists, a row says what kind of question it is, which worker solves it, and who else does what, such as `sums:1 check 5`.
A model that chooses right after the name of the kind can learn a choice for each kind. One that chooses in
`model_id = [` sees nearly the same before each choice, so that rewards move the choices of all kinds together. Prompts
allow one, two or three steps, so that a training may begin with one and continue with three; with `--max-steps 1` all
rows are single calls, which are shorter.

With `--stages`, the rows are those of a training on pools that are drawn at random, and on second rounds. A row finds
the number of a worker by its name: `sums:birch 3 check hazel 5`, in a second round `sums:check hazel 5`, or `sums:keep`
before three empty lists. `--second-rounds` writes second rounds alone, each after one call: a short SFT on them lets
second rounds vary again after a training on pools, so that GRPO can learn from them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.prompt import Prompt
from wfdsl.installation import require_packages
from wfdsl.language.completion import print_completion
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Message
from wfdsl.workers.model_folder import shipped_file
from wfdsl_rl.gym.optimum import MAX_STEPS
from wfdsl_rl.gym.questions import KINDS, Kind, draw
from wfdsl_rl.gym.source import NAME, pools
from wfdsl_rl.gym.workers import text_of
from wfdsl_rl.gym.world import WORKERS, Answer, Role, role_of

PROMPT: Final = Path(__file__).parent / "prompt.toml"
NAMED_PROMPT: Final = Path(__file__).parent / "named.toml"
_Shape: TypeAlias = tuple[tuple[Role, tuple[int, ...]], ...]
SUBTASKS: Final[dict[Role, str]] = {
    "plan": "Make a plan.",
    "solve": "Solve it.",
    "check": "Check the answer.",
    "combine": "Combine the answers.",
}
_SINGLE: Final[_Shape] = (("solve", ()),)
_PLANNED: Final[_Shape] = (("plan", ()), ("solve", (0,)))
_CHECKED: Final[_Shape] = (("solve", ()), ("check", (0,)))
_SHAPES: Final[tuple[tuple[int, int, _Shape], ...]] = (
    (6, 1, _SINGLE),
    (1, 2, _SINGLE),
    (2, 2, _PLANNED),
    (2, 2, _CHECKED),
    (2, 3, _SINGLE),
    (2, 3, _PLANNED),
    (2, 3, _CHECKED),
    (1, 3, (*_PLANNED, ("check", (1,)))),
    (1, 3, (*_CHECKED, ("check", (1,)))),
    (1, 3, (_SINGLE[0], _SINGLE[0], ("combine", (0, 1)))),
)
"""How often in twenty rows, the limit of steps in the prompt, and the role and access of each step. Our choice."""
_RIGHT_FIRST: Final = 0.6
"""The share of first answers that are right, in rows with a second round. Our choice."""


def sft_rows(per_kind: int, seed: int = 0, *, max_steps: int = MAX_STEPS) -> list[dict[str, Any]]:
    """Rows of messages `prompt` and `completion` for supervised steps, kinds in turns.

    Args:
        per_kind: How many rows of each kind of question.
        seed: Which questions and workflows.
        max_steps: The most steps that a prompt allows.
    """
    prompt, listing = Prompt.load(str(PROMPT)), WorkerListing.of(pools(NAME))
    series = {kind: draw(kind, "train", seed) for kind in KINDS}
    flows = {kind: _workflows(kind, seed, max_steps) for kind in KINDS}
    rows = []
    for kind in list(KINDS) * per_kind:
        limit, workflow = next(flows[kind])
        asked = prompt.ask(next(series[kind]).text, listing, max_steps=limit)
        rows.append({"prompt": list(asked), "completion": [_said(kind, workflow)]})
    return rows


def stage_rows(per_kind: int, seed: int = 0, *, second_rounds: bool = False) -> list[dict[str, Any]]:
    """Rows of messages `prompt` and `completion` for a training in stages, kinds in turns.

    Each offers two to seven workers under shuffled numbers. Of four rows two are a first round; one has a first round
    already, and keeps its answer; one has it checked.

    Args:
        per_kind: How many rows of each kind of question.
        seed: Which questions, workers and workflows.
        second_rounds: Only second rounds, after first ones of one call.
    """
    places, max_steps = ((2, 3), 1) if second_rounds else ((0, 1, 2, 3), MAX_STEPS)
    prompt, pool = Prompt.load(str(NAMED_PROMPT)), pools(NAME)
    series, rows = {kind: draw(kind, "train", seed) for kind in KINDS}, []
    flows = {(kind, place): _workflows(kind, 4 * seed + place, max_steps) for kind in KINDS for place in places}
    for turn, kind in product(range(per_kind), KINDS):
        rng, item = Random(f"stages/{seed}/{kind}/{turn}"), next(series[kind])
        cycle, place = turn // len(places), places[turn % len(places)]
        limit, workflow = next(flows[kind, place])
        check = Workflow((Step(_worker(f"{kind}/{seed}/check", cycle), SUBTASKS["check"], ALL),))
        listing = WorkerListing.of(pool, dict(enumerate(_offered(rng, (*workflow, *check)))))
        asked = list(prompt.ask(item.text, listing, max_steps=limit))
        said = _said(kind, listing.from_pool(workflow), listing.descriptions)
        if place > 1:
            answer = Answer(0 if rng.random() < _RIGHT_FIRST else 1 + rng.randrange(len(item.wrong)))
            asked += [said, prompt.revise(text_of(answer, item), max_steps=limit, rounds_left=0)]
            revision = listing.from_pool(check) if place == 3 else Workflow(())
            said = _said(kind, revision, listing.descriptions)
        rows.append({"prompt": asked, "completion": [said]})
    return rows


def _offered(rng: Random, steps: Sequence[Step]) -> list[int]:
    """Two to seven workers in an order that is drawn, with those of some steps among them."""
    needed = {int(step.worker) for step in steps}
    others = [at for at in range(len(WORKERS)) if at not in needed]
    shown = [*sorted(needed), *rng.sample(others, rng.randint(max(0, 2 - len(needed)), len(others)))]
    return rng.sample(shown, len(shown))


def _said(kind: Kind, workflow: Workflow, names: Sequence[str] = ()) -> Message:
    """A completion: the kind, who solves the question first, who else does what, and the lists.

    With names, each worker's stands before its number. A workflow without steps keeps an answer.
    """
    who = {step.worker: f"{names[int(step.worker)]} {step.worker}" if names else step.worker for step in workflow}
    does = [f"{role_of(step.subtask)} {who[step.worker]}" for step in workflow]
    first = next((each for each in does if each.startswith("solve ")), None)
    if first is not None:
        does.remove(first)
        does.insert(0, first.removeprefix("solve "))
    lists = print_completion(workflow, compact=True).rstrip("\n")
    return {"role": "assistant", "content": f"{kind}:{' '.join(does) or 'keep'}\n{lists}"}


def _workflows(kind: Kind, seed: int, max_steps: int) -> Iterator[tuple[int, Workflow]]:
    """An endless series of limits and workflows with all workers equally often in each place of each shape."""
    shapes = [(limit, steps) for often, limit, steps in _SHAPES if limit <= max_steps for _ in range(often)]
    order, turns = Random(f"shapes/{kind}/{seed}"), Counter[Any]()
    while True:
        order.shuffle(shapes)
        for limit, steps in shapes:
            turn = turns[limit, steps]
            turns[limit, steps] += 1
            yield (
                limit,
                Workflow(
                    tuple(
                        Step(_worker(f"{kind}/{seed}/{limit}/{steps}/{place}", turn), SUBTASKS[role], access)
                        for place, (role, access) in enumerate(steps)
                    )
                ),
            )


def _worker(place: str, turn: int) -> int:
    """The worker of a place in a turn: each once in as many turns as there are workers, in an order of its own."""
    cycle, at = divmod(turn, len(WORKERS))
    order = list(range(len(WORKERS)))
    Random(f"{place}/{cycle}").shuffle(order)
    return order[at]


def cut_model(folder: Path, layers: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a part of SmolLM2-135M-Instruct as a model of its own: the first layers, and the tokens of its
    questions and of rows for SFT.

    It reads and writes the texts of the gym in the same tokens, and other texts in smaller ones. Weights have 32 bits.

    Raises:
        UsageError: the package with its weights, or one that reads them, is not installed.
    """
    require_packages("the gym's model", ["torch", "transformers", "gguf"], "rl")
    import torch  # noqa: PLC0415  (only this needs it)
    import transformers  # noqa: PLC0415

    from wfdsl_rl.training.checkpoints import read_gguf  # noqa: PLC0415

    tokenizer, larger = read_gguf(shipped_file(), num_hidden_layers=layers)
    config, weights = larger.config, larger.state_dict()
    texts = [tokenizer.apply_chat_template([*row["prompt"], *row["completion"]], tokenize=False) for row in rows]
    texts += [f"Question: {item.text}" for kind in KINDS for item in islice(draw(kind, "test", 0), 500)]
    kept = _cut_tokenizer(tokenizer, folder, {token for text in texts for token in tokenizer.tokenize(text)})

    cut = transformers.AutoTokenizer.from_pretrained(folder)
    config.vocab_size = len(kept)
    config.bos_token_id, config.eos_token_id, config.pad_token_id = cut.bos_token_id, cut.eos_token_id, cut.pad_token_id
    network = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for name, shape in {name: each.shape for name, each in network.state_dict().items()}.items():
        whole = weights[name]
        weights[name] = whole if whole.shape == shape else whole[kept]  # rows of the tokens that are kept
    network.load_state_dict(weights)
    network.save_pretrained(folder)


def _cut_tokenizer(tokenizer: Any, folder: Path, used: set[str]) -> list[int]:
    """Write a tokenizer with the tokens that are used, those that they are merged from, and single bytes.

    Returns:
        The ids that the kept tokens had, in their new order.
    """
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    model, special = table["model"], {token["content"] for token in table["added_tokens"]}
    ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}
    kept = {token for token in model["vocab"] if len(token) == 1} | special
    for token in used - special:
        kept |= _merged_from(token, ranks)
    ids = sorted(model["vocab"][token] for token in kept)
    new = {old: at for at, old in enumerate(ids)}
    model["vocab"] = {token: new[old] for token, old in model["vocab"].items() if token in kept}
    model["merges"] = [pair for pair in model["merges"] if {*pair, "".join(pair)} <= kept]
    for token in table["added_tokens"]:
        token["id"] = new[token["id"]]
    path.write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")
    return ids


def _merged_from(token: str, ranks: Mapping[tuple[str, ...], int]) -> set[str]:
    """A token with all that it is merged from, by the ranks of merges."""
    parts, found = list(token), {token}
    while len(parts) > 1:
        at = min(range(len(parts) - 1), key=lambda at: ranks.get((parts[at], parts[at + 1]), len(ranks)))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        found.add(parts[at])
    return found


def write_start(
    folder: Path,
    *,
    layers: int = 4,
    per_kind: int | None = None,
    seed: int = 0,
    max_steps: int = MAX_STEPS,
    stages: bool = False,
    second_rounds: bool = False,
) -> None:
    """Write the model, unless it is there, and the rows; those of a training in stages if it is one.

    Unless it is given, how many rows there are of each kind is enough for all steps of the presets: 896, or 2,400 for
    a training in stages, which reads them again.

    Raises:
        UsageError: the package with the model's weights is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    per_kind = per_kind or (2400 if stages else 896)
    if stages or second_rounds:
        rows = stage_rows(per_kind, seed, second_rounds=second_rounds)
    else:
        rows = sft_rows(per_kind, seed, max_steps=max_steps)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "sft.jsonl").write_text("".join(lines), encoding="utf-8")
    if not second_rounds and not (folder / "model" / "config.json").is_file():
        cut_model(folder / "model", layers, stage_rows(500) if stages else sft_rows(500))


def main() -> None:
    """Write the model and the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=4, help="of the 30 that the model has (default: %(default)s)")
    parser.add_argument("--rows", type=int, help="for each kind of question (default: 896; with --stages 2400)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-steps", type=int, default=MAX_STEPS, help="of a workflow at most (default: %(default)s)")
    parser.add_argument("--stages", action="store_true", help="rows with drawn pools and second rounds")
    parser.add_argument("--second-rounds", action="store_true", help="rows of second rounds alone, after one call")
    args = parser.parse_args()
    write_start(
        args.folder,
        layers=args.layers,
        per_kind=args.rows,
        seed=args.seed,
        max_steps=args.max_steps,
        stages=args.stages,
        second_rounds=args.second_rounds,
    )


if __name__ == "__main__":
    main()
