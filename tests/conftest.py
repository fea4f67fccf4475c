"""What all tests share: seeds, how hypothesis searches, that Ctrl-C is heard, and that the entry points are current.

`ci` draws the same examples on every run, and `WFDSL_HYPOTHESIS=quick pytest` fewer of them. `explore` draws new and
many more ones.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import re
import signal
import tomllib
from collections.abc import Generator, Iterable
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "ci", max_examples=75, derandomize=True, database=None, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile(
    "quick", max_examples=10, derandomize=True, database=None, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile("explore", max_examples=3000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("WFDSL_HYPOTHESIS", "ci"))

# As many processes as cores test at once: more threads of torch would wait for each other, up to ten times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A name that is no file is looked for on the hub, for half a minute where there is no network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell: what tests start and interrupt would inherit that it is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)


OPTIONAL = ("accelerate", "datasets", "peft", "torch", "transformers", "trl")
"""What `make TORCH=0` leaves out."""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a module that imports a package that is left out."""
    report = yield
    missing = re.search(r"No module named '(\w+)", str(report.longrepr)) if report.failed else None
    if missing and missing[1] in OPTIONAL and find_spec(missing[1]) is None:
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: needs {missing[1]}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip a test whose program imports a package that is left out."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if error.name in OPTIONAL:
            pytest.skip(f"needs {error.name}")
        raise


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Trainings first: they take longest, and share models, which one worker then makes."""
    items.sort(key=lambda item: "rl/training" not in item.nodeid)


def pytest_collection_finish() -> None:
    """Half a million objects of modules are not searched for garbage, which trainers ask for several times each."""
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Every test has its own seed, so that jitter is the same in each run."""
    random.seed(item.nodeid)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-messages", action="store_true", help="write tests/snapshots/messages.txt again")


def pytest_sessionstart() -> None:
    """An editable install keeps the entry points of the day on which it was made."""
    groups = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    wanted = {(group, name, value) for group, found in groups.items() for name, value in found.items()}
    points: Iterable[EntryPoint] = ()
    with contextlib.suppress(PackageNotFoundError):
        points = distribution("wfdsl-conductor").entry_points
    if not wanted <= {(found.group, found.name, found.value) for found in points}:
        pytest.exit("pyproject.toml has new entry points; run: python -m pip install --no-deps -e .", returncode=4)
