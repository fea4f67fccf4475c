"""The logits processor, on a tiny model with random weights: without a grammar it would write noise."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch, in the extra torch")
transformers = pytest.importorskip("transformers", reason="needs transformers, in the extra torch")

from wfdsl import UsageError, analyze  # noqa: E402
from wfdsl.language.constrained import llguidance_lark, max_tokens_for  # noqa: E402
from wfdsl.workers.constrained_decoding import GrammarLogits, grammar_tokenizer  # noqa: E402

MORE_LOGITS = 7  # than the tokenizer has tokens, as in many models


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """Bytes as a byte-level tokenizer writes them, and an end."""
    from tokenizers import (  # type: ignore[import-not-found,unused-ignore]
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
    )

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(["<|end|>", *alphabet])}
    made = Tokenizer(models.BPE(vocabulary, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|end|>", pad_token="<|end|>", padding_side="left"
    )


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer) + MORE_LOGITS,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return transformers.Qwen2ForCausalLM(config).eval()


@pytest.mark.parametrize(("pool_size", "max_steps", "max_reasoning"), [(1, 1, 0), (7, 5, 0), (1, 1, 300)])
def test_every_row_of_a_batch_is_strictly_valid_and_ends_by_itself(
    model: Any, tokenizer: Any, pool_size: int, max_steps: int, max_reasoning: int
) -> None:
    bounds: dict[str, Any] = {"max_prose": 10, "max_subtask": 6, "max_reasoning": max_reasoning}
    grammar = llguidance_lark(range(pool_size), max_steps, **bounds)
    most = max_tokens_for(range(pool_size), max_steps, **bounds)
    inputs = tokenizer(["a", "a longer prompt", "x y"], return_tensors="pt", padding=True, return_token_type_ids=False)
    prompt_tokens = inputs["input_ids"].shape[1]
    known = grammar_tokenizer(tokenizer, vocabulary=model.config.vocab_size)
    torch.manual_seed(5)

    output = model.generate(
        **inputs, max_new_tokens=most, do_sample=True, logits_processor=[GrammarLogits(known, grammar, prompt_tokens)]
    )

    texts = tokenizer.batch_decode(output[:, prompt_tokens:], skip_special_tokens=True)
    assert len(set(texts)) == 3
    for text, row in zip(texts, output[:, prompt_tokens:].tolist(), strict=True):
        checked = analyze(text, pool=pool_size, max_steps=max_steps, profile="strict")
        assert checked.ok, text
        assert len(row) < most or row[-1] == tokenizer.eos_token_id


def test_a_grammar_that_cannot_be_read_is_refused(tokenizer: Any) -> None:
    with pytest.raises(UsageError, match="the grammar cannot be used"):
        GrammarLogits(grammar_tokenizer(tokenizer), "start: (", 1)


def test_a_slow_tokenizer_is_refused() -> None:
    with pytest.raises(UsageError, match="a grammar needs a fast tokenizer, not object"):
        grammar_tokenizer(object())
