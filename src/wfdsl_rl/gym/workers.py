"""Simulated workers: chat messages in, a reply out, drawn from `world.results_of`.

They keep nothing between calls. The same call with the same sample id gets the same reply, and calls that differ in
question, worker, step or sample are independent. A worker reads the question, the role that the last
paragraph of its own subtask gives it, and the earlier replies of workers; everything else that is written to it has no
effect.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from wfdsl.errors import UsageError
from wfdsl.protocols import PROBE, Call, Reply, Usage, WorkerFailure
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.registry import OpenWorkers
from wfdsl_rl.gym.questions import Item, read
from wfdsl_rl.gym.world import WORKERS, Answer, Plan, State, results_of, role_of

PROVIDER: Final = "gym"
_GAP: Final = "\n\n"
"""Separates the question from the first subtask; no question has an empty line in it."""
_PLANS: Final = {
    True: "Plan: name what is given, name what is asked, then go from one to the other in small steps.",
    False: "Plan: look at the question and write down what it seems to be.",
}
_STATEMENT: Final = "The answer is "
_CHARS_PER_TOKEN: Final = 4


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> SimulatedWorker:  # noqa: ARG001  (every builder takes them)
    """The worker of an entry whose provider is `gym`; `model` is its name in the world.

    Raises:
        UsageError: there is no such worker.
    """
    names = [worker.name for worker in WORKERS]
    if entry.model not in names:
        raise UsageError(f'worker "{entry.name}": the gym has no worker {entry.model!r}; it has {", ".join(names)}')
    return SimulatedWorker(names.index(entry.model))


class SimulatedWorker:
    """One worker of the world."""

    __slots__ = ("_worker",)

    def __init__(self, worker: int) -> None:
        self._worker = worker

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: the messages do not begin with a question of the gym.
        """
        reply = self._reply(call)
        if call.on_delta is not None:
            call.on_delta(reply.text)
        return reply

    def _reply(self, call: Call) -> Reply:
        name = WORKERS[self._worker].name
        users = [message["content"] for message in call.messages if message["role"] == "user"]
        if users == [PROBE]:
            return Reply("ok", "stop", Usage(len(PROBE) // _CHARS_PER_TOKEN, 1), f"simulated {name}")
        text = users[0].partition(_GAP)[0] if users else ""
        item = read(text)
        if item is None:
            shown = text if len(text) <= 80 else f"{text[:77]}..."
            raise WorkerFailure(
                f"the simulated workers of the gym only know its own questions (got {shown!r}); "
                "`--tasks gym/seven` asks such questions",
                retryable=False,
            )
        replies = [message["content"] for message in call.messages if message["role"] == "assistant"]
        seen = tuple(state for state in (_state_of(each, item) for each in replies) if state is not None)
        state = self._drawn(call, item, seen)
        written = text_of(state, item)
        usage = Usage(
            sum(len(each) for each in (*users, *replies)) // _CHARS_PER_TOKEN, len(written) // _CHARS_PER_TOKEN
        )
        return Reply(written, "stop", usage, f"simulated {name}")

    def _drawn(self, call: Call, item: Item, seen: tuple[State, ...]) -> State:
        subtask = call.messages[-1]["content"].rpartition(_GAP)[2]
        results = results_of(item.kind, self._worker, role_of(subtask), seen)
        sample = call.settings.get("seed", call.sample_id)
        left = _uniform(f"{sample}|{call.path}|{self._worker}|{item.text}")
        for result in results:
            left -= result.chance
            if left < 0:
                return result.state
        return results[-1].state

    def __repr__(self) -> str:
        return f"SimulatedWorker({WORKERS[self._worker].name})"


def _uniform(key: str) -> float:
    """A number from 0 to below 1 that follows from the key."""
    return int.from_bytes(hashlib.blake2b(key.encode(errors="replace"), digest_size=7).digest(), "big") / 2**56


def text_of(state: State, item: Item) -> str:
    """What a worker writes."""
    if isinstance(state, Plan):
        return _PLANS[state.good]
    return f"{_STATEMENT}{item.wrong[state.wrong - 1] if state.wrong else item.gold}."


@lru_cache(maxsize=65536)
def _state_of(reply: str, item: Item) -> State | None:
    """What an earlier reply says; None if it is not a reply of these workers to this question."""
    for good, plan in _PLANS.items():
        if reply == plan:
            return Plan(good)
    answer = reply.removeprefix(_STATEMENT).removesuffix(".") if reply.startswith(_STATEMENT) else ""
    if answer == item.gold:
        return Answer(0)
    return Answer(1 + item.wrong.index(answer)) if answer in item.wrong else None
