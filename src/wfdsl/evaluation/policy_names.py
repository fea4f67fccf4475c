"""Policies by name: what `wfdsl eval --policy NAME` evaluates.

workers                 each worker of the pool alone
baselines               those, and every baseline
worker:NAME             one worker alone, by name or index
NAME                    a baseline (`wfdsl.evaluation.baselines`)
NAME:KEY=VALUE,...      a baseline with parameters; `KEY=each` of a worker means one policy for each worker, and
                        `n=1/2/4` one policy for each number
baselines:KEY=VALUE     all baselines, those that have the parameter with this value
CONDUCTOR@EFFORT        a Conductor at an effort, such as gym/seven@low; with @each, one policy for each effort
anything else           what `wfdsl.conductor.named` knows: a `.wf` file, or a Conductor by its model
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.effort import EFFORTS
from wfdsl.conductor.named import named_policy
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.catalogue import BASELINES
from wfdsl.evaluation.baselines.parameters import Parameter, name_and_settings, worker_called
from wfdsl.evaluation.baselines.single_worker import alone, own_tasks, workers_of
from wfdsl.language.diagnostics import Suggestions
from wfdsl.own_code import file_of
from wfdsl.workers.pool import Pool
from wfdsl.workers.registry import providers

WORKER: Final = "worker:"
WORKERS: Final = "workers"
GROUP: Final = "baselines"
EACH: Final = "each"


def policy_names() -> tuple[str, ...]:
    """Every name of a policy, or of a group of policies, on any pool."""
    return (WORKERS, GROUP, *BASELINES)


def policies_of(
    names: Sequence[str],
    pool: Pool,
    *,
    config: ConductorConfig | None = None,
    params: Mapping[str, str] | None = None,
) -> dict[str, Policy]:
    """The policies of names, groups expanded, by the names under which results list them.

    Raises:
        UsageError: a name is not known, or two different policies would be listed under the same name.
        WorkflowError: a file holds no valid workflow.
    """
    found: dict[str, Policy] = {}
    for name in (each for given in names for each in expanded(given, pool)):
        policy = policy_of(name, pool, config=config, params=params)
        label = label_of(name, pool)
        if found.setdefault(label, policy) != policy:
            raise UsageError(f"--policy {name}: there is another policy called {label!r}; leave one out, or rename it")
    return found


def expanded(name: str, pool: Pool) -> tuple[str, ...]:
    """The names in a group; any other name is returned as it is.

    Raises:
        UsageError: a parameter of a group is none of any baseline.
    """
    if name == WORKERS:
        return tuple(f"{WORKER}{entry.name}" for entry in pool)
    head = name.partition(":")[0]
    if head == GROUP:
        return (*expanded(WORKERS, pool), *_all_with(name_and_settings(name)[1], name, pool))
    if head in BASELINES:
        return _for_each(name, pool)
    model, effort = _effort_of(name)
    return tuple(f"{model}@{each}" for each in EFFORTS) if effort == EACH else (name,)


def label_of(name: str, pool: Pool) -> str:
    """The name under which results list a policy: of a file its own without folders, of a worker the worker's."""
    if name.startswith(WORKER):
        return f"{WORKER}{pool.entry(_ordinal(name, pool)).name}"
    return Path(name).stem if name.endswith((".wf", ".toml")) else name


def policy_of(
    name: str, pool: Pool, *, config: ConductorConfig | None = None, params: Mapping[str, str] | None = None
) -> Policy:
    """The policy of one name; `config` says how Conductors conduct, `params` what parameters `.wf` files have.

    Raises:
        UsageError: the name is not known, or a setting cannot be used.
        WorkflowError: the file holds no valid workflow.
    """
    if name.startswith(WORKER):
        return WorkflowPolicy(alone(_ordinal(name, pool)))
    head = name.partition(":")[0]
    if head in (WORKERS, GROUP):
        raise UsageError(f"--policy {name}: it names several policies; give the name of one")
    if head in BASELINES:
        return BASELINES[head].build(pool, name_and_settings(name)[1], where=name)
    model, effort = _effort_of(name)
    known = config or ConductorConfig()
    try:
        return named_policy(replace(known, model=model, effort=effort or known.effort), pool, params=params)
    except UsageError as error:
        raise _unknown(name, head, error) from error


def _effort_of(name: str) -> tuple[str, Any]:
    """A Conductor's name and its effort; None if it has none. What stands after an @ may also be a server's address."""
    model, _, effort = name.rpartition("@")
    return (model, effort) if model and effort in {*EFFORTS, EACH} else (name, None)


def _unknown(name: str, head: str, error: UsageError) -> UsageError:
    """The error with what may have been meant, where the name could be one of ours."""
    if name.endswith((".wf", ".toml")) or "/" in name or head in providers() or file_of(name) is not None:
        return error
    near = Suggestions().closest(head, policy_names())
    hint = f"did you mean `{near}`?" if near else f"baselines are {', '.join(BASELINES)}"
    return UsageError(f"--policy {name}: no policy has this name: {hint} ({error})")


def _all_with(settings: Mapping[str, str], name: str, pool: Pool) -> list[str]:
    """Every baseline, with those settings that it has a parameter for."""
    known = {parameter.name for each in BASELINES.values() for parameter in each.parameters}
    for key in settings:
        if key not in known:
            hint = Suggestions().hint(key, known)
            raise UsageError(f"--policy {name}: no baseline has a parameter {key!r}: {hint or 'see the table'}")
    if "validation" not in settings and own_tasks(pool) is None:
        fitted = [each.name for each in BASELINES.values() if each.is_fitted]
        raise UsageError(
            f"--policy {name}: {', '.join(fitted)} are fitted on validation tasks, and pool {pool.name!r} has "
            f"none of its own; write {GROUP}:validation=FILE, or name the baselines that you want"
        )
    return [name for each in BASELINES.values() for name in _for_each(_with(each.name, settings), pool)]


def _with(name: str, settings: Mapping[str, str]) -> str:
    own = {parameter.name for parameter in BASELINES[name].parameters}
    known = ",".join(f"{key}={value}" for key, value in settings.items() if key in own)
    return f"{name}:{known}" if known else name


def _for_each(name: str, pool: Pool) -> tuple[str, ...]:
    """The name for every worker instead of `each`, and for every number of several."""
    head, settings = name_and_settings(name)
    for parameter in BASELINES[head].parameters:
        values = _several(parameter, settings.get(parameter.name, ""), pool)
        if values:
            names = [_with(head, {**settings, parameter.name: value}) for value in values]
            return tuple(name for each in names for name in _for_each(each, pool))
    return (name,)


def _several(parameter: Parameter, text: str, pool: Pool) -> list[str]:
    """The values that a text lists; none if it is a single value."""
    if parameter.kind == "worker" and text == EACH:
        return [pool.entry(index).name for index in workers_of(pool)]
    return text.split("/") if parameter.kind in {"count", "share", "seed"} and "/" in text else []


def _ordinal(name: str, pool: Pool) -> int:
    return worker_called(name.removeprefix(WORKER), pool, name)
