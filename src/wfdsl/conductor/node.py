"""Conductor nodes from pool files: a worker whose provider is `conductor`.

The entry's own fields describe the model; `options` say which provider it has and how it conducts:
`provider`, `prompt`, `examples`, `max_rounds`, `reasks`, `max_steps`, `profile`, `call_factor`, and `grammar`: true, or
a table of its bounds. What else stands there goes to the model's provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wfdsl.conductor.checkpoint import asked
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.settings import Grammar
from wfdsl.errors import UsageError
from wfdsl.workers.registry import OpenWorkers, build_worker

if TYPE_CHECKING:
    from wfdsl.protocols import Worker
    from wfdsl.workers.entry import WorkerEntry

_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "max_rounds": (int,),
    "reasks": (int,),
    "max_steps": (int,),
    "profile": (str,),
    "prompt": (str,),
    "examples": (str,),
    "call_factor": (int, float),
}
_BOUNDS: Final = ("max_prose", "max_subtask", "max_tokens")
_OWN: Final = {"provider", "grammar", *_KINDS}


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> Conductor:
    """The Conductor of an entry; its model's client is closed with the open workers.

    Raises:
        UsageError: an option cannot be used, or the model cannot be built.
    """
    options = entry.options
    model = entry.model_copy(
        update={
            "provider": _provider(entry),
            "options": {name: value for name, value in options.items() if name not in _OWN},
        }
    )
    worker = open_workers.keep(build_worker(model, open_workers))
    try:
        return _conductor(worker, model, _settings(entry))
    except UsageError as error:
        raise UsageError(f'worker "{entry.name}": {error}') from error


def _conductor(worker: Worker, model: WorkerEntry, settings: dict[str, Any]) -> Conductor:
    said = {name: settings.pop(name, None) for name in ("prompt", "examples", "max_steps")}
    prompt, max_steps, rounds = asked(model, **said)
    settings.setdefault("max_rounds", rounds)
    return Conductor(worker, entry=model, prompt=prompt, max_steps=max_steps, **settings)


def _provider(entry: WorkerEntry) -> str:
    provider = entry.options.get("provider")
    if not isinstance(provider, str) or provider == "conductor":
        raise UsageError(
            f'worker "{entry.name}": a conductor needs the provider of its model: options = {{ provider = "openai" }}'
        )
    return provider


def _settings(entry: WorkerEntry) -> dict[str, Any]:
    found = {name: entry.options[name] for name in _KINDS if name in entry.options}
    for name, value in found.items():
        if not isinstance(value, _KINDS[name]) or isinstance(value, bool):
            raise UsageError(f"the option {name} cannot be {value!r}")
    return {**found, "grammar": _grammar(entry.options.get("grammar", False))}


def _grammar(wanted: Any) -> Grammar | None:
    if isinstance(wanted, bool):
        return Grammar() if wanted else None
    if not isinstance(wanted, dict) or not all(
        name in _BOUNDS and isinstance(value, int) and not isinstance(value, bool) for name, value in wanted.items()
    ):
        raise UsageError(f"the option grammar is true, or a table of {', '.join(_BOUNDS)}")
    return Grammar(**wanted)
