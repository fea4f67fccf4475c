"""Replies keep the pool's text policy, whole and piece by piece."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workers.wire import call

from wfdsl.protocols import Call, Reply, WorkerFailure
from wfdsl.workers.entry import PoolSettings, WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl.workers.scripted import ScriptedWorker
from wfdsl.workers.text_policy import PolicedWorker, clean


class _InPieces:
    """A worker that streams exactly these pieces."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    async def __call__(self, call: Call) -> Reply:
        for piece in self._pieces:
            if call.on_delta is not None:
                call.on_delta(piece)
        return Reply("".join(self._pieces))


def _pool(text: str, **settings: object) -> Pool:
    entry = WorkerEntry(name="w", provider="scripted")
    return Pool([entry], settings=PoolSettings(**settings), workers={"w": ScriptedWorker([text])})  # type: ignore[arg-type]


async def test_a_long_reply_is_cut_with_a_mark_and_counts_as_cut() -> None:
    reply = await _pool("abcdefghij", max_reply_chars=4).worker(0)(call())

    assert reply.text == "abcd\n[cut here: the reply went on for 6 characters]"
    assert reply.finish == "length"


async def test_a_long_reply_is_a_failure_where_the_pool_says_so() -> None:
    with pytest.raises(WorkerFailure, match="10 characters, more than the 4") as failed:
        await _pool("abcdefghij", max_reply_chars=4, oversize="refuse").worker(0)(call())

    assert not failed.value.retryable


async def test_a_reply_of_the_greatest_length_stays_whole() -> None:
    reply = await _pool("abcd", max_reply_chars=4).worker(0)(call())

    assert (reply.text, reply.finish) == ("abcd", "stop")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\tb\nc\rd", "a\tb\nc\rd"),
        ("\x1b[31mred\x07", "\ufffd[31mred\ufffd"),
        ("a\x00b\x7fc\x9bd", "a\ufffdb\ufffdc\ufffdd"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d!", "\ufffd!"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("naïve 漢字 😀", "naïve 漢字 😀"),
    ],
)
def test_control_characters_and_lone_surrogates_are_replaced(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


_ODD = st.text(st.sampled_from("ab\n\x00\x1b\x9b😀\ud83d\ude00\ud800\udc00"), max_size=6)


@given(st.lists(_ODD, max_size=6), st.integers(1, 12))
async def test_pieces_join_to_the_text_wherever_they_are_cut(pieces: list[str], max_chars: int) -> None:
    shown: list[str] = []

    reply = await PolicedWorker(_InPieces(pieces), max_chars, "cut")(call(on_delta=shown.append))

    assert "".join(shown) == reply.text
    reply.text.encode("utf-8")
