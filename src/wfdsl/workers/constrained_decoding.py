"""A grammar as a logits processor: a transformers model under it writes only what the grammar allows.

    processor = GrammarLogits(grammar_tokenizer(tokenizer), llguidance_lark(range(3)), prompt_tokens)
    model.generate(**inputs, logits_processor=[processor], max_new_tokens=max_tokens_for(range(3)))

Each row of a batch has a matcher of its own, which is told each token that was chosen. For a row that has come to its
end it allows nothing but the end, which `generate` replaces by padding.
"""

from __future__ import annotations

from typing import Any

import llguidance
import llguidance.hf
import torch  # type: ignore[import-not-found,unused-ignore]
import transformers  # type: ignore[import-not-found,unused-ignore]

from wfdsl.errors import UsageError


def grammar_tokenizer(tokenizer: Any, *, vocabulary: int | None = None) -> llguidance.LLTokenizer:
    """What a matcher has to know of a fast tokenizer of transformers. Making it takes about a second: keep it.

    Args:
        tokenizer: the tokenizer.
        vocabulary: how many logits the model has, where that is more than the tokenizer has tokens.

    Raises:
        UsageError: the tokenizer is not a fast one.
    """
    if not isinstance(tokenizer, transformers.PreTrainedTokenizerFast):
        raise UsageError(
            f"a grammar needs a fast tokenizer, not {type(tokenizer).__name__}: load it with use_fast=True"
        )
    # Some models have fewer logits than their tokenizer has tokens; what has no logit cannot be chosen anyway.
    return llguidance.hf.from_tokenizer(tokenizer, n_vocab=max(vocabulary or 0, len(tokenizer)))


class GrammarLogits(transformers.LogitsProcessor):  # type: ignore[misc,unused-ignore]
    """Takes from each row the tokens that the grammar does not allow next. For one call of `generate`."""

    def __init__(self, tokenizer: llguidance.LLTokenizer, grammar: str, prompt_tokens: int) -> None:
        """Prepare a grammar.

        Args:
            tokenizer: what `grammar_tokenizer` gave.
            grammar: in llguidance's dialect, as `wfdsl.language.constrained.llguidance_lark` prints it.
            prompt_tokens: the tokens in a row before generation starts, with its padding.

        Raises:
            UsageError: the grammar cannot be read.
        """
        if problem := llguidance.LLMatcher.validate_grammar(grammar, tokenizer):
            raise UsageError(f"the grammar cannot be used: {problem}")
        self._first = llguidance.LLMatcher(tokenizer, grammar)
        self._prompt_tokens = prompt_tokens
        self._matchers: list[llguidance.LLMatcher] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores of the next token, less what is not allowed.

        Shapes: `input_ids` is (rows, tokens so far), `scores` and the result are (rows, vocabulary).
        """
        if not self._matchers:
            self._matchers = [self._first.deep_copy() for _ in range(input_ids.shape[0])]
        if input_ids.shape[1] > self._prompt_tokens:
            for matcher, token in zip(self._matchers, input_ids[:, -1].tolist(), strict=True):
                if not matcher.is_stopped():
                    matcher.consume_token(token)
        allowed = torch.stack([_allowed(matcher, scores.shape[1]) for matcher in self._matchers])
        return scores.masked_fill(~allowed.to(scores.device), float("-inf"))


def _allowed(matcher: llguidance.LLMatcher, vocabulary: int) -> Any:
    """Whether each token is allowed next. The mask has one bit for each, in bytes from the lowest bit up."""
    mask = torch.frombuffer(bytearray(matcher.compute_bitmask()), dtype=torch.uint8)
    bits = (mask.unsqueeze(1) >> torch.arange(8, dtype=torch.uint8) & 1).flatten().bool()
    return torch.nn.functional.pad(bits, (0, max(0, vocabulary - len(bits))))[:vocabulary]
