"""What the completions of a question have in common, the prompt, computed once.

TRL gives the model each completion behind its own copy of the prompt. Here the model runs every different prompt of a
batch once, and continues from its keys and values with each completion: the same log-probabilities, gradients and
samples up to rounding, in less time and memory the longer the prompts are.

It takes hold of two methods of the model, in the way that TRL adds its head: `forward` where TRL scores completions,
and `generate`. Our choice.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

import torch

from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor


def share_prompts(model: Any) -> None:
    """Let a causal language model compute each prompt once for all of its completions.

    The model has TRL's fused head. Prompts are padded on the left, as TRL does. Calls of another form are passed on.

    Raises (when the model is used):
        UsageError: the model does not keep its past as keys and values.
    """
    scored, generated = model.forward, model.generate

    @functools.wraps(type(model).forward)
    def forward(_: Any, *arguments: Any, **named: Any) -> Any:
        if arguments or named.keys() != {"input_ids", "attention_mask", "labels", "fused_lm_head"}:
            return scored(*arguments, **named)
        return _scored(scored, **named)

    @functools.wraps(type(model).generate)
    def generate(_: Any, *arguments: Any, **named: Any) -> Any:
        if not arguments and {"input_ids", "attention_mask"} <= named.keys() and "past_key_values" not in named:
            past = _past_of_prompts(scored, named["input_ids"], named["attention_mask"])
            named |= {} if past is None else {"past_key_values": past}
        return generated(*arguments, **named)

    model.forward = types.MethodType(forward, model)
    model.generate = types.MethodType(generate, model)


def _scored(forward: Any, *, input_ids: Tensor, attention_mask: Tensor, labels: Tensor, fused_lm_head: bool) -> Any:
    """What TRL's head says of (rows, tokens), whose first columns are prompts: those that nobody has a label in."""
    prompt = int((labels != -100).any(dim=0).int().argmax())
    shared = _Shared.of(input_ids[:, : prompt - 1], attention_mask[:, : prompt - 1]) if prompt > 1 else None
    if shared is None:
        return forward(input_ids=input_ids, attention_mask=attention_mask, labels=labels, fused_lm_head=fused_lm_head)
    found = forward(
        input_ids=input_ids[:, prompt - 1 :],
        attention_mask=attention_mask,
        labels=labels[:, prompt - 1 :],
        past_key_values=shared.past(forward),
        fused_lm_head=fused_lm_head,
    )
    for name, value in list(found.items()):  # the columns of the prompts, which have no label: nothing, as in TRL
        if value.ndim == labels.ndim:
            found[name] = torch.nn.functional.pad(value, (prompt - 1, 0))
    return found


def _past_of_prompts(forward: Any, input_ids: Tensor, attention_mask: Tensor) -> Any:
    """Keys and values of prompts (rows, tokens) but for their last tokens; None if no two rows are the same."""
    shared = _Shared.of(input_ids[:, :-1], attention_mask[:, :-1])
    if shared is None:
        return None
    positions = (shared.attention_mask.cumsum(-1) - 1).clamp(min=0)  # as `generate` counts them
    with torch.no_grad():
        return shared.past(forward, position_ids=positions)


class _Shared:
    """The different ones among rows that are in part the same."""

    def __init__(self, input_ids: Tensor, attention_mask: Tensor, which: Tensor) -> None:
        self.input_ids, self.attention_mask = input_ids, attention_mask
        self._which = which
        """For each row, which of the different ones it is."""

    @classmethod
    def of(cls, input_ids: Tensor, attention_mask: Tensor) -> _Shared | None:
        """None if there is nothing to share."""
        if not input_ids.shape[1]:
            return None
        different, which = torch.unique(torch.stack([input_ids, attention_mask], -1), dim=0, return_inverse=True)
        if len(different) == len(input_ids):
            return None
        return cls(different[..., 0], different[..., 1], which)

    def past(self, forward: Any, **more: Any) -> Any:
        """Keys and values, one of the different ones for each row."""
        out = forward(
            input_ids=self.input_ids, attention_mask=self.attention_mask, use_cache=True, logits_to_keep=1, **more
        )
        past: Any = getattr(out, "past_key_values", None)
        if not hasattr(past, "batch_select_indices"):
            raise UsageError(
                "share_prompts: this model does not keep its past as keys and values that could be shared: "
                "set it to false"
            )
        past.batch_select_indices(self._which)
        return past
