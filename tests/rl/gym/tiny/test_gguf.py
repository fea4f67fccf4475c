"""A model as a GGUF file: llama.cpp reads the same texts in it, and writes the same, as transformers does."""

from __future__ import annotations

import json
import urllib.request
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.conductor.checkpoint import load_prompt
from wfdsl.conductor.listing import WorkerListing
from wfdsl.errors import UsageError
from wfdsl.protocols import Call
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.local import LocalServer
from wfdsl.workers.model_folder import ModelDefaults, model_defaults
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym import make
from wfdsl_rl.gym.checkpoints import GYM_TINY, load

torch = pytest.importorskip("torch", reason="needs torch, in the extra rl")
transformers = pytest.importorskip("transformers", reason="needs transformers, in the extra rl")
pytest.importorskip("gguf", reason="needs gguf, in the extra rl")
pytest.importorskip("xllamacpp", reason="needs xllamacpp, in the extra local")

from wfdsl_rl.gym.tiny.gguf_file import write_gguf  # noqa: E402  (it needs gguf)
from wfdsl_rl.gym.tiny.random_model import make_model, make_tokenizer  # noqa: E402  (it needs torch)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

QUESTIONS = 50
TEXTS = [
    "It's 12 o'clock, they'LL say; we'Ve 3.14159 and 1,000,000.",
    "model_id = [0, 1]\nsubtasks = [\"a\", 'b']\naccess_list = [[], [0]]",
    "]\nsubtasks = []\naccess_list = [ choice  code text : math 9 math 9 choice 3",
    "  two  spaces\n\n\nand\ttabs \r\n and the end   ",
    "naïve café, Ελληνικά, 数学の問題, 🙂🙃 and \u00b2\u00bd",
    "<|user|>hi<|end|><|assistant|> <|endoftext|> <|pad|>",
    "",
]


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

    def next_tokens(self, ids: Sequence[int], most: int) -> dict[int, float]:
        """The log-probability of each token that may come next."""
        body = {"prompt": list(ids), "temperature": 0, "n_predict": 1, "n_probs": most}
        found = self._post("/completion", body)["completion_probabilities"][0]["top_logprobs"]
        return {each["id"]: each["logprob"] for each in found}

    def chances(self, ids: Sequence[int], defaults: ModelDefaults, most: int) -> dict[int, float]:
        """The chance of each token to be drawn next, at a temperature of 1."""
        asked = {"temperature": 1.0, "top_p": defaults.top_p, **defaults.body}
        body = {"prompt": list(ids), "n_predict": 1, "n_probs": most, "post_sampling_probs": True, **asked}
        found = self._post("/completion", body)["completion_probabilities"][0]["top_probs"]
        return {each["id"]: each["prob"] for each in found}


@asynccontextmanager
async def served(file: Path) -> AsyncIterator[_Server]:
    server = LocalServer((str(file), "--context", "1024", "--slots", "1", "--threads", "1", "--exact"))
    try:
        yield _Server(await server.url(), server.key)
    finally:
        await server.aclose()


def prompts(folder: Path, count: int) -> list[tuple[Any, ...]]:
    """The messages that a Conductor of a folder is sent for gym questions."""
    trained = load_prompt(folder)
    assert trained is not None
    offer = WorkerListing.of(Pool.load("gym/paper7"))
    tasks = make("gym/paper7", count, 11, split="test")
    return [tuple(trained.prompt.ask(task.question, offer, max_steps=trained.max_steps)) for task in tasks]


def as_text(tokenizer: Any, messages: Sequence[Any]) -> str:
    text: str = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return text


@pytest.mark.local
async def test_the_shipped_conductor_writes_the_same_with_either_runtime() -> None:
    folder = load(GYM_TINY)
    asked = prompts(folder, QUESTIONS)
    kinds = ("local", "transformers")
    pool = Pool([WorkerEntry(name=kind, provider=kind, model=str(folder), max_tokens=200) for kind in kinds])

    async with pool.open():
        replies = [[await pool.worker(index)(Call(messages)) for messages in asked] for index in pool.indices]

    light, heavy = replies
    assert [reply.text for reply in light] == [reply.text for reply in heavy]
    assert [reply.usage.input_tokens for reply in light] == [reply.usage.input_tokens for reply in heavy]
    assert len({reply.text for reply in light}) > 1
    assert {reply.finish for reply in light} == {"stop"}


@pytest.mark.local
async def test_the_shipped_conductor_reads_the_same_tokens_with_either_runtime() -> None:
    folder = load(GYM_TINY)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = [*TEXTS, *(as_text(tokenizer, messages) for messages in prompts(folder, QUESTIONS))]

    async with served(folder / "model.gguf") as server:
        found = [server.tokens(text) for text in texts]

    assert found == [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]


@pytest.mark.local
async def test_decomposed_characters_are_composed_as_transformers_does() -> None:
    folder = load(GYM_TINY)
    entry = WorkerEntry(name="w", provider="local", model=str(folder), max_tokens=20)
    pool = Pool([entry, entry.model_copy(update={"name": "v", "provider": "transformers"})])
    call = Call(({"role": "user", "content": "Spell cafe\u0301 nai\u0308ve."},))

    async with pool.open():
        light, heavy = [await pool.worker(index)(call) for index in (0, 1)]

    assert (light.text, light.usage.input_tokens) == (heavy.text, heavy.usage.input_tokens)


@pytest.mark.local
@pytest.mark.parametrize(
    "shape",
    [{}, {"tie_word_embeddings": False, "num_key_value_heads": 2, "vocab_size": 700, "rope_theta": 5e5}],
    ids=["tied", "untied, shared heads, ids without a token"],
)
async def test_any_qwen2_model_is_as_sure_of_each_token(shape: dict[str, Any], tmp_path: Path) -> None:
    texts = [task.question for task in make("gym/paper7", 40, 3)]
    tokenizer = make_tokenizer(texts, vocabulary=640, constants=[" choice ", ": math "])
    network = _reshaped(make_model(tokenizer, width=32, inner=48, layers=2, heads=4, seed=1), shape)
    write_gguf(tmp_path / "model.gguf", network, tokenizer)
    asked = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in [*TEXTS[:-1], *texts[:5]]]

    async with served(tmp_path / "model.gguf") as server:
        found = [server.next_tokens(ids, network.config.vocab_size) for ids in asked]

    for ids, light in zip(asked, found, strict=True):
        with torch.inference_mode():
            heavy = torch.log_softmax(network(torch.tensor([ids])).logits[0, -1], -1).tolist()
        assert set(light) == set(range(network.config.vocab_size))
        assert [light[token] for token in range(len(heavy))] == pytest.approx(heavy, abs=1e-4)


@pytest.mark.local
async def test_at_a_temperature_of_1_it_draws_from_the_whole_distribution() -> None:
    folder = load(GYM_TINY)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    ids = tokenizer(f"{as_text(tokenizer, prompts(folder, 1)[0])}A math question.\nmodel_id = [")["input_ids"]

    async with served(folder / "model.gguf") as server:
        chances = server.chances(ids, model_defaults(folder), network.config.vocab_size)

    with torch.inference_mode():
        whole = torch.softmax(network(torch.tensor([ids])).logits[0, -1], -1).tolist()
    assert [chances[token] for token in range(len(whole))] == pytest.approx(whole, abs=1e-4)


def _reshaped(network: Any, shape: dict[str, Any]) -> Any:
    """A model of another shape, whose weights are large enough that every part of it matters."""
    config = network.config.to_dict() | shape
    if "rope_theta" in config:
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": config.pop("rope_theta")}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        made = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**config))
        with torch.no_grad():
            for weights in made.parameters():
                weights.add_(0.2 * torch.randn_like(weights))
    return made.eval()


def test_a_model_of_another_architecture_is_refused(tmp_path: Path) -> None:
    config = transformers.LlamaConfig(
        vocab_size=300, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2
    )
    network = transformers.LlamaForCausalLM(config)

    with pytest.raises(UsageError, match="made of Qwen2 models only, and this is llama"):
        write_gguf(tmp_path / "model.gguf", network, make_tokenizer(["a"], vocabulary=300))

    assert list(tmp_path.iterdir()) == []


def test_a_tokenizer_that_cuts_otherwise_is_refused(tmp_path: Path) -> None:
    from tokenizers import pre_tokenizers

    tokenizer = make_tokenizer(["a"], vocabulary=300)
    network = make_model(tokenizer, width=8, inner=8, layers=1, heads=2, seed=1)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)

    with pytest.raises(UsageError, match="Qwen2's kind of tokenizer only"):
        write_gguf(tmp_path / "model.gguf", network, tokenizer)


def test_a_model_with_other_positions_is_refused(tmp_path: Path) -> None:
    tokenizer = make_tokenizer(["a"], vocabulary=300)
    network = make_model(tokenizer, width=8, inner=8, layers=1, heads=2, seed=1)
    network.config.use_sliding_window = True

    with pytest.raises(UsageError, match="without a sliding window only"):
        write_gguf(tmp_path / "model.gguf", network, tokenizer)
