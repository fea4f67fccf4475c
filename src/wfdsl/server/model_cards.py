"""Models as `/v1/models` lists them: context, prices, and the name with a date beside the name that moves on.

The date is that of the last change to the files that a model is made of. A client that asks for the name with a date is
refused once the model has changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.policy import WorkflowPolicy
from wfdsl.server.api_errors import ApiError
from wfdsl.server.served_model import DATED, ServedModel
from wfdsl.workers.entry import WorkerEntry


class ModelCards:
    """The models of a server, by all their names."""

    def __init__(self, models: Mapping[str, ServedModel], files: Iterable[str | None] = ()) -> None:
        """`files` are those that all models are made of, such as the configuration file."""
        common = [Path(file) for file in files if file is not None]
        now = int(time.time())
        self._models = dict(models)
        self._created = {name: _changed([*common, *_files(model)], now) for name, model in models.items()}
        self._dated = {f"{name}-{_day(self._created[name])}": model for name, model in models.items()}

    @property
    def models(self) -> list[ServedModel]:
        """All models."""
        return list(self._models.values())

    @property
    def names(self) -> list[str]:
        """All names, those without a date first."""
        return [*self._models, *self._dated]

    def model(self, name: str) -> ServedModel:
        """A model by one of its names.

        Raises:
            ApiError: there is none.
        """
        found = self._models.get(name) or self._dated.get(name)
        if found is not None:
            return found
        dated = DATED.fullmatch(name)
        if dated is not None and dated[1] in self._models:
            now = next(each for each, model in self._dated.items() if model.id == dated[1])
            what = f"the model {dated[1]!r} has changed: ask for {now!r}, or for {dated[1]!r}"
        else:
            what = f"there is no model {name!r:.80} (models: {', '.join(self._models)})"
        raise ApiError(404, what, code="model_not_found", param="model")

    def all(self, allowed: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        """The models that a key may name under both names; empty: all of them."""
        return [self.card(name) for name in self.names if not allowed or self.model(name).id in allowed]

    def card(self, name: str) -> dict[str, Any]:
        """A model as `/v1/models` lists it, under the name that is asked for.

        Raises:
            ApiError: there is none.
        """
        model = self.model(name)
        asked = _asked_workers(model)
        context = model.experiment.serve.context_window or _least_context(asked)
        return {
            "id": name,
            "object": "model",
            "created": self._created[model.id],
            "owned_by": "wfdsl",
            "description": model.description,
            **({} if context is None else {"context_window": context, "max_model_len": context}),
            "pricing": {"unit": "US dollars per million tokens", "workers": {e.name: _prices(e) for e in asked}},
        }


def _asked_workers(model: ServedModel) -> list[WorkerEntry]:
    """The workers that a model may ask, the Conductor's own model first."""
    if isinstance(model.policy, WorkflowPolicy):
        used = dict.fromkeys(step.worker for step in model.policy.workflow)
        return [model.pool.entry(index) for index in used if isinstance(index, int)]
    own = [model.policy.entry] if isinstance(model.policy, Conductor) else []
    return [*own, *(entry for entry in model.pool if entry not in own)]


def _least_context(entries: Iterable[WorkerEntry]) -> int | None:
    """The least that a worker is known to take, in tokens of prompt and reply."""
    known = [entry.options.get("context") for entry in entries]
    return min((tokens for tokens in known if isinstance(tokens, int)), default=None)


def _prices(entry: WorkerEntry) -> dict[str, float] | None:
    """None: not known."""
    return None if entry.prices is None else {"input": entry.prices.input, "output": entry.prices.output}


def _files(model: ServedModel) -> list[Path]:
    return [Path(model.origin[what]) for what in ("file", "pool", "solve") if what in model.origin]


def _changed(files: Iterable[Path], now: int) -> int:
    """When the newest of these files changed, in seconds since 1970; names that are not files do not count."""
    return max((int(file.stat().st_mtime) for file in files if file.is_file()), default=now)


def _day(seconds: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
