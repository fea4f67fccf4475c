"""Conductor nodes from pool files: a worker whose provider is `conductor`.

The entry's own fields describe the model; `options` say which provider it has and how it conducts:
`provider`, `prompt`, `examples`, `max_rounds`, `reasks`, `max_steps`, `profile`, `call_factor`. What else stands there
goes to the model's provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.workers.registry import build_worker

if TYPE_CHECKING:
    from wfdsl.pool import WorkerEntry
    from wfdsl.workers.bench import Bench

_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "max_rounds": (int,),
    "reasks": (int,),
    "max_steps": (int,),
    "profile": (str,),
    "call_factor": (int, float),
}
_OWN: Final = {"provider", "prompt", "examples", *_KINDS}


def build(entry: WorkerEntry, bench: Bench) -> Conductor:
    """The Conductor of an entry; its model's client belongs to the bench.

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
    worker = bench.keep(build_worker(model, bench))
    prompt = Prompt.load(options.get("prompt", "paper"), examples=options.get("examples"))
    return Conductor(worker, entry=model, prompt=prompt, **_settings(entry))


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
            raise UsageError(f'worker "{entry.name}": the option {name} cannot be {value!r}')
    if found.get("profile", "lenient") not in ("lenient", "strict"):
        raise UsageError(f'worker "{entry.name}": the option profile is "lenient" or "strict"')
    return found
