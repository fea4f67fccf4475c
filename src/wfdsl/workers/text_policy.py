"""What a reply's or a failure's text may be: how long, and of which characters. The same for every worker of a pool.

Control characters could rewrite a terminal and lone surrogates cannot be stored, so each becomes U+FFFD, one for one.
Thinking at the start of a text is taken out where a worker's entry says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from wfdsl.language.reasoning import reasoning_end, split_reasoning
from wfdsl.protocols import Call, Reply, Worker, WorkerFailure
from wfdsl.workers.endings import ended

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """The text with surrogate pairs joined, and control characters and lone surrogates replaced by U+FFFD."""
    if not _FORBIDDEN.search(text):
        return text
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _FORBIDDEN.sub("\ufffd", text)


class PolicedWorker:
    """A worker whose replies, and pieces of replies, keep a pool's text policy."""

    def __init__(self, worker: Worker, max_chars: int, *, strip_thinking: bool = False) -> None:
        self.worker = worker
        self._max_chars = max_chars
        self._strip_thinking = strip_thinking

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: there is no usable reply.
        """
        messages, path, sample_id, settings, deadline, sink, run = call
        pieces = None if sink is None else _Pieces(sink, self._max_chars, strip_thinking=self._strip_thinking)
        try:
            reply = self._policed(await self.worker(Call(messages, path, sample_id, settings, deadline, pieces, run)))
        except WorkerFailure as failure:
            failure.args = (clean(str(failure)), *failure.args[1:])  # it may quote what a server wrote
            raise
        if pieces is not None:
            pieces.finish(reply.text)
        return reply

    def _policed(self, reply: Reply) -> Reply:
        if not isinstance(reply, Reply):
            raise WorkerFailure(
                f"the worker returned {type(reply).__name__}, not a Reply: "
                "`Pool.from_functions([f]).worker(0)` makes a worker of `async def f(messages) -> str`",
                retryable=False,
            )
        text = clean(reply.text)
        if self._strip_thinking:
            thinking, text = split_reasoning(text)
            finish = reply.finish
            if finish in ("stop", "length"):
                finish = ended(text, finish, thinking=bool(thinking))
            reply = replace(reply, thinking=thinking[: self._max_chars], finish=finish)
        if len(text) > self._max_chars:
            left_out = len(text) - self._max_chars
            text = f"{text[: self._max_chars]}\n[cut here: the reply continued for {left_out:,} characters]"
            reply = replace(reply, finish="length")
        model = clean(reply.model)
        return reply if (text, model) == (reply.text, reply.model) else replace(reply, text=text, model=model)


class _Pieces:
    """Cleans pieces as they arrive, so that joined they are the cleaned, cut text.

    Where thinking is to be taken out, nothing is shown before its end, or the end of the text.
    """

    _shown_chars, _held, _streamed = 0, "", False

    def __init__(self, sink: Callable[[str], None], max_chars: int, *, strip_thinking: bool) -> None:
        self._sink, self._max_chars, self._strips = sink, max_chars, strip_thinking
        self._thinks = "" if strip_thinking else None
        """The thinking so far; None outside of it."""

    def __call__(self, piece: str) -> None:
        self._streamed = self._streamed or piece != ""
        text = self._held + piece
        # The second half of a surrogate pair may come with the next piece.
        split = len(text) - ("\ud800" <= text[-1:] <= "\udbff")
        self._held = text[split:]
        visible = clean(text[:split])
        if self._thinks is not None:
            searched, said = len(self._thinks), self._thinks + visible
            end = reasoning_end(said, searched)
            visible = said[end.end() :] if end else ""
            self._thinks = None if end else said
        if self._strips and not self._shown_chars:
            visible = visible.lstrip()
        self._show(visible[: self._max_chars - self._shown_chars])

    def finish(self, text: str) -> None:
        """Show what the pieces lacked: a held half, and the mark of a cut."""
        if self._streamed:
            self._show(text[self._shown_chars :])

    def _show(self, text: str) -> None:
        if text:
            self._shown_chars += len(text)
            self._sink(text)
