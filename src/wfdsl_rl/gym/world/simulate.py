"""Simulated runs of a workflow: the result of every step without texts, the same as that of a real run.

It needs nothing but Python; `wfdsl_rl.gym.world.accuracy` simulates many questions at once with numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from wfdsl.errors import UsageError
from wfdsl.graph import graph_of
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Usage
from wfdsl_rl.gym.world.behaviour import WorkerOnQuestion, respond
from wfdsl_rl.gym.world.families.form import Item
from wfdsl_rl.gym.world.presets import Preset
from wfdsl_rl.gym.world.profiles import PROFILES, seconds_of, usage_of, usd_of
from wfdsl_rl.gym.world.questions import GAP, USUAL_TOKENS, Known, call_key, known, known_item, stream_of, token_limit
from wfdsl_rl.gym.world.randomness import Arithmetic, Numbers, Scalars
from wfdsl_rl.gym.world.roles import Instruction, instruction_of
from wfdsl_rl.gym.world.states import RIGHT, Attempt, State

_SCALARS: Final = Scalars()


@dataclass(frozen=True, slots=True)
class SimulationInput:
    """What a workflow is simulated on: one question, or many of a family."""

    arithmetic: Arithmetic
    preset: Preset
    family: str
    worker: Callable[[int, float], WorkerOnQuestion]
    """The worker with an agent id and a token limit."""
    key: Numbers


def simulate_states(
    given: SimulationInput,
    workflow: Workflow,
    *,
    stream: str,
    limit: float = 0.0,
    prefix: tuple[int, ...] = (),
    previous: State | None = None,
) -> list[State]:
    """The states of all steps; steps with access "all" see `previous` first."""
    states: list[State] = []
    domain = given.preset.domain_of(given.family)
    for index, step in enumerate(workflow.steps):
        seen = [states[earlier] for earlier in workflow.sees(index)]
        if previous is not None and step.access == ALL:
            seen.insert(0, previous)
        call = SimulatedCall(int(step.worker), instruction_of(step.subtask, domain), (*prefix, index), stream, limit)
        states.append(call.state(given, seen))
    return states


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """One call of a worker of the preset."""

    worker: int
    instruction: Instruction
    path: tuple[int, ...]
    stream: str
    limit: float = 0.0

    def state(self, given: SimulationInput, seen: Sequence[State]) -> State:
        """Its reply, with these in view."""
        agent = given.preset.members[self.worker]
        key = call_key(given.arithmetic, given.key, agent, self.path, self.stream)
        setting, worker = given.preset.settings[given.family], given.worker(agent, self.limit)
        return respond(given.arithmetic, setting, worker, instruction=self.instruction, seen=seen, key=key)


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """The result of a workflow on a question. Simulated, like everything in the gym."""

    right: bool
    states: tuple[State, ...]
    """Of each step, including steps that cannot change the answer and are not run."""
    usage: Usage
    """Of the steps that are run."""
    usd: float
    seconds: float
    """Along the slowest path."""


def simulate(
    workflow: Workflow,
    question: str | Item,
    preset: Preset,
    *,
    sample_id: str = "",
    prefix: tuple[int, ...] = (),
    previous: tuple[str, State] | None = None,
    max_tokens: int = USUAL_TOKENS,
) -> SimulatedRun:
    """Simulate a workflow on a question, with the same result as `wfdsl.run` with this `sample_id` and its pool.

    Args:
        workflow: What to run; its workers are worker indices of the preset.
        question: A question of the gym, as text or as item.
        preset: Whose workers.
        sample_id: Tells runs apart that are otherwise the same.
        prefix: The path of the round or node that the workflow runs in; a Conductor's round n has (0, n).
        previous: Subtask and final state of the round before.
        max_tokens: The token limit of each call.

    Raises:
        UsageError: the gym does not know the question, or a worker is not in the preset.
    """
    this = known(preset, question) if isinstance(question, str) else known_item(preset, question)
    if this is None:
        raise UsageError(f"the gym does not know this question: {question!r}; wfdsl_rl.gym.make gives some it knows")
    check_workers(workflow, preset)
    stream = stream_of(sample_id, {})
    given = SimulationInput(_SCALARS, preset, this.item.family, this.worker, this.latents.key)
    last = None if previous is None else previous[1]
    states = simulate_states(
        given, workflow, stream=stream, limit=token_limit(max_tokens), prefix=prefix, previous=last
    )
    return _simulated_run(workflow, states, _Conditions(this, stream, prefix, previous, max_tokens))


def check_workers(workflow: Workflow, preset: Preset) -> None:
    """Check that every worker is one of the preset's.

    Raises:
        UsageError: one is not.
    """
    for index, step in enumerate(workflow.steps):
        if not isinstance(step.worker, int) or not 0 <= step.worker < len(preset.members):
            raise UsageError(
                f"step {index}: {preset.name} has no worker {step.worker!r}; it has 0 to {len(preset.members) - 1}"
            )


@dataclass(frozen=True, slots=True)
class _Conditions:
    """What one simulation depends on besides its workflow."""

    question: Known
    stream: str
    prefix: tuple[int, ...]
    previous: tuple[str, State] | None
    max_tokens: int


def _simulated_run(workflow: Workflow, states: list[State], conditions: _Conditions) -> SimulatedRun:
    total, usd, seconds = Usage(), 0.0, {}
    for index in sorted(graph_of(workflow).live):
        profile = PROFILES[states[index].agent]
        usage = _usage(workflow, states, index, conditions)
        total, usd = total + usage, usd + usd_of(profile, usage)
        seconds[index] = seconds_of(profile, usage)
    last = states[-1]
    right = isinstance(last, Attempt) and bool(last.answer == RIGHT) and not last.part
    return SimulatedRun(right, tuple(states), total, usd, graph_of(workflow).critical_path(seconds).length)


def _usage(workflow: Workflow, states: list[State], index: int, conditions: _Conditions) -> Usage:
    step, state, this = workflow.steps[index], states[index], conditions.question
    texts = [this.item.question, GAP, step.subtask, *(workflow.steps[seen].subtask for seen in workflow.sees(index))]
    seen = [states[earlier] for earlier in workflow.sees(index)]
    if conditions.previous is not None and step.access == ALL:
        texts, seen = [*texts, conditions.previous[0]], [conditions.previous[1], *seen]
    key = call_key(_SCALARS, this.latents.key, state.agent, (*conditions.prefix, index), conditions.stream)
    chars = sum(map(len, texts))
    parts = this.preset.constants(this.item.family).parts
    return usage_of(state, seen, this.domain, parts=parts, asked_chars=chars, key=key, max_tokens=conditions.max_tokens)
