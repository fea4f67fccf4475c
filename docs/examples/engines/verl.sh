#!/usr/bin/env bash
# The paper's base stage (arXiv 2512.04388, section 4) on verl 0.9, on two GPUs of 80 GB. Every option is tested against
# verl's configuration; the training was not run. Numbers are the paper's unless a comment says "our choice".
# Before: python rows.py verl POOL mix.jsonl train.parquet
#         wfdsl serve --score --pool POOL --tasks mix.jsonl --budget-usd 500
set -e
options=(
    algorithm.adv_estimator=grpo                                # advantages within a question's completions
    algorithm.use_kl_in_reward=false                            # KL 0
    data.train_files=train.parquet                              # the rows
    data.val_files=train.parquet                                # verl wants some; they are not used
    data.train_batch_size=4                                     # questions of an iteration
    data.shuffle=false                                          # our choice: the order of the file
    data.max_prompt_length=5120                                 # our choice: longer than any prompt of the mix
    data.max_response_length=1024                               # tokens of a completion
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B                # base or instruct is open in the paper: our choice
    actor_rollout_ref.actor.optim.lr=1e-6                       # learning rate
    actor_rollout_ref.actor.optim.lr_scheduler_type=cosine      # to 0 at the last iteration
    actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.03    # 6 of 200 iterations
    actor_rollout_ref.actor.ppo_mini_batch_size=4               # one optimisation step for an iteration
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8      # our choice: memory only
    actor_rollout_ref.actor.clip_ratio=0.2                      # clip
    actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean   # the loss of GRPO: completions count alike
    actor_rollout_ref.actor.use_kl_loss=false                   # KL 0: no reference model is loaded
    actor_rollout_ref.actor.entropy_coeff=0                     # no bonus for entropy
    actor_rollout_ref.rollout.name=vllm                         # our choice: what writes completions
    actor_rollout_ref.rollout.n=64                              # completions of a question
    actor_rollout_ref.rollout.temperature=1.0                   # temperature
    actor_rollout_ref.rollout.gpu_memory_utilization=0.3        # our choice: the rest is the trainer's
    actor_rollout_ref.rollout.tensor_model_parallel_size=1      # our choice: one copy of the model on each GPU
    reward.custom_reward_function.path=rewards.py                            # the adapter
    reward.custom_reward_function.name=compute_score                            # its function
    trainer.total_training_steps=200                            # iterations
    trainer.save_freq=25                                        # our choice
    trainer.val_before_train=false                              # our choice: evaluations cost worker calls
    trainer.test_freq=-1                                        # our choice: none during training
    trainer.n_gpus_per_node=2                                   # two GPUs
    trainer.nnodes=1                                            # one machine
)
python -m verl.trainer.main_ppo "${options[@]}"
