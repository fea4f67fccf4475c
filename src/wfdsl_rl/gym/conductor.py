"""The Conductor that comes with the package, by name: what the entry point `gym` of `wfdsl.conductors` names.

`gym/seven` is a folder with a GGUF file, which llama.cpp runs without torch. `make headline` trains it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wfdsl.errors import UsageError
from wfdsl_rl.gym.source import NAME


class GymConductors:
    """Called with a Conductor's name, it gives the Conductor's folder."""

    def __call__(self, name: str) -> Path:
        """The folder of a Conductor.

        Raises:
            UsageError: there is no such Conductor.
        """
        if name != NAME:
            raise UsageError(f"there is no Conductor {name!r}; the gym has {NAME}")
        return Path(__file__).parent / "seven"

    def names(self) -> tuple[str, ...]:
        """The names that can be asked for."""
        return (NAME,)


load: Final = GymConductors()
