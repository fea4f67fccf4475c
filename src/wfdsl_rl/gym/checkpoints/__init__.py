"""Trained Conductors that come with the package, by name: what the entry point `gym` of `wfdsl.conductors` names.

gym/tiny       the tiny Conductor for gym questions, trained by the preset `gym-tiny`
gym/tiny-axes  the one for `gym/axes`, which is told what a step costs, trained by the preset `gym-axes`

Each is a folder as `wfdsl-train export --gguf` makes it, with its card in its README.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wfdsl.errors import UsageError

GYM_TINY: Final = "gym/tiny"
GYM_TINY_AXES: Final = "gym/tiny-axes"
_FOLDERS: Final = {GYM_TINY: "gym-tiny", GYM_TINY_AXES: "gym-tiny-axes"}


class ShippedConductors:
    """Called with a Conductor's name, it gives the Conductor's folder."""

    def __call__(self, name: str) -> Path:
        """The folder of a Conductor.

        Raises:
            UsageError: there is no such Conductor.
        """
        if name not in _FOLDERS:
            raise UsageError(f"there is no Conductor {name!r}; the gym has {', '.join(_FOLDERS)}")
        return Path(__file__).parent / _FOLDERS[name]

    def names(self) -> tuple[str, ...]:
        """The names that can be asked for."""
        return tuple(_FOLDERS)


load: Final = ShippedConductors()
