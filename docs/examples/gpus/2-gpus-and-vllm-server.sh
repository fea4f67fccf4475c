#!/bin/sh
# All weights of the paper's 7B Conductor on two GPUs of 80 GB, and vLLM as a server on a third one.
# GPU 0    process 0; it also runs the workflows and writes all files
# GPU 1    process 1
# GPU 2    vLLM's server, which process 0 asks, and sends new weights to over NCCL
# dry run  57 GiB of each GPU of the training: without vLLM beside them, no weights have to be offloaded
# passes   of 4 completions in the stages base and pools, where the preset has 8: those would leave 6 GiB of each GPU
#          for CUDA, NCCL and gradients on their way
# server   0.9 of GPU 2, 72 GiB; without CUDA_VISIBLE_DEVICES it would take GPU 0. `trl vllm-serve` starts the same
#          server, and is deprecated in TRL 1.16
# begin    sh 2-gpus-and-vllm-server.sh --out runs/7b, and other options
# resume   sh 2-gpus-and-vllm-server.sh --resume runs/7b
set -e
# In development mode the server takes new weights from anyone who reaches it, so it listens to this machine only.
CUDA_VISIBLE_DEVICES=2 VLLM_SERVER_DEV_MODE=1 vllm serve Qwen/Qwen2.5-7B \
    --host 127.0.0.1 \
    --port 8000 \
    --max-model-len 12288 \
    --gpu-memory-utilization 0.9 \
    --weight-transfer-config '{"backend": "nccl"}' \
    --logprobs-mode processed_logprobs \
    --max-logprobs -1 &
server=$!
trap 'kill $server 2>/dev/null && wait $server || :' EXIT
export CUDA_VISIBLE_DEVICES=0,1
[ "$1" = --resume ] || set -- paper-7b \
    --set train.fsdp=on \
    --set train.stages.base.per_device_train_batch_size=4 \
    --set train.stages.pools.per_device_train_batch_size=4 \
    --set train.trl.vllm_mode=server \
    --set train.trl.vllm_server_base_url=http://127.0.0.1:8000 \
    --set train.trl.vllm_server_timeout=900 \
    "$@"
torchrun --nproc_per_node 2 -m wfdsl_rl.cli.train "$@" &
trainer=$!
stop() {
    kill $trainer 2>/dev/null && wait $trainer || :
    exit "$1"
}
trap 'stop 130' INT # the shell acts on a signal while it waits, and would not while torchrun is in the foreground
trap 'stop 143' TERM
wait $trainer
