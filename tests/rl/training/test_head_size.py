"""Heads that are padded to a size that vLLM takes: the same completions and log-probabilities."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch, in the extra rl")
transformers = pytest.importorskip("transformers", reason="needs transformers, in the extra rl")

from wfdsl_rl.gym.checkpoints import load  # noqa: E402
from wfdsl_rl.training.head_size import SIZES, pad_heads  # noqa: E402  (it needs torch)


def network(*, width: int, heads: int, tied: bool = True) -> Any:
    config = transformers.Qwen2Config(
        vocab_size=50,
        hidden_size=width,
        intermediate_size=40,
        num_hidden_layers=3,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        max_position_embeddings=256,
        tie_word_embeddings=tied,
        rms_norm_eps=1e-2,
        initializer_range=0.1,
    )
    torch.manual_seed(0)
    made = transformers.Qwen2ForCausalLM(config).eval()
    with torch.no_grad():
        for name, each in made.named_parameters():
            if "norm" in name or "bias" in name:  # else all ones, or zeros
                each.normal_()
    return made


@pytest.mark.parametrize(("width", "heads", "size"), [(96, 4, 32), (16, 8, 32), (72, 2, 64), (152, 2, 80)])
@pytest.mark.parametrize("tied", [True, False])
def test_a_padded_model_computes_the_same(width: int, heads: int, size: int, tied: bool) -> None:
    old = network(width=width, heads=heads, tied=tied).double()
    tokens = torch.randint(1, 50, (3, 200), generator=torch.Generator().manual_seed(1))

    new = pad_heads(old)

    assert new.config.hidden_size // new.config.num_attention_heads == size
    with torch.no_grad():
        found = [each(tokens).logits.log_softmax(-1) for each in (old, new)]
    assert (found[0] - found[1]).abs().max() < 1e-5  # rotary positions are computed in 32 bits
    assert found[0].std() > 0.1


def test_zeros_stay_zeros_in_further_training() -> None:
    new = pad_heads(network(width=96, heads=4))
    zero = {name: each == 0 for name, each in new.named_parameters()}

    new(torch.arange(1, 50)[None]).logits.log_softmax(-1)[..., 7].sum().backward()

    for name, each in new.named_parameters():
        assert not each.grad[zero[name]].any(), name
        assert each.grad.any(), name


def test_heads_that_fit_and_other_architectures_are_left_alone() -> None:
    fitting = network(width=64, heads=2)
    other = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2))

    assert pad_heads(fitting) is fitting
    assert pad_heads(other) is other


def test_the_conductor_that_ships_has_heads_that_vllm_takes() -> None:
    config = transformers.AutoConfig.from_pretrained(load("gym/tiny"))

    assert config.hidden_size // config.num_attention_heads in SIZES
