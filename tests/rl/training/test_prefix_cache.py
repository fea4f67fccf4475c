"""Prompts that are computed once: the same numbers as with TRL's copies, from fewer tokens."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch and trl, in the extra rl")
pytest.importorskip("trl", reason="needs torch and trl, in the extra rl")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from transformers import Qwen2Config, Qwen2ForCausalLM  # noqa: E402
from trl.trainer.utils import add_fused_lm_head  # noqa: E402

from wfdsl.errors import UsageError  # noqa: E402
from wfdsl_rl.training.prefix_cache import share_prompts  # noqa: E402

PAD, END, WORDS = 0, 1, 40


def a_model(*, shared: bool) -> Any:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=WORDS,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.3,
        eos_token_id=END,
        pad_token_id=PAD,
    )
    model: Any = Qwen2ForCausalLM(config)
    add_fused_lm_head(model, temperature=0.7, outputs=("log_probs", "entropy"))
    if shared:
        share_prompts(model)
    return model


def scored(model: Any, prompts: list[list[int]], completions: list[list[int]]) -> Any:
    """As TRL asks: prompts padded on the left, completions on the right, a label for each token of the latter."""
    width, length = max(map(len, prompts)), max(map(len, completions))
    ids = [
        [PAD] * (width - len(prompt)) + prompt + said + [PAD] * (length - len(said))
        for prompt, said in zip(prompts, completions, strict=True)
    ]
    seen = [
        [0] * (width - len(prompt)) + [1] * (len(prompt) + len(said)) + [0] * (length - len(said))
        for prompt, said in zip(prompts, completions, strict=True)
    ]
    input_ids, attention_mask = torch.tensor(ids), torch.tensor(seen)
    labels = input_ids.masked_fill(attention_mask == 0, -100)
    labels[:, :width] = -100
    return model(input_ids=input_ids, attention_mask=attention_mask, labels=labels, fused_lm_head=True)


words = st.lists(st.integers(2, WORDS - 1), min_size=1, max_size=6)


@given(
    prompts=st.lists(words, min_size=1, max_size=3, unique_by=tuple),
    picks=st.lists(st.integers(0, 2), min_size=2, max_size=6),
    said=st.lists(words, min_size=6, max_size=6),
)
@settings(max_examples=25, deadline=None)
def test_scores_and_gradients_are_those_of_copied_prompts(
    prompts: list[list[int]], picks: list[int], said: list[list[int]]
) -> None:
    rows = [prompts[pick % len(prompts)] for pick in picks]
    found = []
    for shared in (False, True):
        model = a_model(shared=shared)
        out = scored(model, rows, said[: len(rows)])
        (out.log_probs * torch.linspace(-1, 1, len(rows))[:, None] - 0.1 * out.entropy).sum().backward()
        gradients = torch.cat([each.grad.flatten() for each in model.parameters()])
        found.append((out.log_probs, out.entropy, out.label_mask, gradients))

    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, atol=2e-5, rtol=1e-4)


@given(prompts=st.lists(words, min_size=1, max_size=3, unique_by=tuple), copies=st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_the_same_is_written(prompts: list[list[int]], copies: int) -> None:
    width = max(map(len, prompts))
    rows = [prompt for prompt in prompts for _ in range(copies)]
    asked = {
        "input_ids": torch.tensor([[PAD] * (width - len(row)) + row for row in rows]),
        "attention_mask": torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows]),
    }
    said = []
    for shared in (False, True):
        model = a_model(shared=shared)
        torch.manual_seed(1)
        said.append(model.generate(**asked, max_new_tokens=12, do_sample=True, top_k=0))

    assert torch.equal(*said)


def test_a_prompt_is_computed_once_but_for_its_last_token_and_different_ones_as_they_came() -> None:
    model, read = a_model(shared=True), []
    model.model.register_forward_hook(lambda _, __, out: read.append(tuple(out.last_hidden_state.shape[:2])))

    scored(model, [[5, 6, 7]] * 4 + [[8, 9]] * 4, [[3, END]] * 8)
    scored(model, [[5, 6, 7], [8, 9]], [[3, END]] * 2)
    assert read == [(2, 2), (8, 3), (2, 5)]

    read.clear()
    model.generate(
        input_ids=torch.tensor([[5, 6, 7]] * 4), attention_mask=torch.ones(4, 3, dtype=torch.long), max_new_tokens=1
    )
    assert read == [(1, 2), (4, 1)]


def test_a_model_without_keys_and_values_is_named_as_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    model = a_model(shared=False)
    monkeypatch.setattr(model.config, "use_cache", False)
    inner = model.forward
    monkeypatch.setattr(model, "forward", lambda **named: inner(**{**named, "use_cache": False}))
    share_prompts(model)

    with pytest.raises(UsageError, match=r"train.prefix_cache: this model does not keep its past"):
        scored(model, [[5, 6, 7]] * 2, [[3, END]] * 2)
