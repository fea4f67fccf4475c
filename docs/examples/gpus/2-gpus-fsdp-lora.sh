#!/bin/sh
# LoRA on the paper's 7B Conductor, with the weights below the adapters divided by FSDP2 among two GPUs of 80 GB.
# GPU 0    process 0 and its vLLM; it also runs the workflows and writes all files
# GPU 1    process 1 and its vLLM
# dry run  53 GiB of each GPU, 24 of them vLLM's
# note     TRL 1.16 marks merging adapters below FSDP, for vLLM, as an open question: 2-gpus-lora.sh needs no merging of
#          divided weights, and fits as well
# rate     1e-5 in each stage, ten times the paper's: 1-gpu-lora.sh says why
# begin    sh 2-gpus-fsdp-lora.sh --out runs/lora, and other options
# resume   sh 2-gpus-fsdp-lora.sh --resume runs/lora
set -e
export CUDA_VISIBLE_DEVICES=0,1
[ "$1" = --resume ] || set -- paper-7b \
    --set train.offload=false \
    --set train.lora.rank=32 \
    --set train.base.learning_rate=1e-5 \
    --set train.pools.learning_rate=1e-5 \
    --set train.recursion.learning_rate=1e-5 \
    "$@"
exec torchrun --nproc_per_node 2 -m wfdsl_rl.cli.train "$@"
