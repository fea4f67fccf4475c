"""How good a trained Conductor is on the gym: its workflows are sampled, and their value is computed exactly.

`python -m wfdsl_rl.gym.measure MODEL...` asks each model the same fresh questions in wordings that training never
has. What a workflow is worth is its chance of a right answer, so no worker is called and only the sampling of
completions is noisy. Models are compared question by question.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import Any, Final, TypeVar

import torch

import wfdsl
from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.prompt import Prompt
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Message
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym.optimum import MAX_STEPS, outcomes, right_chance
from wfdsl_rl.gym.questions import KINDS, Item, Kind, draw
from wfdsl_rl.gym.source import NAME, pools
from wfdsl_rl.gym.start import NAMED_PROMPT, PROMPT
from wfdsl_rl.gym.workers import text_of
from wfdsl_rl.gym.world import RIGHT, WORKERS, Answer, Role, role_of
from wfdsl_rl.training.checkpoints import completions_of, device, ends_of, has_bfloat16, load_model

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
    workflow: Workflow
    """The workflow, with the pool's workers; without steps if it is not valid."""
    offered: tuple[int, ...]
    """The workers that could be chosen."""
    revised: float | None = None
    """The chance of a right answer after a second round; None: it was not asked for one."""
    kept: float = 0.0
    """The chance that the second round keeps the answer of the first."""

    @property
    def workers(self) -> tuple[int | str, ...]:
        """The workers of its steps."""
        return tuple(step.worker for step in self.workflow)

    @property
    def roles(self) -> tuple[Role, ...]:
        """What its steps do."""
        return tuple(role_of(step.subtask) for step in self.workflow)

    @property
    def best_worker(self) -> float:
        """What the best of the offered workers reaches, the same one for all kinds."""
        best = max(self.offered, key=lambda worker: fmean(WORKERS[worker].solves))
        return WORKERS[best].solves[KINDS.index(self.kind)]


@dataclass(frozen=True, slots=True)
class Measured:
    """A model on all questions."""

    asked: tuple[Asked, ...]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        kinds = {kind: [each for each in self.asked if each.kind == kind] for kind in KINDS}
        valid = [each for each in self.asked if each.workers]
        found: dict[str, Any] = {
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
        sizes = sorted({len(each.offered) for each in self.asked})
        if len(sizes) > 1:
            found["by_size"] = {size: self._of_size(size) for size in sizes}
        if any(each.revised is not None for each in self.asked):
            found["second_round"] = self._second_round(kinds)
        return found

    def _of_size(self, size: int) -> dict[str, Any]:
        """Pools of so many workers: the model, their best worker, and what they reach with the best of each kind."""
        some = [each for each in self.asked if len(each.offered) == size]
        single = [max(WORKERS[at].solves[KINDS.index(each.kind)] for at in each.offered) for each in some]
        over = [each.value - each.best_worker for each in some]
        return {
            "questions": len(some),
            "accuracy": fmean(each.value for each in some),
            "best_worker": fmean(each.best_worker for each in some),
            "best_of_each_kind_in_one_call": fmean(single),
            "over_best_worker": fmean(over),
            "error": _error(over),
        }

    def _second_round(self, kinds: Mapping[Kind, Sequence[Asked]]) -> dict[str, Any]:
        gains = [(each.revised or 0.0) - each.value for each in self.asked]
        return {
            "accuracy": fmean(each.revised or 0.0 for each in self.asked),
            "gain": fmean(gains),
            "gain_error": _error(gains),
            "by_kind": {kind: fmean(each.revised or 0.0 for each in found) for kind, found in kinds.items()},
            "kept": {kind: fmean(each.kept for each in found) for kind, found in kinds.items()},
        }


def measure(
    model: str,
    *,
    questions: int,
    seed: int,
    max_steps: int = MAX_STEPS,
    temperature: float = 1.0,
    sizes: Sequence[int] = (),
    newcomer: str = "",
    batch: int = 256,
) -> Measured:
    """Ask a model fresh questions, kinds in turns; a temperature of 0 is greedy.

    With sizes, each question offers so many of the named workers, in turns, drawn for it; and there is a second round.
    One of them, drawn too, is shown under the name of a `newcomer`.
    """
    torch.manual_seed(seed)
    writer = _Writer(model, temperature, batch)
    prompt, pool = Prompt.load(str(NAMED_PROMPT if sizes else PROMPT)), pools(NAME)
    series = [draw(kind, "test", seed) for kind in KINDS]
    items = list(islice((next(each) for each in cycle(series)), questions))
    listings = [_listing(pool, seed, at, sizes) for at in range(len(items))]
    if newcomer:
        listings = [_renamed(listing, newcomer, f"new/{seed}/{at}") for at, listing in enumerate(listings)]
    chats = [
        list(prompt.ask(item.text, listing, max_steps=max_steps)) for item, listing in zip(items, listings, strict=True)
    ]
    first = zip(items, listings, writer.write(chats), strict=True)
    asked = [_valued(item, listing, text, max_steps) for item, listing, text in first]
    if sizes:
        asked = _revised(writer, prompt, list(zip(items, listings, chats, asked, strict=True)), max_steps)
    return Measured(tuple(asked))


def _revised(
    writer: _Writer,
    prompt: Prompt,
    rounds: Sequence[tuple[Item, WorkerListing, Sequence[Message], Asked]],
    max_steps: int,
) -> list[Asked]:
    """The same with second rounds: one after each answer that a first round may come to."""
    answers, again = [], []
    for at, (item, _, chat, first) in enumerate(rounds):
        results = outcomes(first.workflow, first.kind) if first.workers else {}
        for state, chance in results.items():
            if isinstance(state, Answer):
                said: Message = {"role": "assistant", "content": first.completion}
                revise = prompt.revise(text_of(state, item), max_steps=max_steps, rounds_left=0)
                answers.append((at, state, chance))
                again.append([*chat, said, revise])
    revised, kept = defaultdict[int, float](float), defaultdict[int, float](float)
    for (at, state, chance), text in zip(answers, writer.write(again), strict=True):
        _, listing, _, first = rounds[at]
        read = wfdsl.analyze(text or "", pool=listing, max_steps=max_steps, recursion=True)
        kept[at] += chance * read.passthrough
        if read.workflow is None:  # the answer is kept; so it is by a revision that is not valid
            revised[at] += chance * (state == RIGHT)
        else:
            revised[at] += chance * right_chance(listing.to_pool(read.workflow), first.kind, state)
    return [replace(first, revised=revised[at], kept=kept[at]) for at, (_, _, _, first) in enumerate(rounds)]


def _listing(pool: Pool, seed: int, number: int, sizes: Sequence[int]) -> WorkerListing:
    """The workers that a question offers: all under their own numbers, or some in an order that is drawn."""
    if not sizes:
        return WorkerListing.of(pool)
    size = sizes[number // len(KINDS) % len(sizes)]  # so that each kind meets each size
    shown = Random(f"offered/{seed}/{number}").sample(range(len(WORKERS)), size)
    return WorkerListing.of(pool, dict(enumerate(shown)))


def _renamed(listing: WorkerListing, name: str, seed: str) -> WorkerListing:
    """A listing in which one worker, drawn by seed, has another name."""
    shown = list(listing.descriptions)
    shown[Random(seed).randrange(len(shown))] = name
    return replace(listing, descriptions=tuple(shown))


class _Writer:
    """A model that completes chats, some at a time."""

    def __init__(self, model: str, temperature: float, batch: int) -> None:
        self._tokenizer, network = load_model(model)
        self._network, self._temperature, self._batch = network.to(device()).eval(), temperature, batch
        self._ends = ends_of(self._tokenizer, network)

    def write(self, chats: Sequence[Sequence[Mapping[str, Any]]]) -> list[str | None]:
        """The completion of each; None for one that was cut."""
        found: list[str | None] = []
        for at in range(0, len(chats), self._batch):
            with torch.autocast(device(), torch.bfloat16, has_bfloat16(device())):
                _, rows, _ = completions_of(
                    self._tokenizer,
                    self._network,
                    chats[at : at + self._batch],
                    1,
                    temperature=self._temperature,
                    longest=_TOKENS,
                )
            for row in rows:
                text = self._tokenizer.decode(row, skip_special_tokens=True)
                found.append(text if row[-1] in self._ends else None)
        return found


def _valued(item: Item, listing: WorkerListing, completion: str | None, max_steps: int) -> Asked:
    read = wfdsl.analyze(completion or "", pool=listing, max_steps=max_steps)
    offered = tuple(listing.pool_indices.values())
    if completion is None or read.workflow is None:
        return Asked(item.kind, completion or "", 0.0, Workflow(()), offered)
    workflow = listing.to_pool(read.workflow)
    return Asked(item.kind, completion, right_chance(workflow, item.kind), workflow, offered)


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
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help="of drawn pools of named workers")
    parser.add_argument("--newcomer", default="", metavar="NAME", help="of one worker that training did not have")
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
