"""A model of the Qwen2 architecture as one GGUF file, which llama.cpp runs without torch.

Weights stay 32-bit numbers. Tokens keep their ids. What the tokenizer always takes as one piece, such as the labels of
the three lists, is written as a token that llama.cpp takes as one piece too; special tokens are control tokens. One
difference is left: where two such pieces overlap in a text, as in " text code ", llama.cpp takes the longer one and
transformers the first. Prompts of the gym have no such text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import gguf
from gguf import TokenType

from wfdsl.errors import UsageError

_ARCHITECTURE: Final = "qwen2"
_OUTER: Final = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_INNER: Final = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""What transformers and llama.cpp call the same weights. Source: gguf.tensor_mapping."""


def write_gguf(path: Path, network: Any, tokenizer: Any) -> None:
    """Write a model with its tokenizer and chat template.

    Raises:
        UsageError: the model or its tokenizer is of another kind than this can write.
    """
    config = network.config
    if config.model_type != _ARCHITECTURE:
        raise UsageError(f"a GGUF file is made of Qwen2 models only, and this is {config.model_type}")
    writer = gguf.GGUFWriter(path, _ARCHITECTURE)
    _add_shape(writer, config)
    _add_tokenizer(writer, tokenizer, config)
    for name, array in _weights(network).items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: Any, config: Any) -> None:
    rope = config.rope_parameters
    if rope.get("rope_type", "default") != "default" or config.use_sliding_window:
        raise UsageError("a GGUF file is made of models with plain rotary positions and without a sliding window only")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)


def _weights(network: Any) -> dict[str, Any]:
    """The weights by llama.cpp's names, as 32-bit arrays; a head that is the embedding is left out."""
    weights = {name: each.detach().float().cpu().numpy() for name, each in network.state_dict().items()}
    if network.config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    return {_name(name): array for name, array in weights.items()}


def _name(theirs: str) -> str:
    if theirs in _OUTER:
        return _OUTER[theirs]
    _, _, layer, rest = theirs.split(".", 3)
    module, _, kind = rest.rpartition(".")
    return f"blk.{layer}.{_INNER[module]}.{kind}"


def _add_tokenizer(writer: Any, tokenizer: Any, config: Any) -> None:
    plain = json.loads(tokenizer.backend_tokenizer.to_str())
    _require_qwen2_words(plain)
    texts, types = _tokens(plain, size=config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_ARCHITECTURE)
    writer.add_token_list(texts)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(pair) for pair in plain["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_add_bos_token(value=False)
    writer.add_chat_template(tokenizer.chat_template)


def _require_qwen2_words(plain: Mapping[str, Any]) -> None:
    """Refuse a tokenizer that cuts texts otherwise than llama.cpp will."""
    cuts = json.dumps(plain["pre_tokenizer"] or {}, ensure_ascii=False)
    if plain["model"]["type"] != "BPE" or "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|" not in cuts:
        raise UsageError("a GGUF file is made with Qwen2's kind of tokenizer only, and this is another")


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
