"""Prefix cache: what rows of a batch have in common is computed once.

TRL gives the model a copy of the prompt with each completion. Here the model runs every different prompt of a
batch once, before that what all of them begin with, and continues from keys and values with each different row: the
same log-probabilities, gradients and samples up to rounding, in less time and memory the more is common.

It replaces two methods of the model, as TRL does to add its head: `forward` where TRL scores completions,
and `generate`. Our choice.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers.modeling_outputs import CausalLMOutputWithPast

from wfdsl.errors import UsageError

_COLUMNS: Final = ("input_ids", "attention_mask")
_CACHE: Final = "cache" if "cache" in CausalLMOutputWithPast.__annotations__ else "past_key_values"
"""What transformers calls the keys and values of the tokens before: `cache` since 5.24."""


def share_prompts(model: Any) -> None:
    """Let a causal language model compute once what rows of a batch have in common.

    The model has TRL's fused head. Prompts are padded on the left, as TRL does, and positions are counted without the
    padding, as in `generate`. Calls of another form are passed on.

    Raises (when the model is used):
        UsageError: the model does not keep its past as keys and values.
    """
    scored, generated = model.forward, model.generate

    @functools.wraps(type(model).forward)
    def forward(_: Any, *arguments: Any, **named: Any) -> Any:
        if arguments or named.keys() - {"use_cache"} != {*_COLUMNS, "labels", "fused_lm_head"}:
            return scored(*arguments, **named)
        rows = torch.stack([named[name] for name in (*_COLUMNS, "labels")], -1)
        rows, which = torch.unique(rows, dim=0, return_inverse=True)  # completions of a prompt may be equal
        labels = rows[..., 2]
        begin = max(int((labels != -100).any(0).int().argmax()) - 1, 0)  # prompts have no labels
        rows = _beginnings_first(rows[..., :2], begin)
        past = _past_of(scored, rows[:, :begin])
        begin = 0 if past is None else past.get_seq_length()
        found = scored(**_after(past, rows), labels=labels[:, begin:], fused_lm_head=True)
        for name, value in list(found.items()):
            if value.ndim == labels.ndim:  # the columns of the prompts: nothing, as in TRL
                found[name] = pad(value, (begin, 0))[which]
        return found

    @functools.wraps(type(model).generate)
    def generate(_: Any, *arguments: Any, **named: Any) -> Any:
        if arguments or named.keys() - {"generation_config"} != {*_COLUMNS}:
            return generated(*arguments, **named)
        asked, end = named["input_ids"], named["input_ids"].shape[1] - 1
        rows = _beginnings_first(torch.stack([asked, named["attention_mask"]], -1), end)
        with torch.no_grad():
            past = _past_of(scored, rows[:, :end])
        written = generated(**{**named, **dict(zip(_COLUMNS, rows.unbind(-1), strict=True)), _CACHE: past})
        return torch.cat([asked, written[:, end + 1 :]], dim=1)

    model.forward = types.MethodType(forward, model)
    model.generate = types.MethodType(generate, model)


def _beginnings_first(rows: Tensor, end: int) -> Tensor:
    """Rows of ids and mask with the left padding moved behind what all begin with, which ends before a column."""
    ids, mask = rows.unbind(-1)
    columns = torch.arange(ids.shape[1], device=ids.device)
    padding = (mask.cumsum(-1) == 0).sum(-1, keepdim=True)
    moved = ids.gather(1, (columns + padding).clamp(max=len(columns) - 1))
    common = ((moved == moved[:1]).all(0) & (columns + padding.max() < end)).cumprod(0).bool()
    rest = mask * (columns >= padding + common.sum())
    return torch.stack([torch.where(common, moved, ids), torch.where(common, 1, rest)], -1)


def _past_of(forward: Any, rows: Tensor) -> Any:
    """Keys and values, for all rows, of what is computed once; None if no two rows agree.

    These are the rows themselves if some are equal, and otherwise the beginning that is worth most.
    """
    if not rows.numel():  # of nothing, `unique` has no answer
        return None
    ordered = torch.unique(rows, dim=0)  # neighbours have the longest beginnings in common
    common = (ordered[1:] == ordered[:-1]).all(-1).cumprod(-1).sum(-1)
    columns = torch.arange(rows.shape[1] + 1, device=rows.device)
    saved = (len(rows) - 1 - (common[:, None] < columns).sum(0)) * columns
    if not saved.any():
        return None
    end = rows.shape[1] if saved[-1] else int(saved.argmax())
    different, which = torch.unique(rows[:, :end], dim=0, return_inverse=True)
    before = _past_of(forward, different)  # these have a beginning in common in turn
    past: Any = getattr(forward(**_after(before, different), use_cache=True, logits_to_keep=1), _CACHE, None)
    if not hasattr(past, "batch_select_indices"):
        raise UsageError("train.prefix_cache: this model does not keep its past as keys and values; set it to false")
    past.batch_select_indices(which)
    return past


def _after(past: Any, rows: Tensor) -> dict[str, Any]:
    """What the model is asked about rows of ids and mask, whose first columns are in the past."""
    begin, (ids, mask) = 0 if past is None else past.get_seq_length(), rows.unbind(-1)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return {
        "input_ids": ids[:, begin:],
        "attention_mask": mask,
        "position_ids": positions[:, begin:],
        _CACHE: past,
    }
