#!/bin/sh
# The paper's base stage (arXiv 2512.04388, section 4) on verl 0.9: 200 iterations of 4 questions x 64 completions.
# Before: wfdsl-reward rows verl --pool POOL --tasks mix.jsonl --out train.parquet
#         wfdsl-reward serve --pool POOL --tasks mix.jsonl --budget-usd 500
set -e
python -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    algorithm.use_kl_in_reward=false \
    data.train_files=train.parquet \
    data.val_files=train.parquet \
    data.train_batch_size=4 \
    data.shuffle=false \
    data.max_prompt_length=5120 \
    data.max_response_length=1024 \
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
    actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.actor.optim.lr_scheduler_type=cosine \
    actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.03 \
    actor_rollout_ref.actor.ppo_mini_batch_size=4 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
    actor_rollout_ref.actor.clip_ratio=0.2 \
    actor_rollout_ref.actor.use_kl_loss=false \
    actor_rollout_ref.actor.entropy_coeff=0 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=64 \
    actor_rollout_ref.rollout.temperature=1.0 \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.3 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
    reward.custom_reward_function.path=pkg://wfdsl_rl.engines.verl \
    reward.custom_reward_function.name=compute_score \
    +reward.custom_reward_function.reward_kwargs.url=http://127.0.0.1:8700 \
    +reward.custom_reward_function.reward_kwargs.run=base \
    trainer.total_training_steps=200 \
    trainer.save_freq=25 \
    trainer.val_before_train=false \
    trainer.test_freq=-1 \
    trainer.n_gpus_per_node=2 \
    trainer.nnodes=1
