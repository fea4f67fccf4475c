#!/usr/bin/env bash
# The paper's base stage (arXiv 2512.04388, section 4) on SkyRL 0.3 (a9564572), on two GPUs of 80 GB. The options are
# valid for SkyRL's configuration; the training was not run. Numbers are the paper's unless a comment says "our choice".
# Before: python rows.py skyrl POOL mix.jsonl train.parquet
#         wfdsl serve --score --pool POOL --tasks mix.jsonl --budget-usd 500
set -e
options=(
    data.train_data="['train.parquet']"                         # the rows
    environment.env_class=wfdsl                                 # the environment that skyrl_conductor.py registers
    environment.skyrl_gym.max_env_workers=256                   # a thread for each completion that waits; SkyRL: 32
    trainer.algorithm.advantage_estimator=grpo                  # advantages within a question's completions
    trainer.algorithm.loss_reduction=sequence_mean              # the loss of GRPO: completions count alike
    trainer.algorithm.eps_clip_low=0.2                          # clip
    trainer.algorithm.eps_clip_high=0.2                         # clip
    trainer.algorithm.use_kl_loss=false                         # KL 0
    trainer.policy.model.path=Qwen/Qwen2.5-7B                   # base or instruct is open in the paper: our choice
    trainer.policy.optimizer_config.lr=1e-6                     # learning rate
    trainer.policy.optimizer_config.scheduler=cosine            # to 0 at the last iteration
    trainer.policy.optimizer_config.num_warmup_steps=6          # warm-up 0.03 of 200 iterations
    trainer.train_batch_size=4                                  # questions of an iteration
    trainer.policy_mini_batch_size=4                            # one optimisation step for an iteration
    trainer.micro_train_batch_size_per_gpu=8                    # our choice: memory only
    trainer.micro_forward_batch_size_per_gpu=8                  # our choice: memory only
    trainer.max_prompt_length=5120                              # our choice: longer than any prompt of the mix
    trainer.epochs=1                                            # our choice: each question once
    trainer.max_training_steps=200                              # iterations
    trainer.eval_before_train=false                             # our choice: evaluations cost worker calls
    trainer.eval_interval=-1                                    # our choice: none during training
    trainer.ckpt_interval=25                                    # our choice
    trainer.ckpt_path=runs/skyrl                                # where checkpoints are kept
    trainer.logger=console                                      # our choice; SkyRL: wandb
    trainer.strategy=fsdp                                       # our choice
    trainer.placement.colocate_all=true                         # our choice: both GPUs train, and write completions
    trainer.placement.policy_num_gpus_per_node=2                # two GPUs
    generator.inference_engine.num_engines=2                    # our choice: one copy of the model on each GPU
    generator.inference_engine.tensor_parallel_size=1           # our choice
    generator.inference_engine.gpu_memory_utilization=0.5       # our choice: the rest is the trainer's
    generator.n_samples_per_prompt=64                           # completions of a question
    generator.sampling_params.temperature=1.0                   # temperature
    generator.sampling_params.max_generate_length=1024          # tokens of a completion
)
python "$(dirname "$0")/skyrl_conductor.py" "${options[@]}"
