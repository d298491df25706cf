# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
title="SGLang, on the CPU"
version=0.5.23
size="6.5 GB"
apis="openai_chat sglang openai_completions"
model=tiny
ready=/health
lengths=forced
context=2048
key=yes
page=/metrics
cache=yes
wrong_model=''    # it answers by any name
own_ttft=sglang:time_to_first_token_seconds_sum
own_tpot=sglang:request_time_per_output_token_seconds_sum
own_tpot_count=sglang:request_time_per_output_token_seconds_count

install() {
    local kernel gpu_only=()
    for kernel in cuda-python flash-attn-4 flashinfer_python humming-kernels nvidia-cutlass-dsl \
        nvidia-mathdx nvshmem4py-cu13 quack-kernels sgl-deep-ep sgl-deep-gemm sgl-flash-mla \
        sglang-kernel tilelang torch_memory_saver; do
        gpu_only+=("$kernel;sys_platform=='never'")
    done
    overrides="${gpu_only[*]}" venv_with "sglang==$version"
}

start() {
    # Its kernels' package links a GPU's driver: sgl_kernel.py stands in for it.
    export SGLANG_USE_CPU_ENGINE=1 PYTHONPATH=$reality/servers OMP_NUM_THREADS=1
    local more=()
    if [[ ${API_KEY:-} ]]; then more=(--api-key "$API_KEY"); fi
    # shellcheck disable=SC2206  # several options
    more+=(${MORE_OPTIONS:-})
    exec "$home/venv/bin/python" -m sglang.launch_server --model-path "$models/hf-$2" \
        --served-model-name "$model" --host 127.0.0.1 --port "$1" --context-length "$context" \
        --device cpu --attention-backend torch_native --disable-overlap-schedule --page-size 1 \
        --max-total-tokens 16384 --enable-metrics --enable-cache-report "${more[@]}"
}
