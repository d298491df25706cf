# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
title="llama-cpp-python's server"
version=0.3.36
size="150 MB, its llama.cpp built from its sources"
apis="openai_chat openai_completions"
model=tiny
ready=/docs       # of its pages one that asks for no key
lengths=capped    # it does not know ignore_eos
context=2048
key=yes
wrong_model=''    # it has one model, and answers by whatever name it is asked

install() { CMAKE_ARGS=-DLLAVA_BUILD=OFF venv_with "llama-cpp-python[server]==$version"; }

start() {
    local more=() file=tiny.gguf
    if [[ $2 == eos ]]; then file=tiny-eos.gguf; fi
    if [[ ${API_KEY:-} ]]; then more=(--api_key "$API_KEY"); fi
    # One request at a time; with its default a new one would break off the one before.
    exec "$home/venv/bin/python" -m llama_cpp.server --model "$models/$file" --model_alias "$model" \
        --host 127.0.0.1 --port "$1" --n_ctx "$context" --n_threads 1 --n_threads_batch 1 \
        --interrupt_requests false "${more[@]}"
}
