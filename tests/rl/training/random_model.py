"""A model of random weights: a small network of the Qwen2 architecture, and a tokenizer trained for it.

The tokenizer is byte-level BPE with Qwen2's own way of cutting texts into words, because transformers cuts like that
whatever the folder of a Qwen2 model says. Each digit is a token, so that numbers in a listing can be read. Texts that
recur are single tokens: the labels of the three lists, and the texts between the numbers of a listing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

PAD: Final = "<|endoftext|>"
"""transformers gives tokenizers of the Qwen2 architecture a token of this name, whether they have one or not."""
END: Final = "<|end|>"
ROLES: Final = ("<|system|>", "<|user|>", "<|assistant|>")
LABELS: Final = ("model_id = [", "]\nsubtasks = [", "]\naccess_list = [")

CHAT_TEMPLATE: Final = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_WORDS: Final = Regex(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen2's words; source: Qwen2Tokenizer of transformers."""


def make_tokenizer(texts: Iterable[str], *, vocabulary: int, constants: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """Train a tokenizer on texts; `vocabulary` is the most tokens that it may have, `constants` are tokens as well."""
    whole = [*LABELS, *constants]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(_WORDS, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(whole),
        special_tokens=[PAD, END, *ROLES],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(label, normalized=False) for label in whole])
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def make_model(
    tokenizer: Any, *, width: int, inner: int, layers: int, heads: int, positions: int = 1024, seed: int
) -> Qwen2ForCausalLM:
    """A model of random weights. `width` is the size of its hidden states, shape [batch, tokens, width].

    `inner` is the size of the states inside a feed-forward block.
    """
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=positions,
        tie_word_embeddings=True,
        use_cache=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config)


def save_new(folder: Path, model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write both into a folder that transformers loads."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
