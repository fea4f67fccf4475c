"""The one subclass of TRL's trainer: rows that ask for a second round get a first one before they are generated.

In a row with `forced`, the model first writes a workflow as it would; the workflow is run, and the row's prompt becomes
the conversation with that completion and its response. All completions of the row then revise the same first round,
so that they are a group with a baseline of its own. TRL does the rest.

`_generate_and_score_completions` and `_generate` are TRL's own, private names: a contract test holds them to the
pinned version. Source of forced rounds: arXiv 2512.04388, section 4; one first round per group is our choice.
"""

from __future__ import annotations

import asyncio
import statistics
from typing import TYPE_CHECKING, Any, Final

from trl import GRPOTrainer

from wfdsl_rl.gym.tiny.forced_prefix import whole
from wfdsl_rl.training.recursion_rows import as_revision, first_with_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from wfdsl.conductor.prompt import Prompt
    from wfdsl_rl.training.rewarding import Rewarder, Sample


_COMPLETIONS: Final = 3
"""Where completions stand in what `_generate` gives."""
_LATELY: Final = 3
"""Iterations. Our choice."""


class RecursionTrainer(GRPOTrainer):  # type: ignore[misc,unused-ignore]
    """GRPO in which some groups revise a first round."""

    # All of these are set before training.
    rewarder: Rewarder
    """What runs first rounds."""
    prompt: Prompt
    max_steps_of_workflow: int
    balanced: bool
    """Whether as many groups revise an answer that admits a doubt as second rounds kept theirs lately."""
    exchange: Callable[[dict[str, Any], str], dict[str, Any]]
    """Gives a row with this first round the workers who answer in it."""
    begin: Callable[[dict[str, Any]], dict[str, Any]]
    """Gives the row of a second round what its completions begin with, if anything does."""

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Any:
        return super()._generate_and_score_completions(self._with_first_rounds(inputs))

    def _with_first_rounds(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        forced = [row for row in inputs if row["forced"]]
        if not forced:
            return inputs
        completions = self._generate([row["prompt"] for row in forced])[_COMPLETIONS]
        texts = [whole(row, completion) for row, completion in zip(forced, completions, strict=True)]
        rows: dict[int, dict[str, Any]] = {}
        for row, text in zip(forced, texts, strict=True):
            if row["row"] not in rows:
                rows[row["row"]] = self.exchange(row, text)
        work = self.rewarder.first_rounds([rows[row["row"]] for row in forced], texts, self.state.global_step)
        samples = asyncio.run_coroutine_threadsafe(work, self.async_loop).result()
        chosen = first_with_answer(samples, doubtful=self._doubtful())
        second = {number: self._revising(rows[number], first) for number, first in chosen.items()}
        return [second.get(row["row"], row) for row in inputs]  # where no first round came to an answer, it is one

    def _doubtful(self) -> float | None:
        """The part of the groups that revise a doubtful answer. It follows from what checkpoints keep."""
        if not self.balanced:
            return None
        kept = [float(entry["kept"]) for entry in self.state.log_history if "kept" in entry]
        return statistics.fmean(kept[-_LATELY:] or [0.5])

    def _revising(self, row: dict[str, Any], first: Sample) -> dict[str, Any]:
        return self.begin(as_revision(row, first, self.prompt, max_steps=self.max_steps_of_workflow))
