"""Prefix cache: what the prompts of a batch have in common is computed once.

TRL gives the model a copy of the prompt with each completion. Here the model runs every different prompt of a
batch once, and continues from its keys and values with each completion: the same log-probabilities, gradients and
samples up to rounding, in less time and memory the longer the prompts are. Where all prompts differ, as in SFT and in
evaluations, this is done with the tokens that all of them begin with.

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
            prompts, seen = named["input_ids"], named["attention_mask"]
            named["input_ids"], named["attention_mask"], common = _aligned(prompts, seen)
            named[_CACHE] = _past_of_prompts(scored, named["input_ids"], named["attention_mask"], common)
            written = generated(*arguments, **named)
            return torch.cat([prompts, written[:, prompts.shape[1] :]], dim=1)
        return generated(*arguments, **named)

    model.forward = types.MethodType(forward, model)
    model.generate = types.MethodType(generate, model)


def _scored(forward: Any, *, input_ids: Tensor, attention_mask: Tensor, labels: Tensor, fused_lm_head: bool) -> Any:
    """What TRL's head says of (rows, tokens), whose first columns are prompts: those without labels."""
    begin = max(int((labels != -100).any(dim=0).int().argmax()) - 1, 0)
    shared, of_each = _Shared(input_ids[:, :begin], attention_mask[:, :begin]), {}
    ids, seen = input_ids, attention_mask
    if not shared.saves and begin:
        moved, marked, common = _aligned(input_ids[:, :begin], attention_mask[:, :begin])
        ids = torch.cat([moved, input_ids[:, begin:]], dim=1)
        seen = torch.cat([marked, attention_mask[:, begin:]], dim=1)
        begin, shared = common, _Shared(ids[:, :common], seen[:, :common])
        of_each["position_ids"] = (seen.cumsum(-1) - 1).clamp(min=0)[:, begin:]  # padding may be in the middle
    if not shared.saves or not begin:
        return forward(input_ids=input_ids, attention_mask=attention_mask, labels=labels, fused_lm_head=fused_lm_head)
    found = forward(
        input_ids=ids[:, begin:],
        attention_mask=seen,
        labels=labels[:, begin:],
        fused_lm_head=fused_lm_head,
        **{_CACHE: shared.past(forward)},
        **of_each,
    )
    for name, value in list(found.items()):  # the columns of the prompts, which have no label: nothing, as in TRL
        if value.ndim == labels.ndim:
            found[name] = torch.nn.functional.pad(value, (begin, 0))
    return found


def _aligned(input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor, int]:
    """Prompts (rows, tokens) with their padding moved after the tokens that all begin with, and the number of these.

    Nobody attends to padding, and positions do not count it.
    """
    rows, width = input_ids.shape
    at = torch.arange(width, device=input_ids.device).expand(rows, width)
    padding = attention_mask.argmax(dim=1, keepdim=True) if width else at
    begun = input_ids.gather(1, (at + padding).clamp(max=width - 1)) if width else input_ids
    same = (begun == begun[:1]).all(dim=0) & (at[0] < attention_mask.sum(dim=1).min())
    common = int(same.int().cumprod(dim=0).sum())
    behind = torch.where(at < common + padding, at - common, at)
    order = torch.where(at < common, at + padding, behind)
    return input_ids.gather(1, order), attention_mask.gather(1, order), common


def _past_of_prompts(forward: Any, input_ids: Tensor, attention_mask: Tensor, common: int) -> Any:
    """Keys and values of prompts (rows, tokens) but for their last tokens.

    Those of the `common` first tokens alone, if no prompts are the same; None if there is nothing to share.
    """
    shared = _Shared(input_ids[:, :-1], attention_mask[:, :-1])
    if not shared.saves and len(input_ids) > 1:
        known = min(common, input_ids.shape[1] - 1)
        shared = _Shared(input_ids[:, :known], attention_mask[:, :known])
    if not shared.input_ids.numel():
        return None
    positions = (shared.attention_mask.cumsum(-1) - 1).clamp(min=0)  # as `generate` counts them
    with torch.no_grad():
        return shared.past(forward, position_ids=positions)


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
