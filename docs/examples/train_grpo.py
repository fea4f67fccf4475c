"""Train a Conductor with TRL's own GRPOTrainer: tasks, a reward and a data set from wfdsl, and nothing else.

python docs/examples/train_grpo.py --model Qwen/Qwen2.5-0.5B-Instruct    # a folder, or a model of the hub
python docs/examples/train_grpo.py                                       # a tiny model of random weights, on a CPU
"""

from __future__ import annotations

import argparse
from typing import Any

from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

import wfdsl
import wfdsl_rl


def tiny_model() -> tuple[Any, Any]:
    """A model of random weights that reads and writes bytes, to try the code with. It learns nothing in a few steps."""
    symbols = ["<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bytes_only = Tokenizer(models.BPE(vocab={symbol: at for at, symbol in enumerate(symbols)}, merges=[]))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_only.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_only, eos_token="<end>", pad_token="<end>")
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Qwen2Config(vocab_size=len(symbols), num_key_value_heads=2, eos_token_id=0, pad_token_id=0, **size)
    return Qwen2ForCausalLM(config), tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a folder, or a model of the Hugging Face hub")
    parser.add_argument("--pool", default="gym/seven", help="the workers: a pool by name, or its file")
    parser.add_argument("--tasks", default="gym/seven@train", help="the questions: a data set by name, or its file")
    parser.add_argument("--steps", type=int, default=200, help="optimisation steps")
    parser.add_argument("--out", default="trained", help="folder for the checkpoints")
    args = parser.parse_args()

    tasks = wfdsl.load_tasks(args.tasks, limit=960, seed=0)
    model, tokenizer = (args.model, AutoTokenizer.from_pretrained(args.model)) if args.model else tiny_model()
    config = GRPOConfig(
        output_dir=args.out,
        max_steps=args.steps,
        num_generations=8,
        per_device_train_batch_size=8,
        max_completion_length=512 if args.model else 16,
        learning_rate=1e-6,
        logging_steps=1,
        use_cpu=not args.model,
        report_to="none",
    )
    prompt, end = "paper" if args.model else "tiny", tokenizer.eos_token_id
    with wfdsl_rl.Reward(args.pool, tasks, prompt=prompt, end_of_text=end) as reward:
        rows = Dataset.from_list(reward.rows())
        trainer = GRPOTrainer(model, reward.trl, config, rows, processing_class=tokenizer)
        trainer.train()


if __name__ == "__main__":
    main()
