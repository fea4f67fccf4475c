"""The shape of Qwen2.5-7B as a folder without weights, for estimates."""

from __future__ import annotations

import json
from pathlib import Path

SEVEN = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}
"""Its config.json."""


def seven(folder: Path) -> Path:
    """A folder with it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(SEVEN), encoding="utf-8")
    return folder
