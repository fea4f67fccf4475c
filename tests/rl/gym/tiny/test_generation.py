"""Completions that end with their reasoning prefix."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch", reason="needs torch and trl, in the extra rl")
pytest.importorskip("trl", reason="needs torch and trl, in the extra rl")

from tests.rl.gym.tiny.test_sft_rows import a_gym_setup, new_model
from wfdsl_rl.gym.tiny.generation import write, write_all, write_only_prefixes
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


def test_many_completions_may_be_the_likeliest_ones_and_end_with_their_line(tmp_path: Path) -> None:
    setup = a_gym_setup(tmp_path)
    tokenizer, network = model = load_model(new_model(setup))
    asked, begun = [chat("?"), chat("? ?")], ["math a0 b2 SV Sa0 Vb2\n", "math"]
    first, _ = write(network, tokenizer, asked, max_tokens=1, temperature=0.0, prefixes=begun)
    assert first == f"{begun[0]}\n"  # of random weights, but always the same

    greedy = write_all(setup.train.base, 0, model, asked, begun, greedy=True)
    ended = write(network, tokenizer, asked, max_tokens=8, temperature=0.0, prefixes=begun, last="\n")
    listed = write_all(setup.train.base, 0, model, asked, begun, greedy=True, only_prefix=True)

    assert greedy == write_all(setup.train.base, 1, model, asked, begun, greedy=True)
    assert greedy[0].startswith(f"{begun[0]}\n\n")
    assert ended[0] == f"{begun[0]}\n"
    assert listed == [f"{begun[0]}\n{LISTS}", greedy[1]]
