#!/bin/sh
# All weights of the paper's 7B Conductor, divided by DeepSpeed's ZeRO-3 among two GPUs of 80 GB.
# Before: pip install deepspeed
# GPU 0    process 0 and its vLLM; it also runs the workflows and writes all files
# GPU 1    process 1 and its vLLM
# dry run  39 GiB of each GPU, 24 of them vLLM's
# offload  weights, gradients and moments stay in the machine's memory, and move to the GPUs layer by layer;
#          DeepSpeed has a second copy of weights and of gradients there, which FSDP2 does not need
# begin    sh 2-gpus-zero3.sh --out runs/7b, and other options
# resume   sh 2-gpus-zero3.sh --resume runs/7b
set -e
export CUDA_VISIBLE_DEVICES=0,1
[ "$1" = --resume ] || set -- paper-7b \
    --set train.sharding=zero3 \
    "$@"
exec torchrun --nproc_per_node 2 -m wfdsl_rl.cli.train "$@"
