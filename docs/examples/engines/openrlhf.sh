#!/usr/bin/env bash
# The paper's base stage (arXiv 2512.04388, section 4) on OpenRLHF 0.11 (3c3be623), on two GPUs of 80 GB. Names of
# options are read from OpenRLHF's code; the training was not run. Numbers are the paper's unless a comment says "our
# choice".
# Before: python rows.py openrlhf POOL mix.jsonl train.jsonl
#         wfdsl serve --score --pool POOL --tasks mix.jsonl --budget-usd 500
#         ray start --head
set -e
options=(
    --actor.model_name_or_path Qwen/Qwen2.5-7B                  # base or instruct is open in the paper: our choice
    --data.prompt_dataset train.jsonl                           # the rows
    --data.input_key prompt                                     # the column with the messages
    --data.label_key label                                      # the column with the task's id
    --data.apply_chat_template                                  # messages become a text
    --data.max_samples 800                                      # 200 iterations of 4 questions
    --data.max_len 6144                                         # our choice: a longer prompt is cut, and refused
    --reward.remote_url rewards.py                              # the reward server; experiments share no results
    --train.num_episodes 1                                      # each question once
    --train.max_epochs 1                                        # one optimisation step for an iteration
    --train.batch_size 256                                      # 4 questions x 64 completions
    --train.micro_batch_size 8                                  # our choice: memory only
    --rollout.batch_size 4                                      # questions of an iteration
    --rollout.n_samples_per_prompt 64                           # completions of a question
    --rollout.micro_batch_size 8                                # our choice: memory only
    --rollout.max_new_tokens 1024                               # tokens of a completion
    --rollout.temperature 1.0                                   # temperature
    --algo.advantage.estimator group_norm                       # GRPO: advantages within a question's completions
    --algo.kl.init_coef 0                                       # KL 0
    --actor.eps_clip 0.2                                        # clip
    --actor.adam.lr 1e-6                                        # learning rate
    --actor.adam.betas 0.9 0.999                                # as in the paper
    --actor.lr_scheduler cosine                                 # to 0 at the last iteration
    --actor.lr_warmup_ratio 0.03                                # 6 of 200 iterations
    --actor.num_nodes 1                                         # one machine
    --actor.num_gpus_per_node 2                                 # two GPUs
    --actor.gradient_checkpointing_enable                       # our choice: memory only
    --train.colocate_all                                        # our choice: both GPUs train, and write completions
    --vllm.num_engines 2                                        # our choice: one copy of the model on each GPU
    --vllm.tensor_parallel_size 1                               # our choice
    --vllm.gpu_memory_utilization 0.5                           # our choice: the rest is the trainer's
    --vllm.enable_sleep                                         # our choice: memory only
    --ds.enable_sleep                                           # our choice: memory only
    --ds.zero_stage 3                                           # our choice: memory only
    --ds.adam_offload                                           # our choice: moments do not fit beside vLLM
    --ckpt.output_dir runs/openrlhf                             # where the model is kept
    --ckpt.path runs/openrlhf/checkpoints                       # where checkpoints are kept
    --ckpt.save_steps 25                                        # our choice
)
ray job submit --address=http://127.0.0.1:8265 -- python3 -m openrlhf.cli.train_ppo_ray "${options[@]}"
