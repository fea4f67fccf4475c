"""The public surface of `wfdsl_rl`: which names there are, what they say, and what importing them costs."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import Any

import pytest

import wfdsl_rl

NAMED_BY_OTHERS = {"Reward"}
"""What others build on; these never change."""


def test_the_names_are_sorted_and_complete() -> None:
    names = list(wfdsl_rl.__all__)

    assert names == sorted(names)
    assert len(set(names)) == len(names)
    assert dir(wfdsl_rl) == names
    assert set(names) >= NAMED_BY_OTHERS


@pytest.mark.parametrize("name", wfdsl_rl.__all__)
def test_every_name_can_be_imported_and_says_what_it_is(name: str) -> None:
    value = getattr(wfdsl_rl, name)

    assert value.__name__ in {name, f"wfdsl_rl.{name}"}
    assert inspect.getdoc(value)
    assert value.__doc__ != object.__doc__


@pytest.mark.parametrize("name", [name for name in wfdsl_rl.__all__ if inspect.isclass(getattr(wfdsl_rl, name))])
def test_every_public_method_says_what_it_does(name: str) -> None:
    kind = getattr(wfdsl_rl, name)

    silent = [
        method
        for method, value in vars(kind).items()
        if not method.startswith("_")
        and isinstance(value, property | classmethod | staticmethod) | inspect.isfunction(value)
        and not inspect.getdoc(value)
    ]

    assert silent == []


def test_star_import_gives_the_public_names_and_no_others() -> None:
    names: dict[str, Any] = {}

    exec("from wfdsl_rl import *", names)

    assert names.keys() - {"__builtins__"} == set(wfdsl_rl.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'wfdsl_rl' has no attribute 'grad'"):
        wfdsl_rl.grad  # noqa: B018


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    asked = """
import json, sys
import wfdsl_rl
before = sorted(name for name in sys.modules if name.startswith("wfdsl_rl."))
print(json.dumps([before, wfdsl_rl.RewardValues.__name__]))
"""

    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True)

    assert json.loads(done.stdout) == [[], "RewardValues"]
