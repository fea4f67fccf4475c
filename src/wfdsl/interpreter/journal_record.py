"""A run's record as the journal keeps it: each text once, and nothing that the request or a reply says already.

A record repeats what every step was shown, which grows with the square of the steps. Here a text is written once; where
it was used, its index in `texts` stands for it. A text that is a kept reply is the number of that call's row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, Final, TypeAlias

from wfdsl.interpreter.record import FORMAT, NOTHING, VERSION, StepRecord, as_unicode

Plain: TypeAlias = dict[str, Any]
_PLAIN_MESSAGE: Final = {"role", "content"}
_SHORT: Final = 8
"""Texts of fewer characters stay where they are. Our choice."""
_ASKED: Final = ("workflow", "question", "names", "pool")
_USAGE: Final = asdict(NOTHING)
_STEP: Final[Plain] = {each.name: each.default for each in fields(StepRecord) if each.default is not MISSING} | {
    "messages": [],
    "status": "done",
    "finish": "stop",
    "usage": _USAGE,
    "nested": [],
}
"""What is left out of a step."""
_COMPUTED: Final[Plain] = {"format": FORMAT, "answer": None, "usage": _USAGE, "paid_usd": None, "list_usd": None}
"""What a record works out by itself; readers ignore the values."""
_RUN: Final[Plain] = {
    "status": "done",
    "version": VERSION,
    "error": "",
    "names": None,
    "pool": "",
    "settings": {},
    "finished": None,
    "charged": None,
    "lost": [],
    "versions": {},
}
_INHERITED: Final = ("id", "pool")
"""What a nested run shares with the run around it."""
_ALWAYS: Final = object()
"""Equals no value: what has no default is always kept."""


def packed(record: Plain, request: Plain, replies: Mapping[str, int]) -> str:
    """The JSON text to keep. `request` is what the journal has of the run's request, `replies` the rows of texts."""
    texts = _Texts(replies)
    as_read = {**record, "settings": json.loads(json.dumps(record["settings"]))}  # a tuple is a list then
    run = _pack_run(as_read, texts, {**_asked(request), "id": record["id"]})
    return as_unicode(json.dumps({**run, "texts": texts.kept}, ensure_ascii=False, separators=(",", ":")))


def unpacked(text: str, run_id: str, request: Plain, replies: Mapping[int, str]) -> str:
    """The inverse of `packed`: the record as JSON text. `replies` are the texts of rows.

    Raises:
        ValueError, KeyError, IndexError, TypeError, AttributeError: the text was not written by `packed`.
    """
    plain = json.loads(text)
    texts = [replies[kept] if isinstance(kept, int) else kept for kept in plain.pop("texts")]
    return as_unicode(json.dumps(_unpack_run(plain, texts, {**_asked(request), "id": run_id}), ensure_ascii=False))


def packed_in_sql(record: str | None, request: str, rows: str) -> str | None:
    """`packed` for a migration: a record, a request and [row, reply] pairs as JSON; what cannot be read stays."""
    if record is None:
        return None
    try:
        return packed(json.loads(record), json.loads(request), rows_of_texts(json.loads(rows)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return record


def rows_of_texts(rows: Iterable[tuple[int, str]]) -> dict[str, int]:
    """The row of each reply's text; a reply that cannot be read is left out."""
    found: dict[str, int] = {}
    for row, reply in rows:
        try:
            found[json.loads(reply)["text"]] = row
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _asked(request: Plain) -> Plain:
    """What a request says of its record."""
    about = {name: request[name] for name in ("budget", "previous", "sample_id", "origin")}
    return {**{name: request[name] for name in _ASKED}, "settings": {**request["config"], **about}}


class _Texts:
    def __init__(self, replies: Mapping[str, int]) -> None:
        self._replies = replies
        self._known: dict[str, int] = {}
        self.kept: list[str | int] = []

    def index_of(self, text: str | None) -> str | int | None:
        """What stands for a text."""
        if text is None or len(text) < _SHORT:
            return text
        index = self._known.get(text)
        if index is None:
            index = self._known[text] = len(self.kept)
            self.kept.append(self._replies.get(text, text))
        return index


def _pack_run(run: Plain, texts: _Texts, known: Plain) -> Plain:
    """The run without what is usual, or known from the request or the run around it."""
    usual = {**_RUN, **known}
    kept = {name: value for name, value in run.items() if name not in _COMPUTED and value != usual.get(name, _ALWAYS)}
    if "question" in kept:
        question = kept["question"]
        kept["question"] = texts.index_of(question) if isinstance(question, str) else _pack_messages(question, texts)
    inside = {name: run[name] for name in _INHERITED}
    steps = zip(run["steps"], run["workflow"], strict=True)
    return {**kept, "steps": [_pack_step(step, {"worker": asked["worker"]}, texts, inside) for step, asked in steps]}


def _unpack_run(plain: Plain, texts: list[str], known: Plain) -> Plain:
    run = {**_COMPUTED, **_RUN, **known, **plain}
    if "question" in plain:
        question = plain["question"]
        run["question"] = _unpack_messages(question, texts) if isinstance(question, list) else _text(question, texts)
    inside = {name: run[name] for name in _INHERITED}
    steps = enumerate(zip(plain["steps"], run["workflow"], strict=True))
    run["steps"] = [
        _unpack_step(step, {"step": index, "worker": asked["worker"]}, texts, inside) for index, (step, asked) in steps
    ]
    return run


def _pack_step(step: Plain, known: Plain, texts: _Texts, inside: Plain) -> Plain:
    usual = {**_STEP, **known}
    kept = {name: value for name, value in step.items() if name != "step" and value != usual.get(name, _ALWAYS)}
    if "messages" in kept:
        kept["messages"] = _pack_messages(kept["messages"], texts)
    if "response" in kept:
        kept["response"] = texts.index_of(kept["response"])
    if "usage" in kept:
        kept["usage"] = {name: count for name, count in kept["usage"].items() if count}
    if "nested" in kept:
        kept["nested"] = [_pack_run(run, texts, inside) for run in kept["nested"]]
    return kept


def _unpack_step(plain: Plain, known: Plain, texts: list[str], inside: Plain) -> Plain:
    step = {**_STEP, **known, **plain}
    step["messages"] = _unpack_messages(step["messages"], texts)
    step["response"] = _text(step["response"], texts)
    step["usage"] = {**_USAGE, **step["usage"]}
    step["nested"] = [_unpack_run(run, texts, inside) for run in step["nested"]]
    return step


def _pack_messages(messages: list[Plain], texts: _Texts) -> list[Any]:
    """Role, text, role, text and so on; a message that has more than those is an object instead of its role."""
    found: list[Any] = []
    for message in messages:
        plain = message.keys() == _PLAIN_MESSAGE
        more = {name: value for name, value in message.items() if name != "content"}
        found += [message["role"] if plain else more, texts.index_of(message["content"])]
    return found


def _unpack_messages(parts: list[Any], texts: list[str]) -> list[Plain]:
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [
        {**({"role": role} if isinstance(role, str) else role), "content": _text(content, texts)}
        for role, content in pairs
    ]


def _text(kept: str | int | None, texts: list[str]) -> str | None:
    return texts[kept] if isinstance(kept, int) else kept
