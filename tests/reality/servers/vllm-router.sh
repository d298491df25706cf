# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
# A router: it answers with what the server behind it says.
title="vLLM's router, in front of llama-server"
version=0.1.17    # of the package vllm-router
size="130 MB, and llama-server"
behind=llama-server
apis="openai_chat openai_completions"
model=tiny
ready=/readiness
lengths=forced
context=2048
cache=slots
wrong_model=''   # it hands any name on to llama-server, which answers by whatever it is asked
page=''           # it has one on a port of its own, which is no engine's

install() { venv_with "vllm-router==$version"; }

start() {
    local metrics
    metrics=$(free_port)
    exec "$home/venv/bin/python" -m vllm_router.launch_router --worker-urls "$UPSTREAM" \
        --host 127.0.0.1 --port "$1" --prometheus-host 127.0.0.1 --prometheus-port "$metrics"
}
