"""What rows have in common is computed once: the same numbers as with TRL's copies, from fewer tokens."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch and trl, in the extra rl")
pytest.importorskip("trl", reason="needs torch and trl, in the extra rl")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM  # noqa: E402
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


def scored(model: Any, prompts: list[list[int]], completions: list[list[int]], *, sft: bool = False) -> Any:
    """As TRL asks: prompts of GRPO padded on the left, rows on the right, a label for each token of completions."""
    width = 0 if sft else max(map(len, prompts))
    begun = [[PAD] * (width - len(prompt)) + prompt for prompt in prompts]
    rows = [prompt + said for prompt, said in zip(begun, completions, strict=True)]
    input_ids = torch.tensor([row + [PAD] * (max(map(len, rows)) - len(row)) for row in rows])
    attention_mask = (input_ids != PAD).long()
    labels = input_ids.masked_fill(attention_mask == 0, -100)
    for label, prompt in zip(labels, begun, strict=True):
        label[: len(prompt)] = -100
    more = {"use_cache": False} if sft else {}
    return model(input_ids=input_ids, attention_mask=attention_mask, labels=labels, fused_lm_head=True, **more)


def compared(*rows: Any, **more: Any) -> None:
    """Scores and gradients, with the cache and without it."""
    found = []
    for shared in (False, True):
        model = a_model(shared=shared)
        out = scored(model, *rows, **more)
        (out.log_probs * torch.linspace(-1, 1, len(rows[0]))[:, None] - 0.1 * out.entropy).sum().backward()
        gradients = torch.cat([each.grad.flatten() for each in model.parameters()])
        found.append((out.log_probs, out.entropy, out.label_mask, gradients))
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, atol=2e-5, rtol=1e-4)


words = st.lists(st.integers(2, WORDS - 1), min_size=1, max_size=6)
several = st.lists(words, min_size=1, max_size=3, unique_by=tuple)


@given(
    begin=st.just([]) | words,
    ends=several,
    picks=st.lists(st.integers(0, 2), min_size=2, max_size=6),
    said=st.lists(words, min_size=1, max_size=6),
)
@settings(max_examples=25, deadline=None)
def test_scores_and_gradients_are_those_of_copied_prompts(
    begin: list[int], ends: list[list[int]], picks: list[int], said: list[list[int]]
) -> None:
    """Prompts that begin alike, of several lengths, and completions that may be equal."""
    compared([begin + ends[pick % len(ends)] for pick in picks], [said[pick % len(said)] for pick in range(len(picks))])


@given(begin=words, ends=st.lists(words, min_size=2, max_size=5), said=st.lists(words, min_size=5, max_size=5))
@settings(max_examples=25, deadline=None)
def test_prompts_of_sft_that_begin_alike_have_the_same_scores_and_gradients(
    begin: list[int], ends: list[list[int]], said: list[list[int]]
) -> None:
    compared([begin + end for end in ends], [[*each, END] for each in said[: len(ends)]], sft=True)


@given(begin=st.just([]) | words, ends=several, copies=st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_the_same_is_written(begin: list[int], ends: list[list[int]], copies: int) -> None:
    rows = [begin + end for end in ends for _ in range(copies)]
    said = []
    for shared in (False, True):
        torch.manual_seed(1)
        said.append(written(a_model(shared=shared), rows, max_new_tokens=12, do_sample=True, top_k=0))

    assert torch.equal(*said)


def written(model: Any, prompts: list[list[int]], **more: Any) -> Any:
    """As TRL asks."""
    width = max(map(len, prompts))
    return model.generate(
        input_ids=torch.tensor([[PAD] * (width - len(row)) + row for row in prompts]),
        attention_mask=torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in prompts]),
        generation_config=GenerationConfig(eos_token_id=END, pad_token_id=PAD, **more),
    )


def test_what_is_worth_most_is_computed_once_but_for_a_last_token_and_different_ones_once_each() -> None:
    model, read = a_model(shared=True), list[tuple[int, ...]]()
    model.model.register_forward_hook(lambda _, __, out: read.append(tuple(out.last_hidden_state.shape[:2])))
    said = [[3, END], [4, END], [6, END], [7, END]]

    scored(model, [[5, 6, 7]] * 4 + [[8, 9]] * 4, said * 2)
    scored(model, [[5, 6, 7], [8, 9]], [[3, END]] * 2)
    scored(model, [[5, 6, 7, 8]] * 2 + [[5, 6, 4, 8]] * 2, [*said[:2], *said[:2]])
    scored(model, [[5, 6, 7, 8], [5, 6, 4, 8], [5, 6, 4, 7]], [[3, END]] * 3)
    assert read == [(2, 2), (8, 3), (2, 5), (1, 2), (2, 1), (4, 3), (1, 2), (2, 1), (3, 3)]

    read.clear()
    scored(model, [[5, 6, 7]] * 4, [[3, END], [4, END]] * 2)
    scored(model, [[5, 6, 7, 8, 9]] * 2 + [[5, 6, 4, 8]] * 2, [*said[:2], *said[:2]])
    written(model, [[5, 6, 7]] * 4, max_new_tokens=1)
    written(model, [[5, 6, 7, 8, 9]] * 4 + [[5, 6, 4]] * 4, max_new_tokens=1)
    assert read == [(1, 2), (2, 3), (1, 2), (2, 2), (4, 3), (1, 2), (4, 1), (1, 2), (2, 2), (8, 1)]


def test_a_model_without_keys_and_values_is_named_as_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    model = a_model(shared=False)
    monkeypatch.setattr(model.config, "use_cache", False)
    inner = model.forward
    monkeypatch.setattr(model, "forward", lambda **named: inner(**{**named, "use_cache": False}))
    share_prompts(model)

    with pytest.raises(UsageError, match=r"train.prefix_cache: this model does not keep its past"):
        scored(model, [[5, 6, 7]] * 2, [[3, END], [4, END]])
