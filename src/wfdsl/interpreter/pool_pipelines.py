"""Pipelines of a pool: one for each worker, with those of its fallback workers, kept for later runs."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import replace
from typing import Any, TypeAlias

from wfdsl.interpreter.pipeline import CallPipeline
from wfdsl.interpreter.worker_profile import profile_of
from wfdsl.protocols import Ask, WorkerPool


class Pipelines:
    """The call pipelines of a pool's workers, by index.

    Each is built when it is first used, and kept for later runs in the same event loop as long as the pool gives the
    same workers. A pool may say so by its `generation`; the workers of others are compared one by one.
    """

    __slots__ = ("_checked", "_generation", "_kept", "pool")

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool
        self._kept = _kept_for(pool)
        self._generation: object | None = getattr(pool, "generation", None)
        self._checked: dict[int, CallPipeline] = {}

    def __getitem__(self, worker: int) -> CallPipeline:
        pipeline = self._checked.get(worker)
        if pipeline is None:
            pipeline = self._checked[worker] = self._kept_one(worker) or self._new(worker)
        return pipeline

    def name_of(self, worker: int) -> str:
        """The name of a worker, which need not be built for it."""
        pipeline = self._checked.get(worker)
        return str(self.pool.entry(worker).name) if pipeline is None else pipeline.profile.name

    def _kept_one(self, worker: int) -> CallPipeline | None:
        if worker not in self._kept:
            return None
        generation, workers, pipeline = self._kept[worker]
        if generation is not None and generation is self._generation:
            return pipeline
        for each, known in zip((worker, *pipeline.profile.fallbacks), workers, strict=True):
            if _inner(self.pool.worker(each)) is not known:
                return None
        return pipeline

    def _new(self, worker: int) -> CallPipeline:
        pipeline = _pipeline_of(self.pool, worker)
        chain = (worker, *pipeline.profile.fallbacks)
        self._kept[worker] = (self._generation, tuple(_inner(self.pool.worker(each)) for each in chain), pipeline)
        return pipeline


def _pipeline_of(pool: WorkerPool, index: int) -> CallPipeline:
    profile, worker = profile_of(pool, index), pool.worker(index)
    if getattr(worker, "conductor", False):
        profile = replace(profile, conductor=True)
    if profile.conductor:
        return CallPipeline(worker, profile)
    others = (
        CallPipeline(pool.worker(other), profile_of(pool, other), last=other == profile.fallbacks[-1])
        for other in profile.fallbacks
    )
    return CallPipeline(worker, profile, tuple(others))


_Kept: TypeAlias = dict[int, tuple[object | None, tuple[Ask, ...], CallPipeline]]
_KEPT: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.WeakKeyDictionary[WorkerPool, _Kept]] = (
    weakref.WeakKeyDictionary()
)


def _kept_for(pool: WorkerPool) -> _Kept:
    """What earlier runs on a pool in this event loop have built; nothing for a pool that cannot be looked up."""
    loop = asyncio.get_running_loop()
    kept = _KEPT.get(loop)
    if kept is None:
        kept = _KEPT[loop] = weakref.WeakKeyDictionary()
    try:
        return kept.setdefault(pool, {})
    except TypeError:
        return {}


def _inner(worker: Any) -> Ask:
    """The worker inside what its pool has put around it."""
    inner: Ask = getattr(worker, "worker", worker)
    return inner
