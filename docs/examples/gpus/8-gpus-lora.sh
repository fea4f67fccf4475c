#!/bin/sh
# LoRA on the paper's 7B Conductor, with a copy of the frozen weights, in 32 bits, on each of eight GPUs of 80 GB.
# GPU 0         process 0 and its vLLM; it also runs the workflows and writes all files
# GPUs 1 to 7   processes 1 to 7, each with its vLLM
# dry run       68 GiB of each GPU, 24 of them vLLM's
# bits          1-gpu-lora.sh says why the weights are not kept in 16
# rate          1e-5 in each stage, ten times the paper's: 1-gpu-lora.sh says why
# begin         sh 8-gpus-lora.sh --out runs/lora, and other options
# resume        sh 8-gpus-lora.sh --resume runs/lora
set -e
export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
[ "$1" = --resume ] || set -- paper-7b \
    --set train.processes=8 \
    --set train.sharding=none \
    --set train.offload=false \
    --set train.lora.rank=32 \
    --set train.base.learning_rate=1e-5 \
    --set train.pools.learning_rate=1e-5 \
    --set train.recursion.learning_rate=1e-5 \
    "$@"
exec torchrun --nproc_per_node 8 -m wfdsl_rl.cli.train "$@"
