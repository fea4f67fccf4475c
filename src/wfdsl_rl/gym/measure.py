"""How good a trained Conductor is on the gym: its workflows are sampled, and their value is computed exactly.

`python -m wfdsl_rl.gym.measure MODEL...` asks each model the same fresh questions in wordings that training never
has. What a workflow is worth is its chance of a right answer, so no worker is called and only the sampling of
completions is noisy. Models are compared question by question.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final, TypeVar

import torch

import wfdsl
from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.prompt import Prompt
from wfdsl_rl.gym.optimum import MAX_STEPS, right_chance
from wfdsl_rl.gym.questions import KINDS, Kind, draw
from wfdsl_rl.gym.source import NAME, pools
from wfdsl_rl.gym.start import PROMPT
from wfdsl_rl.gym.world import WORKERS, Role, role_of
from wfdsl_rl.training.checkpoints import completions_of, ends_of, has_bfloat16, load_model

T = TypeVar("T")
_TOKENS: Final = 80
"""The longest completion, as in training."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question and the completion of a model."""

    kind: Kind
    completion: str
    value: float
    """The chance of a right answer; 0 for a completion that is not valid or was cut."""
    workers: tuple[int, ...]
    """The workers of its steps; none if it is not valid."""
    roles: tuple[Role, ...] = ()
    """What its steps do."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A model on all questions."""

    asked: tuple[Asked, ...]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        kinds = {kind: [each for each in self.asked if each.kind == kind] for kind in KINDS}
        valid = [each for each in self.asked if each.workers]
        return {
            "questions": len(self.asked),
            "accuracy": fmean(each.value for each in self.asked),
            "standard_error": _error([each.value for each in self.asked]),
            "valid": len(valid) / len(self.asked),
            "calls": fmean(len(each.workers) for each in valid) if valid else 0.0,
            "by_kind": {kind: fmean(each.value for each in found) for kind, found in kinds.items()},
            "workers": {
                kind: _shares(worker for each in found for worker in each.workers) for kind, found in kinds.items()
            },
            "roles": {kind: _shares(" ".join(each.roles) for each in found) for kind, found in kinds.items()},
        }


def measure(
    model: str, *, questions: int, seed: int, max_steps: int = MAX_STEPS, temperature: float = 1.0, batch: int = 64
) -> Measured:
    """Ask a model fresh questions, kinds in turns; a temperature of 0 is greedy."""
    torch.manual_seed(seed)
    tokenizer, network = load_model(model)
    network.eval()
    prompt, listing = Prompt.load(str(PROMPT)), WorkerListing.of(pools(NAME))
    series = [draw(kind, "test", seed) for kind in KINDS]
    items = list(islice((next(each) for each in cycle(series)), questions))
    asked: list[Asked] = []
    ends = ends_of(tokenizer, network)
    for at in range(0, len(items), batch):
        chats = [list(prompt.ask(item.text, listing, max_steps=max_steps)) for item in items[at : at + batch]]
        with torch.autocast("cpu", torch.bfloat16, has_bfloat16("cpu")):
            _, rows, _ = completions_of(tokenizer, network, chats, 1, temperature=temperature, longest=_TOKENS)
        for item, row in zip(items[at : at + batch], rows, strict=True):
            text, ended = tokenizer.decode(row, skip_special_tokens=True), row[-1] in ends
            asked.append(_valued(item.kind, text, max_steps, ended=ended))
    return Measured(tuple(asked))


def _valued(kind: Kind, completion: str, max_steps: int, *, ended: bool) -> Asked:
    workflow = wfdsl.analyze(completion, pool=len(WORKERS), max_steps=max_steps).workflow if ended else None
    if workflow is None:
        return Asked(kind, completion, 0.0, ())
    workers = tuple(step.worker for step in workflow.steps if isinstance(step.worker, int))
    roles = tuple(role_of(step.subtask) for step in workflow.steps)
    return Asked(kind, completion, right_chance(workflow, kind), workers, roles)


def _shares(values: Iterable[T]) -> dict[T, float]:
    counts = Counter(values)
    return {value: round(count / counts.total(), 3) for value, count in counts.most_common()}


def _error(values: Sequence[float]) -> float:
    return stdev(values) / sqrt(len(values))


def gain(before: Measured, after: Measured) -> tuple[float, float]:
    """The mean difference of two models on the same questions, and its standard error."""
    pairs = zip(before.asked, after.asked, strict=True)
    differences = [second.value - first.value for first, second in pairs]
    return fmean(differences), _error(differences)


def main() -> None:
    """Measure models, and print the figures as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a folder; gains are those over the first one")
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1000, help="which questions (default: %(default)s)")
    parser.add_argument("--max-steps", type=int, default=MAX_STEPS, help="of a workflow (default: %(default)s)")
    parser.add_argument("--temperature", type=float, default=1.0, help="0: greedy (default: %(default)s)")
    args = parser.parse_args()
    first: Measured | None = None
    for model in args.models:
        options = {name: value for name, value in vars(args).items() if name != "models"}
        found = measure(model, **options)
        more = {}
        if first is None:
            first = found
        else:
            more["gain"], more["gain_standard_error"] = gain(first, found)
        print(json.dumps({"model": str(Path(model)), **found.to_dict(), **more}), flush=True)


if __name__ == "__main__":
    main()
