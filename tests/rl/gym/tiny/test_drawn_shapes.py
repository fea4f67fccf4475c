"""Shapes that are drawn by what they were worth, steps that code changes, and the advantages of tokens."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch", reason="needs torch and trl, in the extra rl")
pytest.importorskip("trl", reason="needs torch and trl, in the extra rl")

import torch

from tests.rl.gym.tiny.test_sft_rows import TINY_GYM, a_gym_setup, new_model, sft_rows
from wfdsl.errors import UsageError
from wfdsl_rl.gym.tiny.drawn_shapes import DrawnShapes, ShapeWorth, fits, steps_at_random, variants, with_indices
from wfdsl_rl.gym.tiny.synthetic import PART_SHAPES
from wfdsl_rl.training.checkpoints import load_model

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PROMPT = "low: 2 points a step<|end|><|assistant|>math a2 b0 sums low"
ROW = {"family": "sums", "price": 0.01}
ADVANTAGES = [0.3, 0.1, -0.2, -0.2]
DRAWN = {
    "reasoning_prefix": "roles",
    "parts": True,
    "only_prefix": True,
    "forced_prefix": ("base",),
    "drawn_shapes": ("base",),
}


class Words:
    """A tokenizer of one number for each word, and what of TRL's trainer writes two words after each prompt."""

    def __init__(
        self, *, training: bool = True, advantages: Sequence[float] = ADVANTAGES, softness: float = 0.1
    ) -> None:
        self.asked: list[str] = []
        self.known = torch.zeros(4, 4)
        self.lines = [" Sa1 Rb1"] * 2 + [" Sb1"] * 2
        self.trainer = SimpleNamespace(
            model=SimpleNamespace(training=training),
            processing_class=lambda texts, **_: SimpleNamespace(input_ids=[self.ids(text) for text in texts]),
            num_generations=4,
            state=SimpleNamespace(global_step=3),
            add_callback=lambda _: None,
            _generate=self.generate,
            _generate_and_score_completions=lambda inputs: self.scored(inputs, advantages),
            _get_per_token_logps_and_entropies=lambda *_: (self.known, None, None),
        )
        self.written: Any = None
        synthetic: Any = SimpleNamespace(every_shape=["S", "SV", "SR", "PFV"], shapes=self.by_length)
        self.drawn = DrawnShapes(self.trainer, synthetic, "base", fills=2, softness=softness)

    @staticmethod
    def by_length(_: str, count: int, without: Sequence[str]) -> list[str]:
        return [shape for shape in ("S", "SV", "PFV") if shape not in without][:count]

    @staticmethod
    def ids(text: str) -> list[int]:
        """Digits are themselves, other words more than 9."""
        return [int(each) if each.isdigit() else 10 + len(each) for each in text.replace("a", "a ").split()]

    def generate(self, prompts: list[str]) -> Any:
        self.asked = prompts
        return [self.ids(each) for each in prompts], [[11, 1]] * 4, None, self.lines, None, {}, None, []

    def scored(self, inputs: Any, advantages: Sequence[float]) -> dict[str, Any]:
        if not inputs:
            return {"advantages": torch.tensor(advantages)}
        self.written = self.trainer._generate([PROMPT] * len(inputs))
        return {
            "advantages": torch.tensor(advantages),
            "prompt_ids": torch.zeros(4, 2, dtype=torch.int),
            "prompt_mask": torch.ones(4, 2, dtype=torch.int),
            "completion_ids": torch.tensor([[12, 12, 2, 12], [12, 13, 0, 12]] * 2),
            "completion_mask": torch.ones(4, 4, dtype=torch.int),
        }


def test_drawn_shapes_are_asked_after_the_prompt_and_begin_the_completion_with_its_own_workers() -> None:
    words = Words()
    words.drawn.worth["sums"].values["SR"] = 1.0

    words.trainer._generate_and_score_completions([ROW] * 4)

    assert words.asked == [f"{PROMPT} SR"] * 2 + [f"{PROMPT} S"] * 2
    prompts, tokens, _, completions, *_ = words.written
    assert prompts == [words.ids(PROMPT)] * 4
    assert completions[::2] == [" SR Sa2 Rb0", " S Sb0"]
    assert tokens == [words.ids(text) for text in completions]


def test_completions_of_a_shape_differ_in_one_step() -> None:
    words = Words()
    words.drawn.worth["sums"].values["SR"] = 1.0

    words.trainer._generate_and_score_completions([ROW] * 4)

    assert words.written[3][1] in (" SR Sb0 Rb0", " SR Sa2 Ra2")
    assert words.written[3][3] == " S Sa2"


def test_variants_are_all_other_places_and_checks_of_a_step() -> None:
    rng = random.Random(0)

    assert sorted(variants(PROMPT, " la2\n", 4, rng)) == [" lb0\n", " ma2\n", " na2\n", " oa2\n"]
    assert variants(PROMPT, " Sa2 Sa2", 1, rng) in ([" Sb0 Sa2"], [" Sa2 Sb0"])
    assert variants(PROMPT, " Sa2", 3, rng) == [" Sb0"] * 3  # there is but one


@pytest.mark.parametrize("line", ["", " Sa2\n", " Sa2 Vb0 Vb0\n", " Sa2 2 Rb0\n", " Ra2 Sb0\n", " Sa2 Rd0\n"])
def test_a_line_that_does_not_fit_its_shape_is_replaced_and_imitated(line: str) -> None:
    words = Words()
    words.drawn.worth["sums"].values["SR"] = 1.0
    words.lines[0] = line

    *_, last = words.trainer._generate_and_score_completions([ROW] * 4)["advantages"].T

    shape, *steps = words.written[3][0].split()
    assert (shape, [step[0] for step in steps]) == ("SR", ["S", "R"])
    assert {step[1:] for step in steps} <= {"a2", "b0"}
    assert last.tolist() == pytest.approx([0.05, 0.05, 0.0, 0.0])


def test_steps_at_random_fit_their_shape() -> None:
    rng = random.Random(0)

    assert all(fits(PROMPT, " SVV", steps_at_random(PROMPT, " SVV", rng)) for _ in range(20))
    assert not fits(PROMPT, " SVV", " Sa2 Va2")


def test_each_token_has_an_advantage_of_its_own() -> None:
    words = Words()
    words.drawn.worth["sums"].values["SR"] = 1.0  # so much that its share is nearly all
    words.known = torch.tensor([[-9.0, -1.0, -9.0, -1.0], [-9.0, 0.0, -9.0, 0.0], [0.0] * 4, [0.0] * 4])

    shape, role, index, last = words.trainer._generate_and_score_completions([ROW] * 4)["advantages"].T

    assert shape.tolist() == pytest.approx([0.1, 0.1, 0.0, 0.0], abs=0.01)
    assert role.tolist() == pytest.approx([0.1 + 0.05, -0.1 - 0.05, 0.0, 0.0])
    assert last.tolist() == [0.0] * 4  # the completions do not differ in it
    assert index.tolist() == pytest.approx([0.05] * 4)


def test_what_shapes_gain_is_remembered_for_the_family_without_their_price() -> None:
    words = Words()
    words.drawn.worth["sums"].values["SR"] = 1.0

    words.trainer._generate_and_score_completions([ROW] * 4)

    worth = words.drawn.worth["sums"]
    assert (worth.counts["SR"], worth.counts["S"], worth.counts["PFV"]) == (1, 1, 0)
    # the first completion of SR has 0.5 more than that of S, and 0.01 for a step; it was held to be worth 1 more
    assert worth.values["SR"] == pytest.approx(1.0 + (0.51 - 1) / 2 / 5)
    assert worth.values["S"] == pytest.approx(0.0 - (0.51 - 1) / 2 / 5)


def test_evaluations_sample_their_shapes() -> None:
    words = Words(training=False)

    assert words.trainer._generate(["math a0"] * 4)[3] == words.lines
    assert words.asked == ["math a0"] * 4
    assert words.trainer._generate_and_score_completions([])["advantages"].tolist() == pytest.approx(ADVANTAGES)


@pytest.mark.parametrize(
    ("lengths", "max_steps", "allowed"), [((1, 2), 5, (1, 2)), ((1, 2, 3), 2, (1, 2)), ((1,), 5, (1,))]
)
def test_no_shape_is_drawn_that_has_a_length_which_is_not_allowed(
    lengths: Sequence[int], max_steps: int, allowed: Sequence[int], tmp_path: Path
) -> None:
    tiny = TINY_GYM.model_copy(update={**DRAWN, "lengths": {str(length): 1.0 for length in lengths} | {"4": 0.0}})
    setup = replace(a_gym_setup(tmp_path, tiny), max_steps=max_steps)
    words = Words()

    drawn = DrawnShapes(words.trainer, sft_rows(setup).synthetic, "base", fills=4, softness=0.1)

    shapes = {shape for length in allowed for shape in PART_SHAPES[length]}
    assert {*drawn.worth["sums"].values} == shapes
    words.trainer.num_generations = 4 * len(shapes)
    assert {*drawn._drawn(ROW, "")} == shapes


def test_no_length_that_is_too_long_is_shown_or_drawn(tmp_path: Path) -> None:
    setup = replace(a_gym_setup(tmp_path), max_steps=1)

    with pytest.raises(UsageError, match=r"train.tiny.lengths: no length is within conductor.max_steps = 1; .* 2, 3"):
        sft_rows(setup)


def test_more_shapes_than_there_are_cannot_be_drawn() -> None:
    words = Words()
    words.trainer.num_generations = 10

    with pytest.raises(UsageError, match=r"train\.base\.group_size: 5 shapes are wanted for a question, of 4"):
        DrawnShapes(words.trainer, words.drawn.synthetic, "base", fills=2, softness=0.1)


def test_a_higher_price_makes_short_shapes_likely() -> None:
    worth = ShapeWorth(["S", "SVVVV"])
    worth.add({"S": -0.2, "SVVVV": 0.2})

    likely = [
        max(weights, key=weights.__getitem__) for weights in (worth.log_weights(price, 0.01) for price in (0, 0.03))
    ]

    assert likely == ["SVVVV", "S"]


def test_what_was_learned_of_shapes_is_in_each_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-3").mkdir()
    places = SimpleNamespace(output_dir=str(tmp_path)), SimpleNamespace(global_step=3, is_world_process_zero=True)
    words, resumed = Words(), Words()
    words.drawn.worth["sums"].add({"S": 0.1, "SV": -0.1})

    words.drawn.on_save(*places, None)
    resumed.drawn.on_train_begin(*places, None)

    assert resumed.drawn.worth["sums"].values == words.drawn.worth["sums"].values
    assert resumed.drawn.worth["sums"].counts == words.drawn.worth["sums"].counts
    assert resumed.drawn.worth["sums"].values["S"] > 0


def test_indices_are_those_of_the_places_that_a_prompt_names() -> None:
    assert with_indices(PROMPT, " Sa9 lb1 Vc7\n") == " Sa2 lb0 Vc7\n"


def test_shapes_are_one_token_where_they_are_drawn(tmp_path: Path) -> None:
    tokenizer, _ = load_model(new_model(a_gym_setup(tmp_path, TINY_GYM.model_copy(update=DRAWN))))

    shapes = [f" {shape}" for length in (2, 3) for shape in PART_SHAPES[length]]
    assert [len(ids) for ids in tokenizer(shapes, add_special_tokens=False).input_ids] == [1] * len(shapes)
