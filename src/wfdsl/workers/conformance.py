"""What every worker promises, as a check that can be run on any: ours, and those that you write.

    from wfdsl.testing import check_worker
    await check_worker(my_worker)

It asks a handful of tiny questions, so a model that costs money costs a fraction of a cent.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from typing import Final, get_args

from wfdsl.protocols import Call, Finish, Message, Reply, Usage, Worker, WorkerFailure
from wfdsl.workers.endings import is_blank

_PROMPT_S: Final = 5.0
"""A cancelled call must have ended after this many seconds. Our choice; generous, because machines are busy."""
_CONCURRENT_CALLS: Final = 5


async def check_worker(worker: Worker, *, question: str = "Say hello.") -> None:
    """Check replies to calls at the same time, deadlines and cancelled calls.

    Raises:
        AssertionError: the worker breaks a promise; the message has what was promised and what came instead.
    """
    await _check_replies(worker, question)
    await _check_deadline(worker, question)
    await _check_cancellation(worker, question)


async def _check_replies(worker: Worker, question: str) -> None:
    """Each call gets a reply of its own, streamed or not, and its messages stay as they are: other steps see them."""
    talks: list[list[Message]] = [
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": question},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": f"{question} ({number})"},
        ]
        for number in range(_CONCURRENT_CALLS)
    ]
    before = copy.deepcopy(talks)
    pieces: list[list[str]] = [[] for _ in talks]
    sinks = [None, *(got.append for got in pieces[1:])]

    calls = (Call(tuple(talk), on_delta=sink) for talk, sink in zip(talks, sinks, strict=True))
    replies: Sequence[Reply] = await asyncio.gather(*map(worker, calls))

    _promise(talks == before, f"a worker leaves the messages alone; they were {before}, and are {talks}")
    for reply, got in zip(replies, pieces, strict=True):
        _check_reply(reply)
        joined = "".join(got)
        _promise(not got or joined == reply.text, f"pieces join to the text; they are {joined!r}, not {reply.text!r}")


def _check_reply(reply: Reply) -> None:
    """It is a `Reply`: a text, a known finish, and counts that are not negative."""
    _promise(isinstance(reply, Reply), f"a worker returns a Reply, not {type(reply).__name__}")
    _promise(isinstance(reply.text, str), f"the text of a reply is a str, not {type(reply.text).__name__}")
    _promise(reply.finish in get_args(Finish), f"finish is one of {get_args(Finish)}, not {reply.finish!r}")
    _promise(not is_blank(reply.text) or reply.finish not in ("stop", "length"), 'a blank text has the finish "empty"')
    _promise(isinstance(reply.usage, Usage), "the usage of a reply is a Usage")
    used = reply.usage
    counts = (used.input_tokens, used.output_tokens, used.thinking_tokens, used.cached_tokens)
    _promise(min(counts) >= 0, f"token counts are not negative: {used}")


async def _check_deadline(worker: Worker, question: str) -> None:
    """A deadline that has passed is a failure that may be tried again, and nothing is sent."""
    past = asyncio.get_running_loop().time() - 1.0
    try:
        reply = await worker(_call(question)._replace(deadline=past))
    except WorkerFailure as failure:
        _promise(failure.retryable, "a call that came too late may be tried again: retryable=True")
        _promise(not failure.sent, "a call that came too late is not sent: sent=False")
        return
    raise AssertionError(f"a call whose deadline has passed raises WorkerFailure; it returned {reply!r}")


async def _check_cancellation(worker: Worker, question: str) -> None:
    """A cancelled call ends at once, and with CancelledError; the worker is fit for the next one."""
    task = asyncio.ensure_future(worker(_call(question)))
    await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=_PROMPT_S)
    _promise(bool(done), f"a cancelled call ends within {_PROMPT_S:g} s")
    _promise(task.cancelled() or task.exception() is None, "a cancelled call ends with CancelledError")

    _check_reply(await worker(_call(question)))


def _call(question: str) -> Call:
    return Call(({"role": "user", "content": question},))


def _promise(kept: bool, promise: str) -> None:  # noqa: FBT001
    if not kept:
        raise AssertionError(promise)
