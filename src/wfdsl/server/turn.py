"""What a request is answered with, whichever API it came by: a text, or calls of the client's tools, and the run."""

from __future__ import annotations

from dataclasses import dataclass

from wfdsl.interpreter.record import Run
from wfdsl.protocols import ToolCall, Usage


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a turn."""

    run: Run
    """The run; where tools are called, what there is of it."""
    text: str
    finish: str
    """OpenAI's word for how it ended: `stop`, `length`, `tool_calls`, `content_filter`."""
    tool_calls: tuple[ToolCall, ...] = ()
    before: Run | None = None
    """The run as an earlier turn left it; what was paid for then has been reported then."""
    choice: int = 0
    """Which of several answers to one request it is."""

    @property
    def usage(self) -> Usage:
        """The tokens of this turn: of all calls, the Conductor's included."""
        return self.run.usage if self.before is None else less(self.run.usage, self.before.usage)

    @property
    def paid_usd(self) -> float | None:
        """What this turn cost, in US dollars; None if a price is not known."""
        paid, before = self.run.paid_usd, 0.0 if self.before is None else self.before.paid_usd
        return None if paid is None or before is None else max(paid - before, 0.0)


def less(whole: Usage, part: Usage) -> Usage:
    """The tokens of a whole without those of a part."""
    return Usage(
        whole.input_tokens - part.input_tokens,
        whole.output_tokens - part.output_tokens,
        whole.thinking_tokens - part.thinking_tokens,
        whole.cached_tokens - part.cached_tokens,
    )
