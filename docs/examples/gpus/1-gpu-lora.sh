#!/bin/sh
# LoRA on the paper's 7B Conductor, with one GPU of 80 GB. All weights of 7B need 113 GiB: they do not fit on one.
# GPU 0    weights and adapters in 32 bits, and vLLM in the same process
# dry run  54 GiB of the GPU, 24 of them vLLM's; activations of 8 completions take about 15 more
# bits     for vLLM, TRL adds the adapters to the frozen weights and takes them off again, before each generation. In
#          16 bits the weights would change a little each time, and the adapters would not fit the original ones
# rate     1e-5 in each stage, ten times the paper's, which is for all weights: our choice, after Schulman et al. 2025,
#          "LoRA Without Regret", which also finds that a small rank is enough for rewards
# begin    sh 1-gpu-lora.sh --out runs/lora, and other options
# resume   sh 1-gpu-lora.sh --resume runs/lora
set -e
export CUDA_VISIBLE_DEVICES=0 # of several, transformers would use all
[ "$1" = --resume ] || set -- paper-7b \
    --set train.processes=1 \
    --set train.fsdp=off \
    --set train.lora.r=32 \
    --set train.stages.base.learning_rate=1e-5 \
    --set train.stages.pools.learning_rate=1e-5 \
    --set train.stages.recursion.learning_rate=1e-5 \
    "$@"
exec wfdsl-train "$@"
