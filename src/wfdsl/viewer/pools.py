"""The pools that the playground offers: the viewer's own, then those that `Pool.load` knows by name."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment
from wfdsl.workers.pool import Pool, pool_names


@dataclass(frozen=True, slots=True)
class Offered:
    """A pool as forms and runs name it."""

    name: str
    """As the form has it; empty for the viewer's own."""
    pool: Pool | None
    """None: the viewer has no pool of its own."""
    found_by: str | None = None
    """With what `Pool.load` finds it again; None: it cannot be found again."""


NO_POOL: Final = Offered("", None)


class OfferedPools:
    """Finds the pools by their names. Files and models are not offered: only the viewer's command line names them."""

    def __init__(self, experiment: Experiment) -> None:
        self._own = Offered("", experiment.pool, experiment.pool_name)
        self._lock = threading.Lock()
        self._loaded: dict[str, Offered] = {}

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return pool_names()

    @property
    def labels(self) -> dict[str, str]:
        """What the form calls each pool, by its name in the form."""
        own = "none" if self._own.pool is None else self._own.pool.name
        return {"": own} | {name: name for name in self._names if name != self._own.found_by}

    def find(self, name: str) -> Offered:
        """The pool of a name.

        Raises:
            UsageError: it is not offered, or cannot be loaded.
        """
        if not name:
            return self._own
        with self._lock:
            if name not in self._loaded:
                if name not in self._names:
                    raise UsageError(f"there is no pool {name!r} here: start the viewer with --pool {name}")
                self._loaded[name] = Offered(name, Pool.load(name), name)
            return self._loaded[name]
