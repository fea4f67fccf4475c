#!/bin/sh
# All weights of the paper's 7B Conductor, divided by FSDP2 among two GPUs of 80 GB: the preset as it is.
# GPU 0    process 0 and its vLLM; it also runs the workflows and writes all files
# GPU 1    process 1 and its vLLM
# dry run  24 GiB of each GPU, all of them vLLM's; activations of 8 completions take about 15 more
# offload  weights, gradients and moments stay in the machine's memory, and move to the GPUs layer by layer
# begin    sh 2-gpus-fsdp.sh --out runs/7b, and other options
# resume   sh 2-gpus-fsdp.sh --resume runs/7b
set -e
export CUDA_VISIBLE_DEVICES=0,1
[ "$1" = --resume ] || set -- paper-7b "$@"
exec torchrun --nproc_per_node 2 -m wfdsl_rl.cli.train "$@"
