"""Draws never change: presets are fitted to these very questions, and results that were published name them.

A wording, a table or a rule that is changed on purpose needs a new version of every preset, and then these figures.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import blake2b

import pytest

from wfdsl_rl.gym.world.families import draw
from wfdsl_rl.gym.world.families.form import Item, Split
from wfdsl_rl.gym.world.presets import EASE
from wfdsl_rl.gym.world.profiles import Domain


def content(item: Item) -> str:
    known = asdict(item)
    known["tests"] = item.tests and item.tests.model_dump()
    if not item.parts:
        del known["parts"]
    return json.dumps(known, sort_keys=True)


@pytest.mark.parametrize(
    ("kind", "split", "digest"),
    [
        ("math", "train", "8d11181a1ee74e5d"),
        ("math", "test", "6aad6eee4e0a6507"),
        ("choice", "train", "1a6f00a0d7b76da6"),
        ("choice", "test", "3aef60911f0d5ce4"),
        ("text", "train", "381ad6a1a44aa055"),
        ("text", "test", "5289297a672db6f0"),
        ("code", "train", "c3f571bcb1511499"),
        ("code", "test", "6c1e73be1efe53aa"),
    ],
)
def test_the_first_draws_of_a_seed_are_frozen(kind: Domain, split: Split, digest: str) -> None:
    found, families = blake2b(digest_size=8), tuple(EASE[kind])

    for index in range(250):
        found.update(content(draw(kind, 2025, index, families=families, split=split)).encode())

    assert found.hexdigest() == digest


@pytest.mark.parametrize(
    ("kind", "split", "question", "gold", "wrong", "template", "difficulty"),
    [
        (
            "math",
            "train",
            "Compute 25 percent of 220.",
            "55",
            ("550", "165", "44/5", "11/2"),
            "arithmetic.percent.train.1",
            -0.9941,
        ),
        (
            "math",
            "test",
            "Each of 5 people picks one of 7 colors. How many results are possible?",
            "16807",
            ("2520", "78125", "35", "2401"),
            "counting.codes.test.1",
            -0.0812,
        ),
        (
            "choice",
            "train",
            "What is 5.9 kg in another unit?\nA. 5900 g\nB. 59 g\nC. 590000 g\nD. 59000 g",
            "A",
            ("D", "C", "B"),
            "measures.same.train.1",
            0.6095,
        ),
        (
            "choice",
            "test",
            "Three of these are not prime. Which one is?\nA. 47\nB. 141\nC. 99\nD. 81",
            "A",
            ("C", "B", "D"),
            "numbers.prime.test.1",
            -1.7068,
        ),
        (
            "text",
            "train",
            "A film runs from 19:33 to 23:28. How long is it in minutes?",
            "235 minutes",
            ("395 minutes", "295 minutes", "175 minutes", "245 minutes", "225 minutes"),
            "units.clock.train.1",
            1.401,
        ),
        (
            "text",
            "test",
            "Change 437.5 hours into minutes.",
            "26250 minutes",
            ("43750 minutes", "15750 minutes", "437.5 minutes", "1575000 minutes", "262500 minutes"),
            "units.convert.test.0",
            1.7502,
        ),
    ],
)
def test_a_draw_can_be_read_here(
    kind: Domain, split: Split, question: str, gold: str, wrong: tuple[str, ...], template: str, difficulty: float
) -> None:
    item = draw(kind, 2025, 0, families=tuple(EASE[kind]), split=split)

    assert (item.question, item.gold, item.wrong) == (question, gold, wrong)
    assert (item.template, item.difficulty) == (template, difficulty)
