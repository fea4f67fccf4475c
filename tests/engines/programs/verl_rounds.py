"""Episodes of several rounds in verl's own agent loop worker: `verl_rounds.py ROWS.parquet SCRIPT.json OPTIONS.json`.

verl's data set reads the rows, and its worker builds the batch. The model server is replaced: a checkpoint (`model` of
the options) samples on this processor or, of a script that is not empty, each sample's completions are given.
"""

import asyncio
import json
import sys
from pathlib import Path

import numpy as np
import torch
import verl.trainer
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from transformers import AutoModelForCausalLM
from verl import DataProto
from verl.experimental.agent_loop import AgentLoopWorker
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
from verl.workers.rollout.replica import TokenOutput

script = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
options = json.loads(sys.argv[3])
model_path, length = options.pop("model"), options.pop("length", 400)
loop = {"name": "rounds", "_target_": "wfdsl_rl.engines.verl_rounds.RoundsAgentLoop", **options}
OmegaConf.save(OmegaConf.create([loop]), "loops.yaml")
overrides = [
    f"data.train_files={sys.argv[1]}",
    f"actor_rollout_ref.model.path={model_path}",
    "+actor_rollout_ref.model.override_config.attn_implementation=eager",
    "actor_rollout_ref.rollout.name=vllm",
    "actor_rollout_ref.rollout.calculate_log_probs=true",
    "data.max_prompt_length=400",
    f"data.max_response_length={length}",
    "actor_rollout_ref.rollout.agent.agent_loop_config_path=loops.yaml",
    "actor_rollout_ref.rollout.agent.default_agent_loop=rounds",
]
with initialize_config_dir(str(Path(verl.trainer.__file__).parent / "config"), version_base=None):
    config = compose("ppo_trainer", overrides=overrides)


class Server:
    """What verl's model server is to an agent loop."""

    def __init__(self):
        self.calls = []
        self.model = AutoModelForCausalLM.from_pretrained(model_path).eval()

    async def generate(self, request_id, *, prompt_ids, sampling_params, priority):
        earlier = [call for call in self.calls if call["sample"] == priority]
        assert all(call["id"] == request_id for call in earlier)
        ids, logprobs = self.given(script[priority][len(earlier)]) if script else self.sampled(prompt_ids)
        call = {"sample": priority, "id": request_id, "prompt": list(prompt_ids), "ids": ids, "logprobs": logprobs}
        self.calls.append(call)
        return TokenOutput(token_ids=ids, log_probs=logprobs, num_preempted=0)

    def given(self, text):
        ids = [*worker.tokenizer.encode(text, add_special_tokens=False), worker.tokenizer.eos_token_id]
        return ids, [-0.5] * len(ids)

    def sampled(self, prompt_ids):
        with torch.no_grad():
            found = self.model.generate(
                torch.tensor([prompt_ids]),
                attention_mask=torch.ones(1, len(prompt_ids), dtype=torch.long),
                do_sample=True,
                max_new_tokens=length,
                output_logits=True,
                return_dict_in_generate=True,
            )
        ids = found.sequences[0, len(prompt_ids) :].tolist()
        chances = torch.stack(found.logits)[:, 0].log_softmax(-1)
        return ids, [chances[place, each].item() for place, each in enumerate(ids)]


server = Server()
worker = AgentLoopWorker(config, server)
worker.hf_model_type = None  # the checkpoint has the layers of Qwen2, but no ChatML
torch.manual_seed(0)


async def main():
    rows = RLHFDataset(sys.argv[1], worker.tokenizer, config.data)
    count = len(script) or len(rows)
    batch = DataProto.from_single_dict(collate_fn([rows[number % len(rows)] for number in range(count)]))
    batch.non_tensor_batch["priority"] = np.arange(count)  # tells the samples apart at the server
    return await worker.generate_sequences(batch)


batch = asyncio.run(main())
samples = []
for number in range(len(batch)):
    item = batch[number]
    mask = item.batch["response_mask"].bool()
    attended = item.batch["attention_mask"][-len(mask) :].bool()
    samples.append(
        {
            "text": worker.tokenizer.decode(item.batch["responses"][attended]),
            "trained": item.batch["responses"][mask].tolist(),
            "logprobs": item.batch["rollout_log_probs"][mask].tolist(),
            "between": item.batch["rollout_log_probs"][attended & ~mask].tolist(),
            "reward": item.batch["rm_scores"].sum().item(),
            "at_the_end": item.batch["rm_scores"].nonzero().flatten().tolist() in ([], [int(attended.sum()) - 1]),
            "turns": int(item.non_tensor_batch["__num_turns__"]),
            **{name: float(item.non_tensor_batch[name]) for name in batch.meta_info["reward_extra_keys"]},
        }
    )
print(json.dumps({"samples": samples, "calls": server.calls}))
