"""Export a trained model as a folder for serving: merged weights, tokenizer, prompt and model card; and as a GGUF file.

A GGUF file holds a model of the Llama or Qwen2 architecture, which llama.cpp runs without torch. Tokens keep their ids.
What the tokenizer always takes as one piece is a token that llama.cpp takes as one piece too; special tokens are
control tokens. Where two such pieces overlap in a text, llama.cpp takes the longer one and transformers the first.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import transformers
from gguf import MODEL_ARCH, GGMLQuantizationType, GGUFWriter, LlamaFileType, TokenType, get_tensor_name_map, quants

from wfdsl.conductor.checkpoint import FILE, load_prompt, save_prompt
from wfdsl.errors import UsageError
from wfdsl.evaluation.manifest import TRAINING_COST, FitCost
from wfdsl_rl.training.checkpoints import ADAPTER, load_model
from wfdsl_rl.training.plan import DONE, RESOLVED
from wfdsl_rl.training.samples import read_samples

CARD: Final = "README.md"
GGUF: Final = "model.gguf"
Precision: TypeAlias = Literal["f32", "q8_0", "q5_0"]
"""How weights are written: as they are, or in blocks of 32 with 8 or 5 bits and a common factor. Of 5 bits, what enters
the last feed-forward layer has 4: there an error goes through no further layer."""

_CUTS: Final = {
    "gpt-2": ('"use_regex": true',),
    "smollm": ('"Digits"', '"ByteLevel"'),
    "qwen2": ("[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|",),
}
"""llama.cpp's names of ways to cut a text before merging, and what tokenizers of transformers that do so have."""


def export(folder: Path, out: Path, *, gguf: Precision | None = None, say: Callable[[str], None]) -> None:
    """Write a stage's model into a new folder, completely or not at all; adapters are merged into the weights.

    Args:
        folder: Of a training, or of a stage's model.
        out: The folder to make.
        gguf: The precision of a GGUF file, which needs no torch; None: none is written.
        say: Takes lines for people.

    Raises:
        UsageError: there is no model, the folder exists already, or a GGUF file cannot hold the model.
    """
    transformers.utils.logging.disable_progress_bar()
    source = _model_folder(folder)
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty: use a new folder")
    trained = load_prompt(source)
    if trained is None:
        raise UsageError(f"{source} has no {FILE}: it was not made by wfdsl-train")
    stages = _stages(source)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as kept:
        made = Path(kept) / out.name
        tokenizer, load = transformers.AutoTokenizer.from_pretrained(source), transformers.AutoModelForCausalLM
        adapters = (source / ADAPTER).is_file()
        network = load_model(str(source))[1] if adapters else load.from_pretrained(source, dtype="auto")
        network.save_pretrained(made, safe_serialization=True)
        tokenizer.save_pretrained(made)
        if gguf:
            write_gguf(made / GGUF, network, tokenizer, precision=gguf)
        save_prompt(made, trained.prompt, max_steps=trained.max_steps, max_rounds=trained.max_rounds)
        (made / CARD).write_text(_card(stages, network, gguf=gguf), encoding="utf-8")
        if (cost := _training_cost(stages)) is not None:
            (made / TRAINING_COST).write_text(json.dumps(asdict(cost)) + "\n", encoding="utf-8")
        for weights in made.glob("*.safetensors"):  # safetensors makes them readable for the owner only
            weights.chmod((made / CARD).stat().st_mode)
        made.rename(out)  # an empty folder is replaced
    say(f"{source} -> {out}: {network.num_parameters():,} weights, prompt {trained.prompt.name}")
    say(f"ask it:   wfdsl solve --conductor {out} -q QUESTION")
    say(f"serve it: see {out / CARD}")


def _model_folder(folder: Path) -> Path:
    """The folder itself, or that of the latest complete stage."""
    finished = sorted(folder.glob(f"*/final/{DONE}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for each in (folder, *(path.parent for path in finished)):
        if (each / "config.json").is_file() or (each / ADAPTER).is_file():
            return each
    raise UsageError(f"{folder} does not hold a model: give the folder of a training, or a stage's `final`")


def _stages(source: Path) -> list[Path]:
    """The folders of the stages that led to a model, in their order."""
    found: list[Path] = []
    while (path := source / DONE).is_file() and source not in found:
        found.insert(0, source)
        source = Path(json.loads(path.read_text(encoding="utf-8"))["from"])
    return found


def _training_cost(stages: list[Path]) -> FitCost | None:
    """What the workers of a training have cost; None if samples do not say."""
    files = [file for folder in stages for file in folder.parent.glob("samples/*.jsonl.gz")]
    rows = (row for file in files for row in read_samples(file))
    costs = [FitCost(row["calls"], sum(row["tokens"].values()), row["cost_usd"]) for row in rows]
    return sum(costs, FitCost(0, 0, 0.0)) if costs else None


def _card(stages: list[Path], network: Any, *, gguf: str | None) -> str:
    """The model card, in Markdown, with the header that the Hugging Face hub reads."""
    path = (stages[-1].parent.parent if stages else Path()) / RESOLVED
    resolved = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    train = resolved.get("train", {})
    model = train.get("model", "not known")
    return Template((files("wfdsl_rl.training") / "model_card.md").read_text(encoding="utf-8")).substitute(
        base_model=f"\nbase_model: {model}" if train and not Path(model).exists() else "",
        weights=f"{network.num_parameters():,}",
        architecture=network.config.model_type,
        start=model,
        tasks=train.get("tasks", "not known"),
        pool=resolved.get("pool", {}).get("name", "not known"),
        stages=" -> ".join(folder.parent.name for folder in stages) or "not known",
        prompt_file=FILE,
        gguf=f"\n`{GGUF}` holds the same weights for llama.cpp, in {gguf}; torch is not needed.\n" if gguf else "",
        settings=json.dumps(train, indent=2),
    )


def write_gguf(path: Path, network: Any, tokenizer: Any, *, precision: Precision = "f32") -> None:
    """Write a model with its tokenizer and chat template.

    Raises:
        UsageError: the model or its tokenizer is of another kind than this can write.
    """
    config = network.config
    if config.model_type not in ("llama", "qwen2"):
        raise UsageError(f"a GGUF file is made of Llama and Qwen2 models only, and this is {config.model_type}")
    writer = GGUFWriter(path, config.model_type)
    _add_shape(writer, config)
    writer.add_file_type(LlamaFileType[f"{'ALL' if precision == 'f32' else 'MOSTLY'}_{precision.upper()}"])
    _add_tokenizer(writer, tokenizer, config)
    fewer = [f"blk.{config.num_hidden_layers - 1}.ffn_{part}.weight" for part in ("gate", "up")]
    for name, array in _weights(network).items():
        kind = GGMLQuantizationType[precision.upper()] if array.ndim > 1 else GGMLQuantizationType.F32
        if precision == "q5_0" and name in fewer:
            kind = GGMLQuantizationType.Q4_0
        writer.add_tensor(name, quants.quantize(array, kind), raw_dtype=kind)
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
    names = get_tensor_name_map(MODEL_ARCH[config.model_type.upper()], config.num_hidden_layers)
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
