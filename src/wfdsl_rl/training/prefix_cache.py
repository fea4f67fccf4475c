"""Prefix cache: what prompts have in common is computed once.

TRL gives the model a copy of the prompt with each completion. Here the model runs every different prompt of a
batch once, or the beginning of all, and continues from its keys and values with each row: the same log-probabilities,
gradients and samples up to rounding, in less time and memory the more is common.

It replaces two methods of the model, as TRL does to add its head: `forward` where TRL scores completions,
and `generate`. Our choice.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Final

import torch
from torch import Tensor
from transformers.modeling_outputs import CausalLMOutputWithPast

from wfdsl.errors import UsageError

_COLUMNS: Final = ("input_ids", "attention_mask")
_CACHE: Final = "cache" if "cache" in CausalLMOutputWithPast.__annotations__ else "past_key_values"
"""What transformers calls the keys and values of the tokens before: `cache` since 5.24."""


def share_prompts(model: Any) -> None:
    """Let a causal language model compute once what prompts of a batch have in common.

    The model has TRL's fused head. Prompts are padded on the left, as TRL does. Calls of another form are passed on.

    Raises (when the model is used):
        UsageError: the model does not keep its past as keys and values.
    """
    scored, generated = model.forward, model.generate

    @functools.wraps(type(model).forward)
    def forward(_: Any, *arguments: Any, **named: Any) -> Any:
        if arguments or named.keys() - {"use_cache"} != {*_COLUMNS, "labels", "fused_lm_head"}:
            return scored(*arguments, **named)
        labels = named["labels"]
        begin = max(int((labels != -100).any(dim=0).int().argmax()) - 1, 0)  # prompts have no labels
        past = _past_of(scored, *(named[name][:, :begin] for name in _COLUMNS))
        if past is None:
            return scored(**named)
        begin = past.get_seq_length()
        named |= {"input_ids": named["input_ids"][:, begin:], "labels": labels[:, begin:], _CACHE: past}
        named.pop("use_cache", None)  # TRL says that none is needed
        found = scored(**named)
        for name, value in list(found.items()):  # the columns of the prompts: nothing, as in TRL
            if value.ndim == labels.ndim:
                found[name] = torch.nn.functional.pad(value, (begin, 0))
        return found

    @functools.wraps(type(model).generate)
    def generate(_: Any, *arguments: Any, **named: Any) -> Any:
        if not arguments and {*_COLUMNS} <= named.keys() and _CACHE not in named:
            with torch.no_grad():
                past = _past_of(scored, *(named[name][:, :-1] for name in _COLUMNS), counts_padding=False)
            named |= {} if past is None else {_CACHE: past}
        return generated(*arguments, **named)

    model.forward = types.MethodType(forward, model)
    model.generate = types.MethodType(generate, model)


def _past_of(forward: Any, input_ids: Tensor, attention_mask: Tensor, *, counts_padding: bool = True) -> Any:
    """Keys and values, for all rows, of the beginning that is worth most to compute once; None if no two rows agree.

    `generate` counts positions without the padding, and TRL with it.
    """
    rows = torch.stack([input_ids, attention_mask], -1)
    if not rows.numel():  # of nothing, `unique` has no answer
        return None
    ordered = torch.unique(rows, dim=0)  # neighbours have the longest beginnings in common
    common = (ordered[1:] == ordered[:-1]).all(-1).cumprod(-1).sum(-1)
    columns = torch.arange(rows.shape[1] + 1, device=rows.device)
    saved = (len(rows) - 1 - (common[:, None] < columns).sum(0)) * columns
    if not saved.any():
        return None
    different, which = torch.unique(rows[:, : int(saved.argmax())], dim=0, return_inverse=True)
    ids, mask = different.unbind(-1)
    positions = {} if counts_padding else {"position_ids": (mask.cumsum(-1) - 1).clamp(min=0)}
    out = forward(input_ids=ids, attention_mask=mask, use_cache=True, logits_to_keep=1, **positions)
    past: Any = getattr(out, _CACHE, None)
    if not hasattr(past, "batch_select_indices"):
        raise UsageError("train.prefix_cache: this model does not keep its past as keys and values; set it to false")
    past.batch_select_indices(which)
    return past
