"""Prefix cache: the prompt of a group of completions is computed once.

TRL gives the model a copy of the prompt with each completion. Here the model runs every different prompt of a
batch once, and continues from its keys and values with each completion: the same log-probabilities, gradients and
samples up to rounding, in less time and memory the longer the prompts are.

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

_CACHE: Final = "cache" if "cache" in CausalLMOutputWithPast.__annotations__ else "past_key_values"
"""What transformers calls the keys and values of the tokens before: `cache` since 5.24."""


def share_prompts(model: Any) -> None:
    """Let a causal language model compute each prompt once for all of its completions.

    The model has TRL's fused head. Prompts are padded on the left, as TRL does. Calls of another form are passed on.

    Raises (when the model is used):
        UsageError: the model does not keep its past as keys and values.
    """
    scored, generated = model.forward, model.generate

    @functools.wraps(type(model).forward)
    def forward(_: Any, *arguments: Any, **named: Any) -> Any:
        if arguments or named.keys() - {"use_cache"} != {"input_ids", "attention_mask", "labels", "fused_lm_head"}:
            return scored(*arguments, **named)
        return _scored(scored, **{name: value for name, value in named.items() if name != "use_cache"})

    @functools.wraps(type(model).generate)
    def generate(_: Any, *arguments: Any, **named: Any) -> Any:
        if not arguments and {"input_ids", "attention_mask"} <= named.keys() and _CACHE not in named:
            shared = _Shared(named["input_ids"][:, :-1], named["attention_mask"][:, :-1])
            if shared.saves:
                positions = (shared.attention_mask.cumsum(-1) - 1).clamp(min=0)  # as `generate` counts them
                with torch.no_grad():
                    named[_CACHE] = shared.past(scored, position_ids=positions)
        return generated(*arguments, **named)

    model.forward = types.MethodType(forward, model)
    model.generate = types.MethodType(generate, model)


def _scored(forward: Any, *, input_ids: Tensor, attention_mask: Tensor, labels: Tensor, fused_lm_head: bool) -> Any:
    """What TRL's head says of (rows, tokens), whose first columns are prompts: those without labels."""
    begin = max(int((labels != -100).any(dim=0).int().argmax()) - 1, 0)
    shared = _Shared(input_ids[:, :begin], attention_mask[:, :begin])
    if not shared.saves:
        return forward(input_ids=input_ids, attention_mask=attention_mask, labels=labels, fused_lm_head=fused_lm_head)
    found = forward(
        input_ids=input_ids[:, begin:],
        attention_mask=attention_mask,
        labels=labels[:, begin:],
        fused_lm_head=fused_lm_head,
        **{_CACHE: shared.past(forward)},
    )
    for name, value in list(found.items()):  # the columns of the prompts, which have no label: nothing, as in TRL
        if value.ndim == labels.ndim:
            found[name] = torch.nn.functional.pad(value, (begin, 0))
    return found


class _Shared:
    """The different ones among rows that are in part the same."""

    def __init__(self, input_ids: Tensor, attention_mask: Tensor) -> None:
        rows = torch.stack([input_ids, attention_mask], -1)
        if rows.numel():  # of nothing, `unique` has no answer
            rows, self._which = torch.unique(rows, dim=0, return_inverse=True)
        self.input_ids, self.attention_mask = rows[..., 0], rows[..., 1]
        self.saves = len(rows) < len(input_ids)
        """Whether any two rows are the same."""

    def past(self, forward: Any, **more: Any) -> Any:
        """Keys and values, one of the different ones for each row."""
        out = forward(
            input_ids=self.input_ids, attention_mask=self.attention_mask, use_cache=True, logits_to_keep=1, **more
        )
        past: Any = getattr(out, _CACHE, None)
        if not hasattr(past, "batch_select_indices"):
            raise UsageError(
                "train.prefix_cache: this model does not keep its past as keys and values; set it to false"
            )
        past.batch_select_indices(self._which)
        return past
