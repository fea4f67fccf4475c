"""Replies keep the pool's text policy, whole and piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workers.wire import call

from wfdsl import Pool, Run, Workflow
from wfdsl.interpreter.journal_reading import run_of
from wfdsl.interpreter.running import run
from wfdsl.protocols import Call, Finish, Reply
from wfdsl.workers.entry import PoolSettings, WorkerEntry
from wfdsl.workers.scripted import ScriptedWorker
from wfdsl.workers.text_policy import PolicedWorker, clean

if TYPE_CHECKING:
    from pathlib import Path


class _InPieces:
    """A worker that streams exactly these pieces."""

    def __init__(self, pieces: list[str], finish: Finish = "stop") -> None:
        self._pieces = pieces
        self._finish = finish

    async def __call__(self, call: Call) -> Reply:
        for piece in self._pieces:
            if call.on_delta is not None:
                call.on_delta(piece)
        return Reply("".join(self._pieces), self._finish)


def _pool(text: str, **settings: object) -> Pool:
    entry = WorkerEntry(name="w", provider="scripted")
    return Pool([entry], settings=PoolSettings(**settings), workers={"w": ScriptedWorker([text])})  # type: ignore[arg-type]


async def test_a_long_reply_is_cut_with_a_mark_and_counts_as_cut() -> None:
    reply = await _pool("abcdefghij", max_reply_chars=4).worker(0)(call())

    assert reply.text == "abcd\n[cut here: the reply continued for 6 characters]"
    assert reply.finish == "length"


THINKING: list[tuple[str, Finish, str, str, Finish]] = [
    ("<think>Hm.\nYes.</think>\n\nIt is 42.", "stop", "It is 42.", "Hm.\nYes.", "stop"),
    (" <think></think>It is 42.", "stop", "It is 42.", "", "stop"),
    ("Hm.</think>\nIt is </think> 42.", "length", "It is </think> 42.", "Hm.", "length"),
    ("It is <think> 42.", "stop", "It is <think> 42.", "", "stop"),
    ("<think>Hm.</think>\n", "stop", "", "Hm.", "only_thinking"),
    ("[THINK]Hm.[/THINK]It is 42.", "stop", "It is 42.", "Hm.", "stop"),
    ("◁think▷Hm.◁/think▷It is 42.", "stop", "It is 42.", "Hm.", "stop"),
    ("<|channel|>analysis<|message|>Hm.<|end|>It is 42.", "stop", "It is 42.", "Hm.", "stop"),
    ("It is 42.</details>", "stop", "It is 42.</details>", "", "stop"),
    ("<Thinking >Hm.", "length", "", "Hm.", "out_of_tokens"),
    ("<think>Hm.", "length", "", "Hm.", "out_of_tokens"),
    ("<think>\x1c\ud83d\ude00</think>\x1c\ud83d\ude00", "stop", "\ufffd\U0001f600", "\ufffd\U0001f600", "stop"),
]


@pytest.mark.parametrize(("written", "ended", "text", "thinking", "finish"), THINKING)
@pytest.mark.parametrize("size", [1, 3, 100])
async def test_thinking_is_taken_out_of_a_reply_and_its_pieces_and_kept_apart(
    written: str, ended: Finish, text: str, thinking: str, finish: str, size: int
) -> None:
    pieces = [written[start : start + size] for start in range(0, len(written), size)]
    worker = PolicedWorker(_InPieces(pieces, ended), 100, strip_thinking=True)
    shown: list[str] = []

    reply = await worker(call(on_delta=shown.append))

    assert (reply.text, reply.thinking, reply.finish) == (text, thinking, finish)
    assert "".join(shown) == text


async def test_thinking_is_in_the_record_and_not_in_what_later_steps_see(tmp_path: Path) -> None:
    entry = WorkerEntry(name="w", provider="scripted", strip_thinking=True)
    pool = Pool([entry], workers={"w": ScriptedWorker(["<think>Hm.</think>one", "<think>So.</think>two"])})
    chain = Workflow.from_lists([0, 0], ["A", "B"], [[], [0]])

    done = await run(chain, "Q", pool, journal=str(tmp_path / "journal.db"))

    assert done.answer == "two"
    assert [step.thinking for step in done.steps] == ["Hm.", "So."]
    assert "Hm." not in str(done.steps[1].messages)
    assert Run.from_json(done.to_json()) == done
    assert run_of(tmp_path / "journal.db", done.id).steps[1].thinking == "So."


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

    reply = await PolicedWorker(_InPieces(pieces), max_chars)(call(on_delta=shown.append))

    assert "".join(shown) == reply.text
    reply.text.encode("utf-8")
