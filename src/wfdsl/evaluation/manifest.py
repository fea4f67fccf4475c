"""The manifest of an evaluation, which is everything needed to repeat it, and what fitting its policies has cost.

A resumed evaluation must be the same in everything that can change an answer: policies, tasks, pool, seed, repeats.
Concurrency, budget and time limits may change.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from wfdsl._version import __version__
from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.errors import RunInUse, UsageError
from wfdsl.evaluation.trials import (
    RESULTS,
    Evaluation,
    Trial,
    hash_of,
    named_tasks,
    read_trials,
    task_hash,
    whole_lines,
)
from wfdsl.files import write_whole
from wfdsl.interpreter.journal_file import locked
from wfdsl.interpreter.record import total_usd, workflow_to_list
from wfdsl.settings import to_table
from wfdsl.workers.pool import Pool

_T = TypeVar("_T")
FORMAT: Final = "wfdsl-evaluation"
VERSION: Final = 2
_GRADERS: Final = ("math-verify", "sympy", "latex2sympy2_extended", "antlr4-python3-runtime")
FIT_COSTS: Final = "fit_costs.json"
TRAINING_COST: Final = "training_cost.json"
"""The file of a checkpoint that says what the workers have cost that trained it."""
_HOW_ONLY: Final = {"description", "tags", "limits", "timeout_s", "idle_timeout_s", "retries"}
"""Fields of a worker's entry that change no answer and no cost of a call."""
_ANSWERING: Final = ("question_for", "run_dead_steps", "max_depth")
"""Run options that can change an answer."""


def manifest_of(
    evaluation: Evaluation, *, task_sources: Sequence[str] = (), command: Sequence[str] = ()
) -> dict[str, Any]:
    """The manifest as plain values.

    Args:
        evaluation: What is evaluated.
        task_sources: What `--tasks` named, files or data sets.
        command: The arguments of the command.
    """
    named = named_tasks(evaluation.tasks)
    policies = {name: description_of(policy) for name, policy in evaluation.policies.items()}
    pool, ids = pool_description(evaluation.pool), {name: task_hash(task) for name, task in named.items()}
    grading = {"judge": evaluation.judge, "sandbox_packages": evaluation.sandbox_packages}
    packages = {name: each.version for name in _GRADERS for each in list(distributions(name=name))[:1]}
    return {
        "format": FORMAT,
        "version": VERSION,
        "id": evaluation.id,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(command),
        "simulated": is_simulated(evaluation.pool),
        "policies": policies,
        "pool": pool,
        "tasks": {
            "sources": list(task_sources),
            "count": len(named),
            "answer_formats": sorted({task.answer_format for task in named.values()}),
            "ids": ids,
        },
        "repeats": evaluation.repeats,
        "seed": evaluation.seed,
        "run": dict(evaluation.options),
        "grading": grading,
        "same": {
            "policies": hash_of({name: each["hash"] for name, each in policies.items()}),
            "tasks": hash_of(ids),
            "workers": pool["hash"],
            "repeats": evaluation.repeats,
            "seed": evaluation.seed,
            "grading": hash_of(grading),
            "run options": hash_of([evaluation.options.get(name) for name in _ANSWERING]),
        },
        "packages": {"wfdsl": __version__, **packages},
        "platform": {"python": platform.python_version(), "platform": platform.platform()},
    }


def description_of(policy: Policy) -> dict[str, Any]:
    """What makes a policy what it is, and a hash of that.

    A policy may say so itself, with a method `describe() -> dict` of plain values; otherwise its class and `repr` stand
    for it.
    """
    if hasattr(policy, "describe"):
        plain = dict(policy.describe())
    elif isinstance(policy, WorkflowPolicy):
        plain = {"kind": "workflow", "workflow": workflow_to_list(policy.workflow)}
    elif isinstance(policy, Conductor):
        settings = policy.settings
        plain = {
            "kind": "conductor",
            **to_table(policy.config),
            "model": policy.entry.model_dump(mode="json", exclude=_HOW_ONLY),
            "prompt": settings.prompt.fingerprint,
            "default": None if settings.default is None else workflow_to_list(settings.default),
            "grammar": repr(settings.grammar),
            **{name: getattr(settings, name) for name in ("max_rounds", "max_steps", "instruction", "worker")},
        }
    else:
        own = {} if type(policy).__repr__ is object.__repr__ else {"repr": repr(policy)}  # else it has an address
        plain = {"kind": type(policy).__qualname__, **own}
    return {**plain, "hash": hash_of(plain)}


def is_simulated(pool: Pool) -> bool:
    """Whether a pool has workers that are no models."""
    return any(entry.provider in ("gym", "scripted") for entry in pool)


def pool_description(pool: Pool) -> dict[str, Any]:
    """A pool with its prices, and a hash of what can change answers or costs. Entries hold no keys."""
    entries = {str(index): pool.entry(index) for index in pool.indices}
    settings = pool.settings.model_dump(mode="json")
    identity = {index: entry.model_dump(mode="json", exclude=_HOW_ONLY) for index, entry in entries.items()}
    return {
        "name": pool.name,
        "settings": settings,
        "workers": {index: entry.model_dump(mode="json", exclude_defaults=True) for index, entry in entries.items()},
        "hash": hash_of([settings["max_reply_chars"], identity]),
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an evaluation's folder.

    Raises:
        UsageError: there is none, or one of another version.
    """
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{folder} holds no evaluation: {path} cannot be read: {why}") from error
    known = {"format": FORMAT, "version": VERSION}
    if not isinstance(manifest, dict) or not known.items() <= manifest.items():
        raise UsageError(f"{path} is not a manifest of an evaluation that this wfdsl reads: {known} must be in it")
    return manifest


def require_same(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Refuse to resume an evaluation under other conditions.

    Raises:
        UsageError: something that can change answers is not what it was; the message says what.
    """
    if changed := differences(before, now):
        raise UsageError(
            f"{folder} was started with other {', '.join(changed)}; give the same ones as {folder}/manifest.json, "
            "or another --out"
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any], what: str = "same") -> list[str]:
    """What is not the same in two manifests, in words; `what` is `same` or `packages`."""
    return [name for name in {**before[what], **now[what]} if before[what].get(name) != now[what].get(name)]


@dataclass(frozen=True, slots=True)
class FitCost:
    """What fitting has cost, as if nothing had come from the journal."""

    calls: int
    tokens: int
    usd: float | None
    """US dollars by the price list; None if a price is not known."""

    def __add__(self, other: FitCost) -> FitCost:
        return FitCost(self.calls + other.calls, self.tokens + other.tokens, total_usd([self.usd, other.usd]))


_COSTS: Final = TypeAdapter(dict[str, FitCost])


@contextmanager
def kept_in(
    folder: Path, policies: Mapping[str, Policy], manifest: Mapping[str, Any] | None = None
) -> Iterator[Callable[[Trial], None]]:
    """Open the folder's results after the last whole line; gives what writes a trial. A manifest begins an evaluation.

    At the end, what fitting policies, and training Conductors from checkpoints, has cost is written beside what is
    there already.

    Raises:
        RunInUse: another process works on the folder.
        UsageError: results cannot be written; the folder of a new evaluation holds one already; or the costs that are
            there, or a checkpoint's, cannot be read.
    """
    path = folder / RESULTS
    try:
        if manifest is not None:
            folder.mkdir(parents=True, exist_ok=True)
        file, lock = path.open("ab"), locked(folder / ".lock")
    except OSError as error:
        raise UsageError(f"{folder}: results cannot be written: {error.strerror}") from error

    def keep(trial: Trial) -> None:
        file.write(f"{trial.to_json()}\n".encode())
        file.flush()

    with file, ExitStack() as held:
        if lock is None:
            who = f"process {(folder / '.lock').read_text('utf-8')}"
            raise RunInUse(f"{folder} is being worked on by {who}; wait until it has finished, or stop it")
        held.callback(os.close, lock)
        os.truncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        if manifest is not None:
            if read_trials(folder):
                cure = f"continue it with --resume {folder}, or give another folder"
                raise UsageError(f"{folder} holds an evaluation already; {cure}")
            write_whole(folder / "manifest.json", json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")
        file.truncate(len(whole_lines(path)))
        try:
            yield keep
        finally:
            found = {name: getattr(each, "fit_cost", None) or _training_cost(each) for name, each in policies.items()}
            if costs := {name: cost for name, cost in found.items() if cost is not None}:
                write_whole(folder / FIT_COSTS, _COSTS.dump_json({**read_fit_costs(folder), **costs}, indent=2))


def _training_cost(policy: Policy) -> FitCost | None:
    model = getattr(getattr(policy, "entry", None), "model", None)
    path = Path(str(model or ""), TRAINING_COST)
    return _read(path, TypeAdapter(FitCost), "export the model again") if model and path.is_file() else None


def read_fit_costs(folder: Path) -> dict[str, FitCost]:
    """The costs in the folder; none if no policy was fitted.

    Raises:
        UsageError: the file is damaged.
    """
    path = folder / FIT_COSTS
    return _read(path, _COSTS, "delete it, then continue with --resume") if path.exists() else {}


def _read(path: Path, kind: TypeAdapter[_T], cure: str) -> _T:
    try:
        return kind.validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(f"{path} does not hold the cost of fitting or training; {cure}") from error
