"""Policies by name: what `wfdsl eval --policy NAME` evaluates.

workers                 each worker of the pool alone
baselines               those, and every baseline
worker:NAME             one worker alone, by name or index
NAME                    a baseline of the table `BASELINES`
NAME:KEY=VALUE,...      a baseline with parameters; `KEY=each` of a worker means one policy for each worker, and
                        `n=1/2/4` one policy for each number
baselines:KEY=VALUE     all baselines, those that have the parameter with this value
CONDUCTOR@EFFORT        a Conductor at an effort, such as gym/seven@low; with @each, one policy for each effort
NAME:KEY=VALUE,...      a Conductor, or a `.wf` file, with the parameters of `ConductorParameters`;
                        `max_rounds=0/1/2` means one policy for each value
anything else           what `wfdsl.conductor.named` knows: a `.wf` file, or a Conductor by its model
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import EFFORTS, ConductorConfig
from wfdsl.conductor.examples import load_examples
from wfdsl.conductor.named import named_policy
from wfdsl.conductor.policy import Policy, WorkflowPolicy, ablated
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines import baseline, best_fixed, routers
from wfdsl.evaluation.baselines.baseline import SOLVE, Baseline, alone, is_worker, worker_option, workers_of
from wfdsl.own_code import file_of
from wfdsl.settings import Option, Table, did_you_mean, option, options_of, require_keys, to_table
from wfdsl.workers.pool import Pool
from wfdsl.workers.registry import providers

BASELINES: Final[Mapping[str, type[Baseline]]] = {
    each.name: each
    for module in (baseline, routers, best_fixed)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Baseline) and "name" in vars(each)
}
"""The table of baselines, by name. An untrained Conductor needs no row: its model's name is a policy already."""
WORKER: Final = "worker:"
WORKERS: Final = "workers"
GROUP: Final = "baselines"
EACH: Final = "each"
_FILES: Final = (".wf", ".toml")
_SETTING: Final = re.compile(r"[a-z_]+=")
_EXAMPLES: Final = {"ood": "out-of-distribution", "id": "in-distribution"}
_T = TypeVar("_T", bound=Table)
_Parts: TypeAlias = tuple[str, dict[str, str]]
"""A name, and what is set after it."""


@dataclass(frozen=True, slots=True)
class ConductorParameters(Table):
    """What may be set of a Conductor; `worker` and `instruction` also of a `.wf` file."""

    max_rounds: int | None = option(None, "the most rounds after round 0", ge=0)
    worker: int | None = worker_option(None, "every step asks this worker, whatever was written")
    instruction: Literal["none"] | None = option(None, "every worker is told the same, whatever was written")
    examples: str | None = option(None, "the few-shot examples: ood, id, mixed, none or a file")
    pool: int | None = option(
        None, "a question offers this many workers, drawn at random, under shuffled numbers", ge=1
    )


def policies_of(
    names: Sequence[str],
    pool: Pool,
    *,
    config: ConductorConfig | None = None,
    params: Mapping[str, str] | None = None,
) -> dict[str, Policy]:
    """The policies of names, groups expanded, by the names under which results list them: of a file without folders.

    `config` says how Conductors conduct, `params` what parameters `.wf` files have.

    Raises:
        UsageError: a name is not known, a setting cannot be used, or two policies would be listed under the same name.
        WorkflowError: a file holds no valid workflow.
    """
    found: dict[str, Policy] = {}
    for name in names:
        try:
            for head, settings in _expanded(*_parts(name), pool):
                policy = _policy(head, settings, pool, config or ConductorConfig(), params)
                is_file = head.endswith(_FILES) and not head.startswith(WORKER)
                label = _named(Path(head).stem if is_file else head, settings)
                if found.setdefault(label, policy) != policy:
                    raise UsageError(f"there is another policy called {label!r}; leave one out, or rename it")
        except UsageError as error:
            raise UsageError(f"--policy {name}: {error}") from error
    return found


def _expanded(head: str, settings: dict[str, str], pool: Pool) -> list[_Parts]:
    """The names in a group, or of each of several values; of a worker its own name.

    Raises:
        UsageError: there is no such worker, or a parameter of a group is none of any baseline.
    """
    if head == WORKERS and not settings:
        return [(f"{WORKER}{entry.name}", {}) for entry in pool]
    if head.startswith(WORKER):
        return [(f"{WORKER}{pool.entry(_worker(head.removeprefix(WORKER), pool)).name}", {})]
    if head == GROUP:
        own = {each: _by_name(row) for each, row in BASELINES.items()}
        require_keys(settings, sorted({key for parameters in own.values() for key in parameters}), GROUP)
        rows = [(each, {key: settings[key] for key in settings if key in own[each]}) for each in own]
        return [each for one in ((WORKERS, {}), *rows) for each in _expanded(*one, pool)]
    parameters, model = _by_name(BASELINES.get(head, ConductorParameters)), head.removesuffix(f"@{EACH}")
    heads = [head] if model == head else [f"{model}@{effort}" for effort in EFFORTS]
    values = [[(key, each) for each in _listed(parameters.get(key), value, pool)] for key, value in settings.items()]
    return [(each, dict(chosen)) for each in heads for chosen in product(*values)]


def _policy(
    head: str, settings: dict[str, str], pool: Pool, config: ConductorConfig, params: Mapping[str, str] | None
) -> Policy:
    """The policy of one name; raises what `policies_of` does."""
    if head.startswith(WORKER):
        return WorkflowPolicy(alone(_worker(head.removeprefix(WORKER), pool)))
    if head in BASELINES:
        return _read(BASELINES[head], settings, pool.subset(workers_of(pool))).policy(pool)
    model, _, effort = head.rpartition("@")
    is_effort = model and effort in EFFORTS  # what stands after an @ may also be a server's address
    try:
        values = _read(ConductorParameters, settings, pool)
        found = {"effort": effort if is_effort else None, "max_rounds": values.max_rounds, "pick": values.pool}
        changes: Any = {key: value for key, value in found.items() if value is not None}
        changes["shuffle"] = config.shuffle or values.pool is not None
        policy = named_policy(replace(config, model=model if is_effort else head, **changes), pool, params=params)
    except UsageError as error:
        first = head.partition(":")[0]
        if head.endswith(_FILES) or "/" in head or first in providers() or file_of(head) is not None:
            raise
        hint = did_you_mean(first, (WORKERS, GROUP, *BASELINES))
        raise UsageError(f"no policy has this name. {hint} ({error})") from error
    return _ablated(policy, values)


def _ablated(policy: Policy, values: ConductorParameters) -> Policy:
    """The policy without what it may not decide, and with the examples that are asked for.

    Raises:
        UsageError: the workflow is fixed, and a setting is for Conductors; or two settings exclude each other.
    """
    given, instruction = to_table(values), SOLVE if values.instruction else ""
    if {"worker", "pool"} <= given.keys():
        raise UsageError("with pool, a question may not offer the worker; leave one of them out")
    if isinstance(policy, WorkflowPolicy):
        if others := given.keys() - {"worker", "instruction"}:
            raise UsageError(f"this workflow is fixed; leave out {', '.join(sorted(others))}, for Conductors only")
        return WorkflowPolicy(ablated(policy.workflow, instruction=instruction, worker=values.worker))
    if isinstance(policy, Conductor) and given.keys() & {"worker", "instruction", "examples"}:
        prompt = policy.settings.prompt
        if values.examples is not None:
            prompt = replace(prompt, examples=load_examples(_EXAMPLES.get(values.examples, values.examples)))
        return policy.changed(instruction=instruction, worker=values.worker, prompt=prompt)
    return policy


def _parts(name: str) -> _Parts:
    """`NAME:KEY=VALUE,KEY=VALUE` in its parts; the name of a worker, Conductor or file may hold colons itself.

    Raises:
        UsageError: a part has no value, or a key comes twice.
    """
    head, colon, rest = name.partition(":")
    if head not in (GROUP, *BASELINES):
        head, colon, rest = name.rpartition(":")
        if not head or name.startswith(WORKER) or not _SETTING.match(rest):
            return name, {}
    settings: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, _, value = (word.strip() for word in part.partition("="))
        if not key or not value:
            raise UsageError(f"{part!r} sets nothing; write {head}:KEY=VALUE,KEY=VALUE")
        if key in settings:
            raise UsageError(f"{key} is set twice")
        settings[key] = value
    return head, settings


def _named(name: str, settings: Mapping[str, str]) -> str:
    return f"{name}:{','.join(f'{key}={value}' for key, value in settings.items())}" if settings else name


def _by_name(table: type[Table]) -> dict[str, Option]:
    return {parameter.name: parameter for parameter in options_of(table)}


def _read(table: type[_T], settings: Mapping[str, str], pool: Pool) -> _T:
    """A table from texts; of a worker the default is its place among the pool's workers, counted around.

    Raises:
        UsageError: a setting is for no parameter, or cannot be read.
    """
    parameters, values = _by_name(table), dict[str, Any]()
    require_keys(settings, parameters, "it")
    for key, parameter in parameters.items():
        if key in settings and is_worker(parameter):
            values[key] = _worker(settings[key], pool)
        elif key in settings:
            try:
                values[key] = parameter.read(settings[key])
            except ValueError as error:
                raise UsageError(f"{key} {error} (got {settings[key]})") from error
        elif is_worker(parameter) and parameter.default is not None:
            values[key] = pool.indices[parameter.default % len(pool)]
    return table(**values)


def _worker(text: str, pool: Pool) -> int:
    """The index of the worker with this name or index.

    Raises:
        UsageError: the pool has no such worker.
    """
    found = pool.called(text)
    if found is None:
        have = ", ".join(f"{index}={pool.entry(index).name}" for index in pool.indices)
        raise UsageError(f"pool {pool.name!r} has no worker {text!r}; it has {have}")
    return found


def _listed(parameter: Option | None, text: str, pool: Pool) -> list[str]:
    """The values that a text lists."""
    if parameter is None or parameter.path or text.endswith(".toml"):
        return [text]
    if is_worker(parameter) and (text == EACH or pool.find(text) is not None):
        return [pool.entry(index).name for index in workers_of(pool)] if text == EACH else [text]
    return text.split("/")
