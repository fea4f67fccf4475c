"""Policies by name: what commands, files, pools and evaluations call a Conductor or a fixed workflow.

NAME              a worker of the pool
local             the small model on this machine, with a shorter prompt and a grammar
PROVIDER:MODEL    a model of a provider; with @URL, on this server
FOLDER            a checkpoint, prompted as it was trained; `local:FOLDER` and `transformers:FOLDER` choose what runs it
gym/seven         a checkpoint that comes with a package, by the name under which it is registered
FILE.toml         a pool file with one worker
FILE.wf           a fixed workflow
FILE.py:NAME      a policy of your own
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from typing import Any, Final

from wfdsl.api import load
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import EFFORTS, LOCAL, ConductorConfig
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.interpreter.config import RunRequest
from wfdsl.own_code import file_of, load_object
from wfdsl.settings import build_model, from_table, not_default, options_of
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.list_prices import FREE
from wfdsl.workers.model_folder import CONFIGURATIONS, gguf_in, has_weights, is_shipped, runtime_of
from wfdsl.workers.pool import Pool, entry_of_model
from wfdsl.workers.registry import OpenWorkers, build_worker, providers

MAX_TOKENS: Final = 1024
"""Tokens of a checkpoint's completion. Source: arXiv 2512.04388, section 4. Models of providers may think first."""
PLUGIN_GROUP: Final = "wfdsl.conductors"
"""Entry points of Conductors that come with a plug-in: the object is called with the name asked for, and returns the
folder of a checkpoint. The entry point `gym` answers for every name that begins with `gym/`. Its method `names()`, if
it has one, lists the names it knows."""
_LOCAL_DEFAULTS: Final[Mapping[str, Any]] = {
    "prompt": "tiny",
    "max_steps": 3,
    "max_prose": 0,
    "max_subtask": 80,  # characters: without a limit the smallest models repeat themselves until max_tokens
}
_MODEL_FIELDS: Final = ("base_url", "api_key_env", "max_tokens", "temperature")
"""Options of a Conductor that are fields of its model's entry."""
_OF_NODES: Final = (
    frozenset(each.name for each in options_of(ConductorConfig))
    - {"model", *_MODEL_FIELDS}  # the entry's own fields say these
    - {"default", "without", "pick", "shuffle", "seed"}  # a node is offered the pool of its run
)


def conductor_name(config: ConductorConfig, pool: Pool | None) -> str:
    """Who conducts: the model that the configuration names, else the pool's Conductor, else its first worker.

    Without a pool, and where the first worker is the small model on this machine, that is `local`.

    Raises:
        UsageError: the pool has only Conductors.
    """
    named = config.model or (LOCAL if pool is None else pool.settings.conductor)
    if named is not None or pool is None:
        return named or LOCAL
    entry = next((each for each in pool if each.provider != "conductor"), None)
    if entry is None:
        raise UsageError(f"the pool {pool.name!r} has only Conductors: name the model that conducts (--conductor)")
    return LOCAL if entry.provider == "local" and is_shipped(entry) else entry.name


def named_policy(config: ConductorConfig, pool: Pool, *, params: Mapping[str, str] | None = None) -> Policy:
    """The policy that `conductor_name` gives: the workflow of a `.wf` file with its parameters, one of your own, or a
    Conductor.

    Raises:
        UsageError: the name is not known, or an option cannot be used.
        WorkflowError: the file, or the default workflow, is not a valid workflow.
    """
    name = conductor_name(config, pool)
    if name.endswith(".wf"):
        return WorkflowPolicy(load(name, pool=pool, params=params))
    return named_conductor(config, pool) if file_of(name) is None else own_policy(name)


def own_policy(name: str) -> Policy:
    """The policy that `file.py:name` names: an object with a method `solve`, or a class whose objects have one.

    Raises:
        UsageError: there is no such file or name, or it is something else.
    """
    found = load_object(name)
    try:
        found = found() if isinstance(found, type) else found
    except TypeError as error:
        raise UsageError(f"{name}: cannot be made without arguments: {error}") from error
    takes = signature(found.solve).parameters.values() if callable(getattr(found, "solve", None)) else ()
    if not any(each.kind is each.VAR_KEYWORD for each in takes):
        raise UsageError(f"{name}: must be a policy, with `async def solve(question, pool, **options)`")
    return found  # type: ignore[no-any-return]


def named_conductor(config: ConductorConfig, pool: Pool | None = None) -> Conductor:
    """The Conductor that a configuration describes for a pool, by `conductor_name`.

    Raises:
        UsageError: the name is not known, or an option cannot be used.
        WorkflowError: the default workflow is not valid.
    """
    entry, config = _named_entry(config, pool)
    default = None if config.default is None else load(config.default, pool=pool)
    return Conductor(entry, config=config, default=default)


def conductor_of_run(request: RunRequest, config: ConductorConfig, pool: Pool) -> Conductor:
    """The Conductor of a run, as `RunRequest.origin` names it; options that are not the defaults replace the run's.

    Raises:
        UsageError, WorkflowError: as `named_conductor` does.
    """
    origin = request.origin
    kept = from_table(ConductorConfig, json.loads(origin.get("conductor", "{}")), "the Conductor of the run")
    found = replace(kept, **{"model": origin.get("solve"), **not_default(config)})
    effort = next((each for each in EFFORTS if each == origin.get("effort")), None)
    return named_conductor(found, pool).with_effort(effort)


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> Conductor:
    """The Conductor of a pool's worker whose provider is `conductor`; its model's client is closed with the workers.

    The entry's fields describe the model. Its `options` say which provider the model has, and hold options of
    `ConductorConfig`; others go to the model's provider.

    Raises:
        UsageError: an option cannot be used, or the model cannot be built.
    """
    provider = entry.options.get("provider")
    if not isinstance(provider, str) or provider == "conductor":
        raise UsageError(
            f'worker "{entry.name}": a conductor needs the provider of its model: options = {{ provider = "openai" }}'
        )
    own = {name: value for name, value in entry.options.items() if name in _OF_NODES}
    other = {name: value for name, value in entry.options.items() if name not in own and name != "provider"}
    model = entry.model_copy(update={"provider": provider, "options": other})
    worker = open_workers.keep(build_worker(model, open_workers))
    try:
        return Conductor(worker, entry=model, config=from_table(ConductorConfig, own, "options"))
    except UsageError as error:
        raise UsageError(f'worker "{entry.name}": {error}') from error


def _named_entry(config: ConductorConfig, pool: Pool | None) -> tuple[WorkerEntry, ConductorConfig]:
    """The entry of the model that conducts, and the configuration with that model's defaults filled in."""
    name = conductor_name(config, pool)
    given = {field: value for field in _MODEL_FIELDS if (value := getattr(config, field)) is not None}
    index = None if pool is None else pool.find(name)
    if pool is None or index is None:
        return model_entry(name, **given), _with_local_defaults(config) if name == LOCAL else config
    if misplaced := [each for each in ("base_url", "api_key_env") if each in given]:
        raise UsageError(
            f"conductor.{misplaced[0]} is for a model that is not in the pool, and {name!r} is a worker of it: "
            "name the server with the worker, as in --pool openai:MODEL@URL or in a pool file"
        )
    entry = pool.entry(index)
    if entry.provider == "local" and is_shipped(entry):
        return model_entry(LOCAL, **given), _with_local_defaults(config)
    if entry.provider in ("conductor", "function"):
        raise UsageError(f"the worker {entry.name!r} cannot conduct: its provider is {entry.provider!r}")
    # Without what makes it good at its own steps.
    own = {"system_prompt": "", "stop": (), "fallback": None, "max_tokens": max(entry.max_tokens, MAX_TOKENS)}
    return _changed(entry, {**own, **given}), config


def _with_local_defaults(config: ConductorConfig) -> ConductorConfig:
    """The configuration with the defaults of the small local model filled in."""
    grammar = "on" if config.grammar == "auto" else config.grammar
    missing = {name: value for name, value in _LOCAL_DEFAULTS.items() if getattr(config, name) is None}
    return replace(config, grammar=grammar, **missing)


def local_entry() -> WorkerEntry:
    """The small model that runs on this machine."""
    return WorkerEntry(
        name="conductor",
        provider="local",
        model="SmolLM2-135M-Instruct",
        seed=7,
        temperature=0.7,
        extra_body={"repeat_penalty": 1.2},  # without it a model this small fills every text to its limit
        max_tokens=MAX_TOKENS,
        timeout_s=300,
        prices=FREE,
    )


def model_entry(name: str, **settings: Any) -> WorkerEntry:
    """The entry of a model: `local`, `PROVIDER:MODEL`, a checkpoint's folder or a name for one, or a pool file.

    `settings` are fields of an entry, such as `base_url`.

    Raises:
        UsageError: the name or a setting cannot be used.
    """
    if name == LOCAL:
        return _changed(local_entry(), settings)
    if name.endswith(".toml") or Path(name).is_file():
        entry, *others = Pool.load(name)
        if others:
            raise UsageError(f"{name} has {len(others) + 1} workers: the file of a Conductor's model has one")
        if entry.provider == "conductor":
            raise UsageError(f'{name}: the file of a Conductor\'s model names its provider, not "conductor"')
        return _changed(entry, settings)
    name = _with_provider(name)
    provider, _, model = name.partition(":")
    own: dict[str, Any] = {"name": "conductor"}
    if provider in ("local", "transformers"):
        # Any text that is not a folder may be a file or a Hugging Face model id.
        folder, takes_gguf = Path(model), provider == "local"
        if folder.is_dir() and not has_weights(folder) and (not takes_gguf or gguf_in(folder) is None):
            lacking = f"no {CONFIGURATIONS[0]}{' and no GGUF file' if takes_gguf else ''}"
            raise UsageError(f"{folder} is not a checkpoint: it has {lacking}; name the folder that holds one")
        own["max_tokens"] = MAX_TOKENS
    return _changed(entry_of_model(name, **own), settings)


def _with_provider(name: str) -> str:
    """`PROVIDER:MODEL`, also for a checkpoint's folder or a plug-in's name."""
    folder = name if name and Path(name).is_dir() else None
    head, slash, _ = name.partition("/")
    plugins = entry_points(group=PLUGIN_GROUP, name=head) if folder is None and slash else ()
    folder = next((load_object(plugin.value, installed=True)(name) for plugin in plugins), folder)
    if folder is not None:
        return f"{runtime_of(Path(folder))}:{folder}"
    provider, _, model = name.partition(":")
    if not model or provider not in providers() or provider in ("conductor", "function", "scripted"):
        known = ", ".join(f"{each}:MODEL" for each in ("openai", "anthropic", "google", "transformers"))
        shipped = "".join(f"{each}, " for each in conductor_names())
        raise UsageError(
            f"no Conductor {name!r}: write {LOCAL}, {known}, {shipped}a checkpoint's folder, a pool file, "
            "or the name of a worker of the pool"
        )
    return name


def conductor_names() -> tuple[str, ...]:
    """The names of Conductors that come with plug-ins."""
    plugins = sorted(entry_points(group=PLUGIN_GROUP), key=lambda plugin: plugin.name)
    return tuple(name for plugin in plugins for name in load_object(plugin.value, installed=True).names())


def _changed(entry: WorkerEntry, given: Mapping[str, Any]) -> WorkerEntry:
    return build_model(WorkerEntry, {**dict(entry), **given}, "the Conductor's model")
