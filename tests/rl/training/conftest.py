"""A small world for training: three workers that each know one kind of question, and a model that is trained in it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

import pytest

from wfdsl.conductor.prompt import Prompt
from wfdsl.pool import Pool
from wfdsl_rl.tasks.task import Task

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

QUESTIONS = {"math": "What is {a} times {b}?", "choice": "Which is larger, A {a} or B {b}?", "text": "Spell {a} {b}."}
ANSWERS = {"math": ("4", "5"), "choice": ("A", "B"), "text": ("yes", "no")}
"""Right and wrong, by kind of question."""
SKILL = {"math": (0.95, 0.1, 0.1), "choice": (0.1, 0.95, 0.1), "text": (0.1, 0.1, 0.95)}


def chance(*about: object) -> float:
    """A number from 0 to 1 that the arguments fix."""
    return int(hashlib.blake2b(repr(about).encode(), digest_size=4).hexdigest(), 16) / 2**32


def _task(number: int, split: str) -> Task:
    words: tuple[Literal["math", "choice", "text"], ...] = ("math", "choice", "text")
    word = words[number % 3]
    question = QUESTIONS[word].format(a=10 + number * 7 % 89, b=3 + number * 5 % 83)
    return Task(id=f"{split}-{number}", question=question, gold=ANSWERS[word][0], kind=word)


def _worker(number: int) -> Callable[[list[dict[str, Any]]], Awaitable[str]]:
    async def answer(messages: list[dict[str, Any]]) -> str:
        first = messages[0]["content"]
        word = next(word for word, form in QUESTIONS.items() if first.startswith(form.split("{")[0]))
        return ANSWERS[word][0 if chance(number, messages) < SKILL[word][number] else 1]

    answer.__name__ = f"worker{number}"
    return answer


@pytest.fixture(scope="session")
def pool() -> Pool:
    return Pool.from_functions([_worker(number) for number in range(3)], descriptions=["m 9", "c 9", "t 9"])


@pytest.fixture(scope="session")
def tasks() -> tuple[Task, ...]:
    return tuple(_task(number, "train") for number in range(120))


@pytest.fixture(scope="session")
def eval_tasks() -> tuple[Task, ...]:
    return tuple(_task(number, "test") for number in range(200, 230))


@pytest.fixture(scope="session")
def prompt() -> Prompt:
    from importlib.resources import files

    return Prompt.load(str(files("wfdsl_rl.training") / "prompts" / "gym.toml"))
