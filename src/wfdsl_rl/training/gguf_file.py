"""A model of the Llama or Qwen2 architecture as one GGUF file, which llama.cpp runs without torch.

Tokens keep their ids. What the tokenizer always takes as one piece is a token that llama.cpp takes as one piece too;
special tokens are control tokens. Where two such pieces overlap in a text, llama.cpp takes the longer one and
transformers the first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import gguf
import numpy as np
from gguf import GGMLQuantizationType, TokenType

from wfdsl.errors import UsageError

Precision: TypeAlias = Literal["f32", "q8_0", "q5_0"]
"""How weights are written: as they are, or in blocks of 32 with 8 or 5 bits and a common factor. Of 5 bits, what enters
the last feed-forward layer has 4: there an error goes through no further layer."""

_FILE_TYPES: Final = {"f32": "ALL_F32", "q8_0": "MOSTLY_Q8_0", "q5_0": "MOSTLY_Q5_0"}
_CUTS: Final = {
    "gpt-2": ('"use_regex": true',),
    "smollm": ('"Digits"', '"ByteLevel"'),
    "qwen2": ("[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|",),
}
"""llama.cpp's names of ways to cut a text before merging, and what tokenizers of transformers that do so have."""


def write_gguf(path: Path, network: Any, tokenizer: Any, *, precision: Precision = "f32") -> None:
    """Write a model with its tokenizer and chat template.

    Raises:
        UsageError: the model or its tokenizer is of another kind than this can write.
    """
    config = network.config
    if config.model_type not in ("llama", "qwen2"):
        raise UsageError(f"a GGUF file is made of Llama and Qwen2 models only, and this is {config.model_type}")
    writer = gguf.GGUFWriter(path, config.model_type)
    _add_shape(writer, config)
    writer.add_file_type(gguf.LlamaFileType[_FILE_TYPES[precision]])
    _add_tokenizer(writer, tokenizer, config)
    fewer = [f"blk.{config.num_hidden_layers - 1}.ffn_{part}.weight" for part in ("gate", "up")]
    for name, array in _weights(network).items():
        kind = GGMLQuantizationType[precision.upper()] if array.ndim > 1 else GGMLQuantizationType.F32
        if precision == "q5_0" and name in fewer:
            kind = GGMLQuantizationType.Q4_0
        writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: Any, config: Any) -> None:
    rope = config.rope_parameters
    if rope.get("rope_type", "default") != "default" or getattr(config, "use_sliding_window", False):
        raise UsageError("a GGUF file is made of models with plain rotary positions and without a sliding window only")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)


def _weights(network: Any) -> dict[str, Any]:
    """The weights by llama.cpp's names, as 32-bit arrays; a head that is the embedding is left out."""
    config = network.config
    weights = {name: each.detach().float().cpu().numpy() for name, each in network.state_dict().items()}
    if config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    if config.model_type == "llama":
        for name, array in weights.items():
            count = next((heads[part] for part in heads if part in name), None)
            weights[name] = array if count is None else _paired(array, count)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[config.model_type.upper()], config.num_hidden_layers)
    suffixes = (".weight", ".bias")
    return {names.get_name(name, suffixes): np.ascontiguousarray(array) for name, array in weights.items()}


def _paired(array: Any, heads: int) -> Any:
    """Rows in the order in which llama.cpp rotates Llama's: neighbours, where transformers pairs the two halves."""
    halves = array.reshape(heads, 2, array.shape[0] // heads // 2, *array.shape[1:])
    return halves.swapaxes(1, 2).reshape(array.shape)


def _add_tokenizer(writer: Any, tokenizer: Any, config: Any) -> None:
    plain = json.loads(tokenizer.backend_tokenizer.to_str())
    texts, types = _tokens(plain, size=config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_cuts_of(plain))
    writer.add_token_list(texts)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(pair) for pair in plain["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_add_bos_token(value=False)
    writer.add_chat_template(tokenizer.chat_template)


def _cuts_of(plain: Mapping[str, Any]) -> str:
    """How llama.cpp must cut texts to do it as the tokenizer does."""
    cuts = json.dumps(plain["pre_tokenizer"] or {}, ensure_ascii=False)
    found = [name for name, marks in _CUTS.items() if all(mark in cuts for mark in marks)]
    if plain["model"]["type"] != "BPE" or not found:
        raise UsageError("a GGUF file is made with tokenizers like GPT-2's, SmolLM2's or Qwen2's, and this is another")
    return found[-1]


def _tokens(plain: Mapping[str, Any], *, size: int) -> tuple[list[str], list[int]]:
    """The text and the type of each id; ids that the tokenizer does not use are marked as such."""
    texts = [f"[unused {index}]" for index in range(size)]
    types = [int(TokenType.UNUSED)] * size
    for text, index in plain["model"]["vocab"].items():
        texts[index], types[index] = text, int(TokenType.NORMAL)
    for added in plain["added_tokens"]:
        special = TokenType.CONTROL if added["special"] else TokenType.USER_DEFINED
        texts[added["id"]], types[added["id"]] = added["content"], int(special)
    return texts, types
