"""What many completions have in common: how many are valid in each profile, and which diagnostics they get.

A survey reads its completions one at a time and keeps only counts and the worst examples, so that it can run over a
training run's worth of rollouts.
"""

from __future__ import annotations

import gzip
import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

from wfdsl.api import Checked, analyze
from wfdsl.errors import UsageError
from wfdsl.language.check import CheckConfig, Profile

_LONGEST_LINE = 1 << 24  # bytes of a line that is read; our choice
_ENDLESS_LINE = 1 << 30  # bytes of a line that is skipped, since the next one may be fine; our choice
_PARTS = ("content", "text")  # where a chat message or an API reply keeps its text


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a JSON lines file."""

    file: str
    line: int
    text: str | None
    """The completion, or None if the line holds none."""
    problem: str = ""
    """Why there is none."""


@dataclass(frozen=True, slots=True, order=True)
class Example:
    """A completion that counts among the worst: errors in the lenient profile, then in the strict one."""

    lenient_errors: int
    strict_errors: int
    place: tuple[str, int] = field(compare=False)
    checked: Checked = field(compare=False)
    """In the strict profile."""


@dataclass(slots=True)
class Survey:
    """Counts over completions. `add` takes one; everything else is there at any time."""

    config: CheckConfig = field(default_factory=CheckConfig)
    """What completions are checked against, in both profiles. Longer ones than `max_chars` are not read."""
    examples: int = 3
    total: int = 0
    unreadable: list[Row] = field(default_factory=list)
    """The first lines that hold no completion."""
    unreadable_count: int = 0
    valid: Counter[str] = field(default_factory=Counter)
    """Valid completions by profile."""
    passthrough: int = 0
    steps: Counter[int] = field(default_factory=Counter)
    """Workflows that are valid in the lenient profile, by their number of steps."""
    codes: dict[str, Counter[str]] = field(default_factory=lambda: {"strict": Counter(), "lenient": Counter()})
    """Completions that have a code at least once, by profile; errors only."""
    remarks: Counter[str] = field(default_factory=Counter)
    """Completions that have a warning or note in the lenient profile."""
    _worst: list[tuple[Example, int]] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Count one line."""
        if row.text is None:
            self.unreadable_count += 1
            if len(self.unreadable) < self.examples:
                self.unreadable.append(row)
            return
        self.total += 1
        strict = self._analyze(row.text, "strict")
        # A text that is fine as it is needs no second look: strict is a subset of lenient.
        lenient = strict if strict.ok else self._analyze(row.text, "lenient")
        self._count(strict, lenient)
        if not strict.ok:
            self._keep(Example(_errors(lenient), _errors(strict), (row.file, row.line), strict))

    @property
    def worst(self) -> list[Example]:
        """The worst examples, worst first."""
        return [example for example, _ in sorted(self._worst, reverse=True)]

    def to_json(self) -> dict[str, Any]:
        """The counts as a JSON object."""
        return {
            "total": self.total,
            "unreadable": self.unreadable_count,
            "valid": {profile: self.valid[profile] for profile in ("strict", "lenient")},
            "passthrough": self.passthrough,
            "steps": {str(steps): count for steps, count in sorted(self.steps.items())},
            "codes": {
                code: {"strict": self.codes["strict"][code], "lenient": self.codes["lenient"][code]}
                for code in sorted(self.codes["strict"] | self.codes["lenient"])
            },
            "remarks": dict(sorted(self.remarks.items())),
            "worst": [{"file": worst.place[0], "line": worst.place[1]} for worst in self.worst],
        }

    def _analyze(self, text: str, profile: Profile) -> Checked:
        return analyze(text, self.config, profile=profile)

    def _count(self, strict: Checked, lenient: Checked) -> None:
        for profile, checked in (("strict", strict), ("lenient", lenient)):
            self.valid[profile] += checked.ok
            self.codes[profile].update({found.code for found in checked.diagnostics if found.is_error})
        self.remarks.update({found.code for found in lenient.diagnostics if not found.is_error})
        self.passthrough += lenient.passthrough
        if lenient.workflow is not None:
            self.steps[len(lenient.workflow)] += 1

    def _keep(self, example: Example) -> None:
        # The line's number, negative, decides between equals: the earlier one stays.
        heapq.heappush(self._worst, (example, -self.total))
        if len(self._worst) > self.examples:
            heapq.heappop(self._worst)


def _errors(checked: Checked) -> int:
    return sum(found.is_error for found in checked.diagnostics)


def read_rows(path: str | PathLike[str], name: str, *, on_bytes: Callable[[int], None] | None = None) -> Iterator[Row]:
    """The completions in a field of a JSON lines file, gzipped if it is named `*.gz`; one line in memory at a time.

    `name` may be a path of keys with dots; of a list of chat messages the content of the last one is taken.

    Raises:
        UsageError: the file cannot be read, or its first line has no such field.
    """
    try:
        with _opened(path) as file:
            for number, (line, size) in enumerate(_lines(file), 1):
                if size > _ENDLESS_LINE:
                    raise UsageError(f"{path}:{number}: the line does not end within {_ENDLESS_LINE >> 20} MiB")
                if on_bytes is not None:
                    on_bytes(size)
                if line is None:
                    yield Row(str(path), number, None, f"is longer than {_LONGEST_LINE >> 20} MiB")
                elif line.strip():
                    yield _row(str(path), number, line, name)
    except (OSError, EOFError) as error:
        raise UsageError(
            f"{path}: cannot be read: {(getattr(error, 'strerror', None) or str(error)).lower()}"
        ) from error


def _opened(path: str | PathLike[str]) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path) if Path(path).suffix == ".gz" else Path(path).open("rb"))


def _lines(file: IO[bytes]) -> Iterator[tuple[bytes | None, int]]:
    """Every line with its size in bytes; None instead of one that is over the limit, which is never held whole. Of an
    endless line, such as `/dev/zero` has, as much as shows that it is one.
    """
    while line := file.readline(_LONGEST_LINE):
        size, last = len(line), line
        while len(last) == _LONGEST_LINE and not last.endswith(b"\n") and size <= _ENDLESS_LINE:
            last = file.readline(_LONGEST_LINE)
            size += len(last)
        yield line if size == len(line) else None, size


def _row(file: str, number: int, line: bytes, name: str) -> Row:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return Row(file, number, None, "is not JSON")
    value = record
    for key in name.split("."):
        if not isinstance(value, dict) or key not in value:
            problem = f"has no field {name!r}"
            if number == 1:
                raise UsageError(f"{file}:1: {problem}; {_fields(record)}")
            return Row(file, number, None, problem)
        value = value[key]
    text = _text(value)
    return Row(file, number, text, "" if text is not None else f"has no text in {name!r}")


def _fields(record: Any) -> str:
    return f"it has {', '.join(map(repr, record))}" if isinstance(record, dict) and record else "it is not an object"


def _text(value: Any) -> str | None:
    if isinstance(value, list) and value:
        value = value[-1]
    if isinstance(value, dict):
        value = next((value[key] for key in _PARTS if isinstance(value.get(key), str)), None)
    return value if isinstance(value, str) else None
