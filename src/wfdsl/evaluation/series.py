"""Policies that differ in one thing only: a number among their parameters, or the effort of a Conductor."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

FEWEST: Final = 3
"""Policies that make a series; our choice."""
_CHANGING: Final = re.compile(r"(?<=[:,])\w+=[\d.]+(?=,|$)|(?<=@)[a-z]+$")


class Series(NamedTuple):
    """Policies that differ in one thing only."""

    name: str
    """What they have in common."""
    policies: tuple[str, ...]


def series_of(policies: Iterable[str]) -> list[Series]:
    """The policies in their order, each in one series; most are alone in theirs."""
    names = list(policies)
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        for found in _CHANGING.finditer(name):
            changing = found.group().partition("=")[0] + "=" if "=" in found.group() else ""
            groups[f"{name[: found.start()]}{changing}...{name[found.end() :]}"].append(name)
    series: dict[str, Series] = {}
    for common, members in groups.items():
        if len(members) >= FEWEST and not any(name in series for name in members):
            series |= dict.fromkeys(members, Series(common, tuple(members)))
    return list(dict.fromkeys(series.get(name, Series(name, (name,))) for name in names))
