#!/usr/bin/env bash
# The paper's base stage (arXiv 2512.04388, section 4) on slime 0.3 (624b824a), on two GPUs of 80 GB. Names of options
# are read from slime's code and scripts; the training was not run. Numbers are the paper's unless a comment says "our
# choice".
# Before: python rows.py slime POOL mix.jsonl train.jsonl
#         wfdsl serve --score --pool POOL --tasks mix.jsonl --budget-usd 500
#         slime's tools/convert_hf_to_torch_dist.py for the weights; `ray start --head`; run this in slime's folder
set -e
source scripts/models/qwen2.5-7B.sh                             # slime's own: MODEL_ARGS, the shape of the model
options=(
    --hf-checkpoint Qwen2.5-7B                                  # base or instruct is open in the paper: our choice
    --ref-load Qwen2.5-7B_torch_dist                            # the same in Megatron's form; training starts from it
    --save runs/slime                                           # where checkpoints are kept
    --save-interval 25                                          # our choice
    --prompt-data train.jsonl                                   # the rows
    --input-key prompt                                          # the column with the messages
    --label-key label                                           # the column with the task's id
    --apply-chat-template                                       # messages become a text
    --custom-rm-path rewards.custom_rm                          # asks the reward server
    --num-rollout 200                                           # iterations
    --rollout-batch-size 4                                      # questions of an iteration
    --n-samples-per-prompt 64                                   # completions of a question
    --global-batch-size 256                                     # one optimisation step for an iteration
    --rollout-max-response-len 1024                             # tokens of a completion
    --rollout-temperature 1.0                                   # temperature
    --advantage-estimator grpo                                  # advantages within a question's completions
    --eps-clip 0.2                                              # clip; KL 0: without --use-kl-loss
    --entropy-coef 0.0                                          # no bonus for entropy
    --optimizer adam                                            # as in the paper
    --lr 1e-6                                                   # learning rate
    --lr-decay-style cosine                                     # to 0 at the last iteration
    --lr-warmup-fraction 0.03                                   # 6 of 200 iterations
    --adam-beta2 0.999                                          # as in the paper
    --actor-num-nodes 1                                         # one machine
    --actor-num-gpus-per-node 2                                 # two GPUs
    --colocate                                                  # our choice: both GPUs train, and write completions
    --tensor-model-parallel-size 2                              # our choice: memory only
    --sequence-parallel                                         # our choice: memory only
    --optimizer-cpu-offload                                     # our choice: moments do not fit beside SGLang
    --overlap-cpu-optimizer-d2h-h2d                             # as slime's scripts do with it
    --use-precision-aware-optimizer                             # as slime's scripts do with it
    --use-dynamic-batch-size                                    # our choice: memory only
    --max-tokens-per-gpu 9216                                   # our choice: memory only
    --rollout-num-gpus-per-engine 1                             # our choice: one copy of the model on each GPU
    --sglang-mem-fraction-static 0.5                            # our choice: the rest is the trainer's
)
ray job submit --address=http://127.0.0.1:8265 -- python3 train.py "${MODEL_ARGS[@]}" "${options[@]}"
