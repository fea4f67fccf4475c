"""The state of a step in a run, with time and cost, as every picture shows it; durations and dollars as text."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal["waiting", "running", "done", "failed", "pruned"]
"""`pruned`: never run, because it cannot change the answer."""


class StepStatus(NamedTuple):
    """The state of one step."""

    state: State
    seconds: float | None = None
    """How long it took, or has taken so far; None: not known."""
    usd: float | None = None
    """What it cost, in US dollars; None: not known."""
    note: str = ""
    """A few words more, such as how often it was tried."""
    error: str = ""
    """Why it failed."""

    def facts(self) -> str:
        """One line for people: the state, then what is known of time and cost, then the note."""
        time = "" if self.seconds is None else duration(self.seconds)
        cost = "" if self.usd is None else dollars(self.usd)
        return " · ".join(filter(None, [self.state, time, cost, self.note]))


def duration(seconds: float) -> str:
    """Seconds as people read them: `340 ms`, `2.4 s`, `3 min 05 s`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def dollars(usd: float) -> str:
    """US dollars: cents from ten cents up, four digits below, and never a rounded-off zero for a cost above zero."""
    if usd >= 0.1 or usd == 0:
        return f"${usd:.2f}"
    return f"${usd:.4f}" if usd >= 0.0001 else "<$0.0001"
