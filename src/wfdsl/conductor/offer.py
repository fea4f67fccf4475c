"""How a pool is shown to a Conductor: which workers, under which ordinals, in the Conductor's own numbering.

An `Offering` says how to choose; an `Offer` is what came of it for one question. A worker that is not offered is taken
out of the pool itself, so that no workflow, nested one or fallback can reach it.

Source: arXiv 2512.04388 (ordinals with metadata and no names; random k-of-n subsets). Shuffling is our choice.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wfdsl.errors import UsageError
from wfdsl.language.workflow import Workflow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl.protocols import WorkerPool
    from wfdsl.workers.pool import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """How workers are chosen and numbered for a question."""

    without: tuple[str, ...] = ()
    """Workers that are left out, by name or tag."""
    pick: int | None = None
    """How many of the rest are drawn at random; None: all of them."""
    shuffle: bool = False
    """Whether workers are numbered anew for each question, from 0 upwards."""
    seed: int = 0
    """What the draws depend on, besides the question."""

    def choose(self, pool: Pool, question: str) -> Pool:
        """The workers on offer, under their own ordinals.

        Raises:
            UsageError: a name or tag is not known, or nobody is left.
        """
        left = [ordinal for ordinal in pool.ordinals if ordinal not in self._left_out(pool)]
        if self.pick is not None:
            if not 1 <= self.pick <= len(left):
                raise UsageError(f"{self.pick} workers cannot be picked: the pool {pool.name!r} offers {len(left)}")
            left = self._random(question, "pick").sample(left, self.pick)
        if not left:
            raise UsageError(f"every worker of the pool {pool.name!r} is left out: offer at least one")
        return pool.subset(sorted(left))

    def numbering(self, pool: Pool, question: str) -> Mapping[int, int] | None:
        """The true ordinal behind each one that is shown, from 0 upwards; None if they are the same."""
        if not self.shuffle:
            return None
        dealt = [ordinal for ordinal in pool.ordinals if ordinal >= 0]  # below 0 are seats of Conductors at work
        self._random(question, "shuffle").shuffle(dealt)
        return dict(enumerate(dealt))

    def _left_out(self, pool: Pool) -> set[int]:
        found: set[int] = set()
        for word in self.without:
            named = pool.find(word)
            ordinals = pool.tagged(word) if named is None else (named, *pool.tagged(word))
            if not ordinals:
                raise UsageError(f"the pool {pool.name!r} has no worker and no tag {word!r} to leave out")
            found.update(ordinals)
        return found

    def _random(self, question: str, purpose: str) -> random.Random:
        return random.Random(f"{purpose}:{self.seed}:{question}".encode(errors="surrogatepass"))


@dataclass(frozen=True, slots=True)
class Offer:
    """The workers as one Conductor sees them. It has the shape of a pool, as far as the checker asks."""

    ordinals: tuple[int, ...]
    """The ordinals as shown, ascending."""
    conductors: tuple[int, ...]
    """Those of them that are Conductors themselves."""
    descriptions: tuple[str, ...]
    """What is said of each; may be empty."""
    true: Mapping[int, int]
    """The pool's ordinal behind each ordinal that is shown."""

    @classmethod
    def of(cls, pool: WorkerPool, numbering: Mapping[int, int] | None = None) -> Offer:
        """The offer of a pool's workers. Ordinals below 0 are seats of Conductors at work, not workers."""
        ordinals = [ordinal for ordinal in pool.ordinals if ordinal >= 0]
        true = _restricted(numbering, ordinals) if numbering else {ordinal: ordinal for ordinal in ordinals}
        shown = tuple(sorted(true))
        conductors = set(getattr(pool, "conductors", ()))
        return cls(
            shown,
            tuple(ordinal for ordinal in shown if true[ordinal] in conductors),
            tuple(" ".join(pool.entry(true[ordinal]).description.split()) for ordinal in shown),
            true,
        )

    def to_pool(self, workflow: Workflow) -> Workflow:
        """A workflow in the offer's numbering, in that of the pool."""
        return _renumbered(workflow, self.true)

    def from_pool(self, workflow: Workflow) -> Workflow:
        """A workflow in the pool's numbering, in that of the offer."""
        return _renumbered(workflow, {true: shown for shown, true in self.true.items()})


def _restricted(numbering: Mapping[int, int], ordinals: list[int]) -> dict[int, int]:
    return {shown: true for shown, true in numbering.items() if true in ordinals}


def _renumbered(workflow: Workflow, ordinals: Mapping[Any, int]) -> Workflow:
    return Workflow(tuple(replace(step, worker=ordinals.get(step.worker, step.worker)) for step in workflow))
