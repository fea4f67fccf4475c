"""What every worker promises, as checks that can be run on any: ours, and those that you write.

    from wfdsl.workers.conformance import check_worker
    await check_worker(my_worker)

Each check takes a worker that is ready to answer, and raises `AssertionError` with what was promised and what came
instead. They ask a handful of tiny questions, so a model that costs money costs a fraction of a cent.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, get_args

from wfdsl.protocols import Call, Finish, Message, Reply, Usage, Worker, WorkerFailure
from wfdsl.workers.endings import is_blank

_PROMPT_S: Final = 5.0
"""A cancelled call must have ended after this many seconds. Our choice; generous, because machines are busy."""
_CONCURRENT_CALLS: Final = 5


async def check_worker(worker: Worker, *, question: str = "Say hello.") -> None:
    """Run every check.

    Raises:
        AssertionError: the worker breaks a promise.
    """
    for check in CHECKS:
        await check(worker, question)


async def check_reply(worker: Worker, question: str) -> None:
    """It returns a `Reply`: a text, a known finish, and counts that are not negative."""
    reply = await worker(_call(question))

    _promise(isinstance(reply, Reply), f"a worker returns a Reply, not {type(reply).__name__}")
    _promise(isinstance(reply.text, str), f"the text of a reply is a str, not {type(reply.text).__name__}")
    _promise(reply.finish in get_args(Finish), f"finish is one of {get_args(Finish)}, not {reply.finish!r}")
    _promise(not is_blank(reply.text) or reply.finish not in ("stop", "length"), 'a blank text has the finish "empty"')
    _promise(isinstance(reply.usage, Usage), "the usage of a reply is a Usage")
    used = reply.usage
    counts = (used.input_tokens, used.output_tokens, used.thinking_tokens, used.cached_tokens)
    _promise(min(counts) >= 0, f"token counts are not negative: {used}")


async def check_messages_untouched(worker: Worker, question: str) -> None:
    """It does not change the messages of a call: other steps are shown the same ones."""
    messages: list[Message] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": question},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": question},
    ]
    before = copy.deepcopy(messages)

    await worker(Call(tuple(messages)))

    _promise(messages == before, f"a worker leaves the messages alone; they were {before}, and are {messages}")


async def check_deltas_join(worker: Worker, question: str) -> None:
    """Pieces, if it gives any, joined are the text."""
    pieces: list[str] = []

    reply = await worker(_call(question, on_delta=pieces.append))

    joined = "".join(pieces)
    _promise(
        not pieces or joined == reply.text, f"pieces join to the text; they join to {joined!r}, not {reply.text!r}"
    )


async def check_deadline(worker: Worker, question: str) -> None:
    """A deadline that has passed is a failure that may be tried again, and nothing is sent."""
    past = asyncio.get_running_loop().time() - 1.0
    try:
        reply = await worker(_call(question, deadline=past))
    except WorkerFailure as failure:
        _promise(failure.retryable, "a call that came too late may be tried again: retryable=True")
        _promise(not failure.sent, "a call that came too late is not sent: sent=False")
        return
    _promise(False, f"a call whose deadline has passed raises WorkerFailure; it returned {reply!r}")  # noqa: FBT003


async def check_cancellation(worker: Worker, question: str) -> None:
    """A cancelled call ends at once, and with CancelledError; the worker is fit for the next one."""
    task = asyncio.ensure_future(worker(_call(question)))
    await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=_PROMPT_S)
    _promise(bool(done), f"a cancelled call ends within {_PROMPT_S:g} s")
    _promise(task.cancelled() or task.exception() is None, "a cancelled call ends with CancelledError")

    reply = await worker(_call(question))

    _promise(isinstance(reply, Reply), "a worker answers after a call to it was cancelled")


async def check_concurrency(worker: Worker, question: str) -> None:
    """Calls at the same time do not mix: each one's pieces join to its own text."""
    pieces: list[list[str]] = [[] for _ in range(_CONCURRENT_CALLS)]
    calls = [_call(f"{question} ({index})", on_delta=pieces[index].append) for index in range(_CONCURRENT_CALLS)]

    replies: Sequence[Reply] = await asyncio.gather(*(worker(call) for call in calls))

    for index, reply in enumerate(replies):
        joined = "".join(pieces[index])
        _promise(not joined or joined == reply.text, f"call {index} got pieces of another one: {joined!r}")


CHECKS: Final[tuple[Callable[[Worker, str], Awaitable[None]], ...]] = (
    check_reply,
    check_messages_untouched,
    check_deltas_join,
    check_deadline,
    check_cancellation,
    check_concurrency,
)
"""Every check that needs nothing but a worker and a question."""


def _call(question: str, **fields: object) -> Call:
    return Call(({"role": "user", "content": question},), **fields)  # type: ignore[arg-type]


def _promise(kept: bool, promise: str) -> None:  # noqa: FBT001
    if not kept:
        raise AssertionError(promise)
