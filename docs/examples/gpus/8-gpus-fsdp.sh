#!/bin/sh
# All weights of the paper's 7B Conductor, divided by FSDP2 among eight GPUs of 80 GB.
# GPU 0         process 0 and its vLLM; it also runs the workflows and writes all files
# GPUs 1 to 7   processes 1 to 7, each with its vLLM
# dry run       38 GiB of each GPU, 24 of them vLLM's; activations take about 15 more
# begin         sh 8-gpus-fsdp.sh --out runs/7b, and other options
# resume        sh 8-gpus-fsdp.sh --resume runs/7b
set -e
export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
[ "$1" = --resume ] || set -- paper-7b \
    --set train.processes=8 \
    --set train.fsdp=on \
    "$@"
exec torchrun --nproc_per_node 8 -m wfdsl_rl.cli.train "$@"
