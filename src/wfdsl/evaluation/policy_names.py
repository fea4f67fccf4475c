"""Policies by name: what `wfdsl eval --policy NAME` evaluates.

workers                 each worker of the pool alone
baselines               those, and every baseline
worker:NAME             one worker alone, by name or index
NAME                    a baseline (`wfdsl.evaluation.baselines`)
NAME:KEY=VALUE,...      a baseline with parameters; `KEY=each` of a worker means one policy for each worker, and
                        `n=1/2/4` one policy for each number
baselines:KEY=VALUE     all baselines, those that have the parameter with this value
CONDUCTOR@EFFORT        a Conductor at an effort, such as gym/seven@low; with @each, one policy for each effort
NAME:KEY=VALUE,...      a Conductor, or a `.wf` file, with parameters of `CONDUCTORS`; `max_rounds=0/1/2` means one
                        policy for each value
anything else           what `wfdsl.conductor.named` knows: a `.wf` file, or a Conductor by its model
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import EFFORTS, ConductorConfig
from wfdsl.conductor.examples import load_examples
from wfdsl.conductor.named import named_policy
from wfdsl.conductor.policy import Policy, WorkflowPolicy, ablated
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.catalogue import BASELINES
from wfdsl.evaluation.baselines.parameters import Parameter, name_and_settings, values_of, worker_called
from wfdsl.evaluation.baselines.single_worker import SOLVE, alone, own_tasks, workers_of
from wfdsl.language.diagnostics import Suggestions
from wfdsl.own_code import file_of
from wfdsl.workers.pool import Pool
from wfdsl.workers.registry import providers

WORKER: Final = "worker:"
WORKERS: Final = "workers"
GROUP: Final = "baselines"
EACH: Final = "each"
CONDUCTORS: Final = {
    parameter.name: parameter
    for parameter in (
        Parameter("max_rounds", "seed", None, "the most rounds after round 0"),
        Parameter("worker", "worker", 0, "every step asks this worker, whatever was written"),
        Parameter("instruction", "choice", None, "every worker is told the same, whatever was written", ("none",)),
        Parameter("examples", "file", None, "the few-shot examples: ood, id, mixed, none or a file"),
        Parameter("pool", "count", None, "a question offers this many workers, drawn at random"),
    )
}
"""What may be set of a Conductor; `worker` and `instruction` also of a `.wf` file."""
_SETTING: Final = re.compile(r"[a-z_]+=")
_FIELDS: Final = {"max_rounds": "max_rounds", "pool": "pick"}
_EXAMPLES: Final = {"ood": "out-of-distribution", "id": "in-distribution"}


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
    called, settings = _settings_of(name)
    model, effort = _effort_of(called)
    called_each = tuple(f"{model}@{each}" for each in EFFORTS) if effort == EACH else (called,)
    values = [[(key, each) for each in _listed(CONDUCTORS.get(key), value, pool)] for key, value in settings.items()]
    return tuple(_named(each, dict(chosen)) for each in called_each for chosen in product(*values))


def label_of(name: str, pool: Pool) -> str:
    """The name under which results list a policy: of a file its own without folders, of a worker the worker's."""
    if name.startswith(WORKER):
        return f"{WORKER}{pool.entry(_ordinal(name, pool)).name}"
    called, settings = _settings_of(name)
    return _named(Path(called).stem, settings) if called.endswith((".wf", ".toml")) else name


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
    called, settings = _settings_of(name)
    model, effort = _effort_of(called)
    known = config or ConductorConfig()
    try:
        values = _values(settings, pool, name)
        limits: dict[str, Any] = {_FIELDS[key]: values[key] for key in _FIELDS.keys() & values.keys()}
        policy = named_policy(replace(known, model=model, effort=effort or known.effort, **limits), pool, params=params)
    except UsageError as error:
        raise _unknown(name, head, error) from error
    return _ablated(policy, values, name)


def _values(settings: Mapping[str, str], pool: Pool, name: str) -> dict[str, Any]:
    """The values of parameters of a Conductor.

    Raises:
        UsageError: a setting is for no parameter, or cannot be read.
    """
    values = values_of(CONDUCTORS.values(), settings, pool, name)
    if {"worker", "pool"} <= settings.keys():
        raise UsageError(f"--policy {name}: with pool, a question may not offer the worker; leave one of them out")
    return {key: values[key] for key in settings}


def _ablated(policy: Policy, values: Mapping[str, Any], name: str) -> Policy:
    """The policy without what it may not decide, and with the examples that are asked for.

    Raises:
        UsageError: the workflow is fixed, and the setting is for Conductors.
    """
    instruction, worker = SOLVE if "instruction" in values else "", values.get("worker")
    if isinstance(policy, WorkflowPolicy):
        for key in values.keys() - {"worker", "instruction"}:
            raise UsageError(f"--policy {name}: {key} is for Conductors, and this workflow is fixed; leave it out")
        return WorkflowPolicy(ablated(policy.workflow, instruction=instruction, worker=worker))
    if isinstance(policy, Conductor) and values.keys() & {"worker", "instruction", "examples"}:
        prompt = policy.settings.prompt
        if "examples" in values:
            examples = _EXAMPLES.get(values["examples"], values["examples"])
            prompt = replace(prompt, examples=load_examples(examples))
        return policy.changed(instruction=instruction, worker=worker, prompt=prompt)
    return policy


def _settings_of(name: str) -> tuple[str, dict[str, str]]:
    """The name of a Conductor or file, which may hold colons itself, and its settings."""
    called, _, last = name.rpartition(":")
    return (called, name_and_settings(f"_:{last}")[1]) if called and _SETTING.match(last) else (name, {})


def _named(name: str, settings: Mapping[str, str]) -> str:
    return f"{name}:{','.join(f'{key}={value}' for key, value in settings.items())}" if settings else name


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
    return _named(name, {key: value for key, value in settings.items() if key in own})


def _for_each(name: str, pool: Pool) -> tuple[str, ...]:
    """The name for every worker instead of `each`, and for every number of several."""
    head, settings = name_and_settings(name)
    parameters = {parameter.name: parameter for parameter in BASELINES[head].parameters}
    values = [[(key, each) for each in _listed(parameters.get(key), value, pool)] for key, value in settings.items()]
    return tuple(_named(head, dict(chosen)) for chosen in product(*values))


def _listed(parameter: Parameter | None, text: str, pool: Pool) -> Iterable[str]:
    """The values that a text lists."""
    if parameter is None or parameter.kind == "tasks" or text.endswith(".toml"):
        return [text]
    if parameter.kind == "worker" and (text == EACH or pool.find(text) is not None):
        return [pool.entry(index).name for index in workers_of(pool)] if text == EACH else [text]
    return text.split("/")


def _ordinal(name: str, pool: Pool) -> int:
    return worker_called(name.removeprefix(WORKER), pool, name)
