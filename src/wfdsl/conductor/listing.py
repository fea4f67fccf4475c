"""The workers that a Conductor is offered: which ones, and under which numbers it is shown them.

A worker that is not offered is taken out of the pool itself, so that no workflow, nested workflow or fallback can reach
it.

Source: arXiv 2512.04388 (numbers with metadata and no names; random k-of-n subsets). Shuffling is our choice.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import WorkerPool
from wfdsl.workers.pool import Pool


def offered_workers(config: ConductorConfig, pool: Pool, question: str) -> Pool:
    """The workers that are offered for a question, under their own numbers.

    Raises:
        UsageError: a name or tag is not known, or no worker is left.
    """
    left_out = set[int]()
    for word in config.without:
        named = pool.find(word)
        indices = pool.tagged(word) if named is None else (named, *pool.tagged(word))
        if not indices:
            raise UsageError(f"the pool {pool.name!r} has no worker and no tag {word!r} to leave out")
        left_out.update(indices)
    left = [index for index in pool.indices if index not in left_out]
    if config.pick is not None:
        if config.pick > len(left):
            raise UsageError(f"{config.pick} workers cannot be picked: the pool {pool.name!r} offers {len(left)}")
        left = _random(config, question, "pick").sample(left, config.pick)
    if not left:
        raise UsageError(f"every worker of the pool {pool.name!r} is left out: offer at least one")
    return pool.subset(sorted(left))


def shuffled_numbers(config: ConductorConfig, pool: Pool, question: str) -> Mapping[int, int] | None:
    """The pool's index of each number that is shown, from 0 upwards; None if the numbers are the indices."""
    if not config.shuffle:
        return None
    shuffled = list(pool.indices)
    _random(config, question, "shuffle").shuffle(shuffled)
    return dict(enumerate(shuffled))


def list_workers(config: ConductorConfig, pool: Pool, question: str) -> WorkerListing:
    """The workers as a Conductor is shown them for a question; raises what `offered_workers` does."""
    offered = offered_workers(config, pool, question)
    return WorkerListing.of(offered, shuffled_numbers(config, offered, question))


def _random(config: ConductorConfig, question: str, purpose: str) -> random.Random:
    return random.Random(f"{purpose}:{config.seed}:{question}".encode(errors="surrogatepass"))


@dataclass(frozen=True, slots=True)
class WorkerListing:
    """The workers as one Conductor sees them. It has the shape of a pool, as far as the checker asks."""

    indices: tuple[int, ...]
    """The numbers as shown, ascending."""
    conductors: tuple[int, ...]
    """Those of them that are Conductors themselves."""
    descriptions: tuple[str, ...]
    """What is said of each; may be empty."""
    pool_indices: Mapping[int, int]
    """The pool's index of each number that is shown."""

    @classmethod
    def of(cls, pool: WorkerPool, numbers: Mapping[int, int] | None = None) -> WorkerListing:
        """The listing of a pool's workers. An index below 0 is the root Conductor, not a worker."""
        workers = {worker: worker for worker in pool.indices if worker >= 0}
        in_pool = {shown: worker for shown, worker in (numbers or workers).items() if worker in workers}
        shown = tuple(sorted(in_pool))
        conductors = set(getattr(pool, "conductors", ()))
        return cls(
            shown,
            tuple(number for number in shown if in_pool[number] in conductors),
            tuple(" ".join(pool.entry(in_pool[number]).description.split()) for number in shown),
            in_pool,
        )

    def to_pool(self, workflow: Workflow) -> Workflow:
        """A workflow in the listing's numbers, with the pool's indices."""
        return _renumbered(workflow, self.pool_indices)

    def from_pool(self, workflow: Workflow) -> Workflow:
        """A workflow with the pool's indices, in the listing's numbers."""
        return _renumbered(workflow, {index: shown for shown, index in self.pool_indices.items()})


def _renumbered(workflow: Workflow, numbers: Mapping[Any, int]) -> Workflow:
    return Workflow(tuple(replace(step, worker=numbers.get(step.worker, step.worker)) for step in workflow))
