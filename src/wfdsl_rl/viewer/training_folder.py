"""The folder of a training as pages read it while it may be written: options, log entries, stages, and its process.

Files are read as far as they are whole. Whatever is not as a training writes it is counted or left out, never trusted.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from wfdsl.evaluation.fingerprints import SIMULATED
from wfdsl.interpreter.journal_file import is_alive
from wfdsl_rl.training.config import STAGES, StageName
from wfdsl_rl.training.plan import JOURNAL
from wfdsl_rl.training.setup import DONE, METRICS, RESOLVED, RUNNING, read_single_workers
from wfdsl_rl.viewer.folders import begins_with
from wfdsl_rl.viewer.training_samples import SampleFolder, finite

HELD_OUT: Final = "eval_"
"""What the names of an evaluation's metrics begin with."""
_PAUSE: Final = 10.0
_LONGEST_PAUSE_S: Final = 5.0
"""How many times as long as drawing took nothing new is shown, and how long at most. Our choice."""


def is_training(folder: Path) -> bool:
    """Whether a folder holds a training."""
    return begins_with(folder / RESOLVED, b'"experiment"')


class MetricsFile:
    """The log entries of a training. The file is read on from where it was read to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._forget()

    def entries(self) -> Sequence[Mapping[str, Any]]:
        """All entries up to now. A line without its end is still being written, and is left for later."""
        with self._lock:
            try:
                with self._path.open("rb") as file:
                    file.seek(self._end - len(self._last))
                    text = file.read()
            except OSError:
                text = b""
            if not text.startswith(self._last):
                self._forget()  # a training that resumed has written it again
                text = self._path.read_bytes() if self._path.is_file() else b""
            self._add(text[len(self._last) :])
            return self._entries

    @property
    def damaged(self) -> int:
        """Lines that are not log entries."""
        return self._damaged

    def _forget(self) -> None:
        self._entries: list[Mapping[str, Any]] = []
        self._end, self._last, self._damaged = 0, b"", 0

    def _add(self, text: bytes) -> None:
        whole = text[: text.rfind(b"\n") + 1]
        if not whole:
            return
        lines = whole.splitlines(keepends=True)
        for line in lines:
            entry = _json(line)
            if isinstance(entry, dict) and entry.get("stage") in STAGES and type(entry.get("step")) is int:
                self._entries.append(entry)
            else:
                self._damaged += 1
        self._end, self._last = self._end + len(whole), lines[-1]


def _json(text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def number_of(entry: Mapping[str, Any], key: str) -> float | None:
    """A metric of a log entry; None: it has none that is a finite number."""
    return finite(entry.get(key))


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a training."""

    name: StageName
    state: str
    """`done`, `running`, `interrupted`, or empty: it has not begun."""
    planned: int
    """Optimisation steps."""
    entries: Sequence[Mapping[str, Any]]
    """Its log entries."""
    checkpoints: Sequence[int]
    """The steps that were kept."""
    samples: SampleFolder

    @property
    def step(self) -> int:
        """The last step that was logged."""
        return max((int(entry["step"]) for entry in self.entries), default=0)

    def trained(self, key: str) -> tuple[list[int], list[float]]:
        """The steps of a metric and its values."""
        found = [(int(entry["step"]), number_of(entry, key)) for entry in self.entries]
        return [step for step, value in found if value is not None], [value for _, value in found if value is not None]

    def held_out(self, key: str) -> list[tuple[int, float, Mapping[str, Any]]]:
        """The evaluations of a metric: step, value and the whole entry; of a step that was repeated, the last one."""
        found = {}
        for entry in self.entries:
            if (value := number_of(entry, HELD_OUT + key)) is not None:
                found[int(entry["step"])] = (value, entry)
        return [(step, value, entry) for step, (value, entry) in sorted(found.items())]

    def latest(self, key: str) -> float | None:
        """The last value of a metric."""
        values = self.trained(key)[1]
        return values[-1] if values else None


class TrainingFolder:
    """A training."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = f"{path.name}-{hashlib.sha256(str(path).encode(errors='replace')).hexdigest()[:8]}"
        """Names it in addresses."""
        self._metrics = MetricsFile(path / METRICS)
        self._samples = {name: SampleFolder(path / name / "samples") for name in STAGES}
        self._shown = ("", 0.0)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def journal(self) -> Path:
        """Where the runs of real workers are."""
        return self.path / JOURNAL

    @property
    def damaged(self) -> int:
        """Lines of the metrics that cannot be read."""
        return self._metrics.damaged

    @cached_property
    def resolved(self) -> Mapping[str, Any]:
        """The options; empty if they cannot be read. They do not change."""
        try:
            found = _json((self.path / RESOLVED).read_bytes())
        except OSError:
            return {}
        return found if isinstance(found, dict) else {}

    def option(self, *keys: str) -> Any:
        """One option; None if there is none."""
        found: Any = self.resolved
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def _steps(self, stage: StageName) -> int:
        count = self.option("train", stage, "steps" if stage == "sft" else "iterations")
        return count if type(count) is int else 0

    @cached_property
    def planned(self) -> tuple[StageName, ...]:
        """The stages that it was started for."""
        asked = self.option("command", "stage")
        return tuple(name for name in STAGES if name == asked or (asked not in STAGES and self._steps(name)))

    @cached_property
    def workers(self) -> Sequence[str]:
        """The names of the pool's workers, by index."""
        found = self.option("pool", "workers")
        each = found if isinstance(found, list) else []
        return [str(worker.get("name", "")) if isinstance(worker, dict) else "" for worker in each]

    @cached_property
    def is_simulated(self) -> bool:
        """Whether workers are simulated."""
        found = self.option("pool", "workers")
        each = found if isinstance(found, list) else []
        return any(isinstance(worker, dict) and worker.get("provider") in SIMULATED for worker in each)

    def single_workers(self) -> Mapping[str, float]:
        """Each worker's accuracy alone; empty: not measured."""
        try:
            found = read_single_workers(self.path)
        except (OSError, ValueError, TypeError):
            return {}
        return {name: value for name in found if (value := number_of(found, name)) is not None}

    def is_running(self) -> bool:
        """Whether its process lives; where the lock may not be tried, it is taken for dead."""
        try:
            return any(is_alive(self.path / RUNNING, each.name) for each in (self.path / RUNNING).iterdir())
        except OSError:
            return False

    def stages(self) -> list[Stage]:
        """The stages that it was started for, or has begun."""
        entries, is_running = self._metrics.entries(), self.is_running()
        found: list[Stage] = []
        for name in STAGES:
            folder = self.path / name
            if name not in self.planned and not folder.is_dir():
                continue
            own = [entry for entry in entries if entry["stage"] == name]
            if (folder / "final" / DONE).is_file():
                state = "done"
            elif is_running and name in self.planned and not any(each.state == "running" for each in found):
                state = "running"
            else:
                state = "interrupted" if own or folder.is_dir() else ""
            checkpoints = sorted(_checkpoints(folder))
            found.append(Stage(name, state, self._steps(name), own, checkpoints, self._samples[name]))
        return found

    def stage(self, name: str) -> Stage | None:
        """One of its stages."""
        return next((stage for stage in self.stages() if stage.name == name), None)

    def state(self, stages: Sequence[Stage]) -> str:
        """`running`, `done`, or `interrupted`: its process ended before its stages were complete."""
        if self.is_running():
            return "running"
        planned = [stage.state for stage in stages if stage.name in self.planned]
        return "done" if planned and all(state == "done" for state in planned) else "interrupted"

    def changed(self) -> float | None:
        """When something was last logged, in seconds since 1970."""
        try:
            return (self.path / METRICS).stat().st_mtime
        except OSError:
            return None

    def version(self) -> str:
        """What differs whenever a page of the training has changed; for a while after drawing it stays the same."""
        shown, until = self._shown
        if shown and time.monotonic() < until:
            return shown
        about = [
            (stage.name, stage.state, len(stage.entries), stage.checkpoints, len(stage.samples.batches()))
            for stage in self.stages()
        ]
        found = hashlib.sha256(repr((about, self.is_running())).encode()).hexdigest()[:16]
        self._shown = (found, until)
        return found

    def took(self, seconds: float) -> None:
        """Say that drawing has taken so long: the more it takes, the less often is something new drawn."""
        version, until = self._shown
        self._shown = (version, max(until, time.monotonic() + min(_PAUSE * seconds, _LONGEST_PAUSE_S)))


def _checkpoints(folder: Path) -> Iterator[int]:
    try:
        for each in folder.iterdir():
            step = each.name.removeprefix("checkpoint-")
            if step != each.name and step.isascii() and step.isdecimal():
                yield int(step)
    except OSError:
        return
