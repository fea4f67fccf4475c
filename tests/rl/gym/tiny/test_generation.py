"""Training completions that end with their reasoning prefix, and shapes that are drawn for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch", reason="needs torch and trl, in the extra rl")
pytest.importorskip("trl", reason="needs torch and trl, in the extra rl")

import torch

from tests.rl.gym.tiny.test_sft_rows import TINY_GYM, a_gym_setup, new_model
from wfdsl_rl.gym.tiny.generation import DrawnShapes, two_levels, write_only_prefixes
from wfdsl_rl.gym.tiny.synthetic import SHAPES
from wfdsl_rl.training.checkpoints import load_model

if TYPE_CHECKING:
    from pathlib import Path

LISTS = 'model_id = [0, 2]\nsubtasks = ["Solve it.", "Check it."]\naccess_list = [[], [0]]'
END, BREAK = 1, 7


class Tokenizer:
    def __call__(self, text: str, *, add_special_tokens: bool) -> Any:
        assert (text, add_special_tokens) == ("\n", False)
        return SimpleNamespace(input_ids=[BREAK])


def trainer_that_writes(completions: list[Any], *, training: bool) -> Any:
    """What of TRL's trainer takes part, with fixed completions."""
    return SimpleNamespace(
        model=SimpleNamespace(training=training),
        processing_class=Tokenizer(),
        eos_token_ids=[END],
        generation_config=SimpleNamespace(eos_token_id=[END]),
        _generate=lambda _: ("prompts", "ids", None, completions, None, {}, None, []),
    )


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


@pytest.mark.parametrize(
    ("prompt", "line"),
    [
        ("low: 2 points<|end|><|assistant|>math a0 b2", " SV Sa0 Vb2"),
        ("low: 2 points<|end|><|assistant|>math a0 b2 SV", " Sa0 Vb2"),
    ],
)
def test_a_line_is_handed_on_with_its_lists_wherever_its_prefix_was_forced(prompt: str, line: str) -> None:
    trainer = trainer_that_writes([f"{line}\n"], training=True)
    write_only_prefixes(trainer)

    found = trainer._generate([prompt])

    assert found[3] == [f"{line}\n{LISTS}"]
    assert found[:3] + found[4:] == ("prompts", "ids", None, None, {}, None, [])
    assert trainer.eos_token_ids == trainer.generation_config.eos_token_id == [END, BREAK]


def test_completions_as_chats_have_their_lists_too_and_lines_without_a_workflow_none() -> None:
    trainer = trainer_that_writes([chat("math a0 b2 SV Sa0 Vb2\n"), chat("math SV\n")], training=True)
    write_only_prefixes(trainer)

    assert trainer._generate([chat("?"), chat("?")])[3] == [chat(f"math a0 b2 SV Sa0 Vb2\n{LISTS}"), chat("math SV")]


def test_evaluations_write_whole_completions() -> None:
    trainer = trainer_that_writes(["math SV Sa0 Vb2\nmodel_id"], training=False)
    write_only_prefixes(trainer)

    assert trainer._generate(["?"])[3] == ["math SV Sa0 Vb2\nmodel_id"]
    assert trainer.eos_token_ids == trainer.generation_config.eos_token_id == [END]


class Words:
    """A tokenizer of one number for each word, and what of TRL's trainer writes two words after each prompt."""

    def __init__(self, *, training: bool) -> None:
        self.asked: list[str] = []
        self.trainer = SimpleNamespace(
            model=SimpleNamespace(training=training),
            processing_class=lambda texts, **_: SimpleNamespace(input_ids=[self.ids(text) for text in texts]),
            num_generations=4,
            state=SimpleNamespace(global_step=3),
            _generate=self.generate,
            _generate_and_score_completions=lambda _: {
                "advantages": torch.tensor([3.0, 1.0, -2.0, -2.0]),
                "completion_ids": torch.zeros(4, 3),
            },
        )

    def ids(self, text: str) -> list[int]:
        return [len(word) for word in text.split()]

    def generate(self, prompts: list[str]) -> Any:
        self.asked = prompts
        return [self.ids(prompt) for prompt in prompts], [[8, 9]] * 4, None, [" to be"] * 4, None, {}, None, []


def drawn(_: str, count: int) -> list[str]:
    return ["SV", "PFV"][:count]


def test_drawn_shapes_are_asked_after_the_prompt_and_belong_to_the_completion() -> None:
    words = Words(training=True)
    shapes = DrawnShapes(words.trainer, drawn, fills=2)

    prompts, tokens, _, completions, *_ = words.trainer._generate(["math a0"] * 4)

    assert words.asked == ["math a0 SV", "math a0 SV", "math a0 PFV", "math a0 PFV"]
    assert prompts == [[4, 2]] * 4
    assert tokens == [[2, 8, 9], [2, 8, 9], [3, 8, 9], [3, 8, 9]]
    assert completions == [" SV to be", " SV to be", " PFV to be", " PFV to be"]
    assert shapes.score([])["advantages"].tolist() == [[2, 1, 1], [2, -1, -1], [-2, 0, 0], [-2, 0, 0]]


def test_evaluations_sample_their_shapes() -> None:
    words = Words(training=False)
    shapes = DrawnShapes(words.trainer, drawn, fills=2)

    assert words.trainer._generate(["math a0"] * 4)[3] == [" to be"] * 4
    assert words.asked == ["math a0"] * 4
    assert shapes.score([])["advantages"].tolist() == [3, 1, -2, -2]


def test_all_tokens_of_a_shape_have_its_advantage() -> None:
    found = two_levels(torch.tensor([1.0, 0.0, -1.0, 0.0]), [2, 2, 1, 1], fills=2, columns=3)

    assert found.tolist() == [[0.5, 0.5, 0.5], [0.5, 0.5, -0.5], [-0.5, -0.5, -0.5], [-0.5, 0.5, 0.5]]


def test_shapes_are_one_token_where_they_are_drawn(tmp_path: Path) -> None:
    config = TINY_GYM.model_copy(
        update={
            "reasoning_prefix": "roles",
            "only_prefix": True,
            "forced_prefix": ("base",),
            "drawn_shapes": ("base",),
        }
    )
    tokenizer, _ = load_model(new_model(a_gym_setup(tmp_path, config)))

    shapes = [f" {shape}" for shapes in SHAPES.values() for shape in shapes]
    assert [len(ids) for ids in tokenizer(shapes, add_special_tokens=False).input_ids] == [1] * len(shapes)
