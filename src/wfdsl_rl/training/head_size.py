"""Attention heads of a size that vLLM takes: smaller ones are padded with zeros, and the model computes the same."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any, Final

import torch
from torch import Tensor

SIZES: Final = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""The sizes of heads that vLLM 0.32 takes on a CPU, as its error message lists them."""
_ARCHITECTURE: Final = "qwen2"
_READ: Final = ("q_proj", "k_proj", "v_proj")


def pad_heads(network: Any) -> Any:
    """The network with heads of the next larger size of `SIZES`; the same one if it has such heads already.

    Hidden states [batch, tokens, width] become wider in proportion, and what is added is zero everywhere. Three numbers
    change with the width: the scale of queries, because attention divides by the root of the size; the base of rotary
    positions, so that each pair of numbers turns as before; and the norms, which divide by the root of the mean square.
    Further training leaves the zeros as they are, because their gradients are zero. Our choice.

    Only models of the Qwen2 architecture with plain rotary positions are changed; others are returned as they are.
    """
    old = network.config
    size, wide = old.hidden_size // old.num_attention_heads, old.hidden_size
    larger = next((each for each in SIZES if each >= size), size)
    if old.model_type != _ARCHITECTURE or larger == size or old.rope_parameters.get("rope_type") != "default":
        return network
    config = deepcopy(old)
    config.hidden_size = wider = old.num_attention_heads * larger
    config.rms_norm_eps = old.rms_norm_eps * wide / wider
    config.rope_parameters = {
        **old.rope_parameters,
        "rope_theta": old.rope_parameters["rope_theta"] ** (larger / size),
    }
    padded = type(network)(config).to(network.dtype)
    weights = {
        name: _padded(name, weight, size=size, larger=larger, wide=wide, wider=wider)
        for name, weight in network.state_dict().items()
    }
    padded.load_state_dict(weights)
    padded.generation_config = network.generation_config
    return padded.train(network.training)


def _padded(name: str, weight: Tensor, *, size: int, larger: int, wide: int, wider: int) -> Tensor:
    *_, module, kind = name.split(".")
    if "norm" in module:
        return _resized(weight * math.sqrt(wide / wider), 0, wider)
    if module in _READ:
        heads = _in_heads(weight, 0, size, larger)
        scaled = heads * math.sqrt(larger / size) if module == "q_proj" else heads
        return scaled if kind == "bias" else _resized(scaled, 1, wider)
    if module == "o_proj":
        return _resized(_in_heads(weight, 1, size, larger), 0, wider)
    return _resized(weight, 0 if module == "down_proj" else 1, wider)


def _resized(weight: Tensor, dim: int, length: int) -> Tensor:
    """With zeros at the end of a dimension."""
    shape = [*weight.shape]
    shape[dim] = length - shape[dim]
    return torch.cat((weight, weight.new_zeros(shape)), dim=dim)


def _in_heads(weight: Tensor, dim: int, size: int, larger: int) -> Tensor:
    """With zeros in each head, after each of its halves: rotary positions turn number i with number i + size / 2."""
    heads = weight.unflatten(dim, (-1, 2, size // 2))
    return _resized(heads, dim + 2, larger // 2).flatten(dim, dim + 2)
