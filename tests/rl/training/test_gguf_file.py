"""A model as a GGUF file: llama.cpp reads the same tokens in it, and writes the same, as transformers does."""

from __future__ import annotations

import json
import urllib.request
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.errors import UsageError
from wfdsl.workers.local import LocalServer, ServedModel

torch = pytest.importorskip("torch", reason="needs torch, in the extra rl")
transformers = pytest.importorskip("transformers", reason="needs transformers, in the extra rl")
pytest.importorskip("gguf", reason="needs gguf, in the extra rl")

from tests.rl.training.random_model import make_model, make_tokenizer  # noqa: E402  (it needs torch)
from wfdsl_rl.training.export import write_gguf  # noqa: E402  (it needs gguf)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

TEXTS = [
    "It's 12 o'clock, they'LL say; we'Ve 3.14159 and 1,000,000.",
    "model_id = [0, 1]\nsubtasks = [\"a\", 'b']\naccess_list = [[], [0]]",
    "]\nsubtasks = []\naccess_list = [ choice  code text : math 9 math 9 choice 3",
    "  two  spaces\n\n\nand\ttabs \r\n and the end   ",
    "naïve café, Ελληνικά, 数学の問題, 🙂 and ²½",
    "<|user|>hi<|end|><|assistant|> <|endoftext|> <|pad|>",
]
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
WRITTEN = 12
"""Tokens that are compared after each text."""


@dataclass(frozen=True, slots=True)
class _Server:
    """A server with a model, asked directly."""

    url: str
    key: str

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def tokens(self, text: str) -> list[int]:
        found: list[int] = self._post("/tokenize", {"content": text, "parse_special": True})["tokens"]
        return found

    def written(self, ids: Sequence[int]) -> list[int]:
        """The tokens after a text, each the most likely one."""
        body = {"prompt": list(ids), "temperature": 0, "n_predict": WRITTEN, "return_tokens": True, "ignore_eos": True}
        found: list[int] = self._post("/completion", body)["tokens"]
        return found

    def next_tokens(self, ids: Sequence[int], most: int, letter: int) -> dict[int, float]:
        """The log-probability of each token that may come next; `letter` does, because parts of one are not told."""
        body = {"prompt": list(ids), "n_predict": 1, "n_probs": most, "logit_bias": [[letter, 1000]]}
        found = self._post("/completion", body)["completion_probabilities"][0]["top_logprobs"]
        return {each["id"]: each["logprob"] for each in found}


@asynccontextmanager
async def served(file: Path) -> AsyncIterator[_Server]:
    server = LocalServer(ServedModel(str(file), context=1024, threads=1, exact=True))
    try:
        await server.connection()
        yield _Server(server.url, server.key)
    finally:
        await server.aclose()


def a_model(kind: str, shape: dict[str, Any]) -> tuple[Any, Any]:
    """A tokenizer, and a model whose weights are large enough that every part of it matters."""
    tokenizer = make_tokenizer(TEXTS, vocabulary=340, constants=[" choice ", ": math "])
    ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    config = {"vocab_size": len(tokenizer), **SIZES, **ids, **shape}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        network = getattr(transformers, f"{kind}ForCausalLM")(getattr(transformers, f"{kind}Config")(**config))
        with torch.no_grad():
            for weights in network.parameters():
                weights.add_(0.2 * torch.randn_like(weights))
    return tokenizer, network.eval()


@pytest.mark.local
@pytest.mark.parametrize("kind", ["Llama", "Qwen2"])
@pytest.mark.parametrize(
    "shape",
    [
        {"tie_word_embeddings": True, "num_key_value_heads": 4},
        {
            "tie_word_embeddings": False,
            "num_key_value_heads": 2,
            "vocab_size": 400,
            "rope_parameters": {"rope_type": "default", "rope_theta": 5e5},
        },
    ],
    ids=["tied", "untied, grouped heads, ids without a token"],
)
async def test_a_file_reads_and_writes_as_the_model_that_it_was_made_of(
    kind: str, shape: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("xllamacpp", reason="needs xllamacpp, in the extra local")
    tokenizer, network = a_model(kind, shape)
    write_gguf(tmp_path / "model.gguf", network, tokenizer)
    asked = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS]

    async with served(tmp_path / "model.gguf") as server:
        read = [server.tokens(text) for text in TEXTS]
        letter = tokenizer.convert_tokens_to_ids("a")
        sure = [server.next_tokens(ids, network.config.vocab_size, letter) for ids in asked]
        written = [server.written(ids) for ids in asked]

    assert read == asked
    for ids, light, said in zip(asked, sure, written, strict=True):
        whole = torch.tensor([ids])
        with torch.inference_mode():
            heavy = torch.log_softmax(network(whole).logits[0, -1], -1).tolist()
            for _ in range(WRITTEN):
                logits = network(whole).logits[0, -1]
                logits[[tokenizer.eos_token_id, tokenizer.pad_token_id]] = -torch.inf  # both end a text in llama.cpp
                whole = torch.cat([whole, logits.argmax().view(1, 1)], dim=1)
        assert [light[token] for token in range(len(heavy))] == pytest.approx(heavy, abs=1e-4)
        assert said == whole[0, len(ids) :].tolist()


@pytest.mark.parametrize("fault", ["architecture", "tokenizer", "positions"])
def test_a_model_that_the_file_cannot_hold_is_refused(fault: str, tmp_path: Path) -> None:
    from tokenizers import pre_tokenizers

    tokenizer = make_tokenizer(["a"], vocabulary=300)
    network = make_model(tokenizer, width=8, inner=8, layers=1, heads=2, seed=1)
    if fault == "architecture":
        network.config.model_type = "gpt2"
    elif fault == "tokenizer":
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    else:
        network.config.use_sliding_window = True

    with pytest.raises(UsageError, match="a GGUF file is made "):
        write_gguf(tmp_path / "model.gguf", network, tokenizer)
