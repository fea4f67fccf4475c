"""Samples of a request: which task each is about, which completion is scored, and the id by which it is known again."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wfdsl.server.api_errors import ApiError, shown
from wfdsl.server.keys import Caller
from wfdsl.server.request_body import json_object
from wfdsl.tasks.task import Task
from wfdsl_rl.engines.questions import Questions
from wfdsl_rl.reward import Reward
from wfdsl_rl.rows import offer_of
from wfdsl_rl.scoring import Rollout

MOST_SAMPLES: Final = 4096
"""Samples of one request. Our choice: their results come together, and hold the memory of the server until then."""
LONGEST_ID: Final = 200
_REMEMBERED: Final = 4096
"""Prompts whose task is remembered, by their hashes. Our choice."""
_SPECIAL: Final = re.compile(r"(?:\s*(?:<\|[^<>|\n]{1,40}\|>|</s>|<eos>|<pad>|<end_of_turn>))+\s*$")
"""Tokens that end a chat, as decoders write them when they do not leave them out."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion to be scored."""

    id: str
    """By which a repeated request is known; also the run's id."""
    rollout: Rollout

    def allowed(self, caller: Caller) -> Sample:
        """The same, charged to the key that it was sent with."""
        origin = {**self.rollout.origin, **({"key": caller.name} if caller.name else {})}
        return Sample(self.id, replace(self.rollout, budget=caller.account, origin=origin))

    @property
    def digest(self) -> str:
        """A hash of what is scored."""
        return self.rollout.origin["sample"]


class Tasks:
    """The tasks of the server, found by their id or by a prompt that holds the question."""

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self._tasks = tasks
        self._by_question: dict[str, list[Task]] = {}
        for task in tasks.values():
            self._by_question.setdefault(task.question, []).append(task)
        self._questions = Questions(self._by_question)
        self._seen: dict[bytes, Task] = {}

    def find(self, asked: Mapping[str, Any]) -> Task:
        """The task that a sample names by `task`, `label` or `prompt`.

        Raises:
            ApiError: there is none, or several have the question, or the prompt holds several questions.
        """
        name = asked.get("task")
        if name is not None:
            if not isinstance(name, str):
                raise _invalid(f"task must be the id of a task, a text (got {shown(name)})", "task")
            if name not in self._tasks:
                raise _unknown(f"there is no task {name!r}; the server has {len(self._tasks)} others")
            return self._tasks[name]
        label = asked.get("label")
        if isinstance(label, str) and label in self._tasks:
            return self._tasks[label]
        prompt = asked.get("prompt")
        if prompt is None:
            raise _unknown("give the id of a task of this server, as task or as label, or the prompt")
        return self._of_prompt(_text(prompt, "prompt"))

    def _of_prompt(self, prompt: str) -> Task:
        digest = hashlib.sha256(prompt.encode(errors="surrogatepass")).digest()
        if digest not in self._seen:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[digest] = self._search(prompt)
        return self._seen[digest]

    def _search(self, prompt: str) -> Task:
        held = [prompt] if prompt in self._by_question else self._questions.held(prompt)
        if not held:
            raise _unknown("the prompt holds no question of this server's tasks; give the task's id as task or label")
        longest = max(held, key=len)
        if any(each not in longest for each in held):
            raise _unknown("the prompt holds several of this server's questions; give the task's id as task or label")
        found = self._by_question[longest]
        if len(found) > 1:
            ids = ", ".join(task.id for task in found[:3])
            raise _unknown(f"the prompt's question is that of several tasks ({ids}); give one of their ids")
        return found[0]


class SampleReader:
    """Reads the samples of requests in the forms of several engines."""

    def __init__(self, reward: Reward) -> None:
        self._reward = reward
        self._tasks = Tasks(reward.tasks)

    def read(self, body: bytes, run: str) -> tuple[list[Sample], bool]:
        """The samples of a request in our own form, and whether it was a single one. `run` is put before their ids.

        Raises:
            ApiError: it is not of that form, or a task is not known.
        """
        asked = json_object(body)
        several = asked.get("samples")
        if several is None:
            return self._samples([asked], run), True
        if not isinstance(several, list) or not all(isinstance(each, dict) for each in several):
            raise _invalid("samples must be a list of objects", "samples")
        return self._samples(several, run), False

    def read_slime(self, body: bytes, run: str) -> list[Sample]:
        """The sample of a request of slime's remote reward: `prompt`, `response`, `label`.

        Raises:
            ApiError: as `read` does.
        """
        return self._samples([json_object(body)], run)

    def read_openrlhf(self, body: bytes, run: str) -> list[Sample]:
        """The samples of a request of OpenRLHF: `query` (prompt and response in one text), `prompts`, `labels`.

        Raises:
            ApiError: as `read` does; or a prompt is not in its query.
        """
        asked = json_object(body)
        queries = _list(asked.get("query", asked.get("queries")), "query")
        prompts = _list(asked.get("prompts"), "prompts")
        labels = _list(asked.get("labels") or [None] * len(queries), "labels")
        if not len(queries) == len(prompts) == len(labels):
            raise _invalid("query, prompts and labels must have the same length", "query")
        pairs = zip(queries, prompts, strict=True)
        answers = [_answer(_text(query, "query"), _text(prompt, "prompts")) for query, prompt in pairs]
        rows = zip(answers, prompts, labels, strict=True)
        return self._samples(
            ({"completion": each, "prompt": asked, "label": label} for each, asked, label in rows), run
        )

    def _samples(self, rows: Iterable[Mapping[str, Any]], run: str) -> list[Sample]:
        rows, seen = list(rows), Counter[str]()
        if len(rows) > MOST_SAMPLES:
            what = f"a request has at most {MOST_SAMPLES} samples (got {len(rows)}); send several requests"
            raise _invalid(what, "samples")
        return [self._sample(row, run, seen) for row in rows]

    def _sample(self, row: Mapping[str, Any], run: str, seen: Counter[str]) -> Sample:
        task = self._tasks.find(row)
        completion = _text(row.get("completion", row.get("response")), "completion")
        previous = _pair(row.get("previous"))
        offer = [_indices(row.get(name), name) for name in ("shown", "true")]
        digest = _digest([run, task.id, completion, previous, *offer])
        sample_id = row.get("sample_id")
        if sample_id is None:
            sample_id = f"{digest[:32]}-{seen[digest]}"
            seen[digest] += 1
        elif not isinstance(sample_id, str) or not 0 < len(sample_id) <= LONGEST_ID or not sample_id.isprintable():
            raise _invalid(f"sample_id must be 1 to {LONGEST_ID} printable characters", "sample_id")
        name = f"{run}/{sample_id}" if run else sample_id
        return Sample(
            name,
            Rollout(
                completion=completion,
                task=task,
                sample_id=name,
                offer=None if offer[1] is None else self._offer(*offer),
                previous=previous,
                executions=self._reward.executions,
                origin={"task": task.id, "sample": digest},
            ),
        )

    def _offer(self, shown: Sequence[int] | None, true: Sequence[int] | None) -> Any:
        pool = self._reward.pool
        if shown is None or true is None or len(shown) != len(true) or not set(true) <= set(pool.indices):
            raise _invalid("shown and true must be lists of the same length, true with indices of the pool", "true")
        return offer_of({"shown": shown, "true": true}, pool)


def _answer(query: str, prompt: str) -> str:
    """The response in a text that begins with the prompt, without the special tokens at its end."""
    _, found, answer = query.partition(prompt)
    if not found:
        raise _invalid("a query must hold its prompt: the response is what follows it", "query")
    return _SPECIAL.sub("", answer)


def _text(value: Any, name: str) -> str:
    """A text; of a list of chat messages, what they say."""
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        value = "\n\n".join(str(each.get("content", "")) for each in (value if name == "prompt" else value[-1:]))
    if not isinstance(value, str):
        raise _invalid(f"{name} must be a text, or a list of chat messages", name)
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise _invalid(f"{name} must be a list", name)
    return value


def _pair(value: Any) -> tuple[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, list) or [type(each) for each in value] != [str, str]:
        raise _invalid("previous must be the subtask and the response of the round before", "previous")
    return value[0], value[1]


def _indices(value: Any, name: str) -> list[int] | None:
    if value is not None and not (isinstance(value, list) and all(type(each) is int for each in value)):
        raise _invalid(f"{name} must be a list of worker indices", name)
    return value


def _digest(parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _invalid(message: str, param: str | None) -> ApiError:
    return ApiError(400, message, code="invalid_value", param=param)


def _unknown(message: str) -> ApiError:
    return ApiError(404, message, code="unknown_task", param="task")
