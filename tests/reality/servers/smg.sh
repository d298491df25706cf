# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
# A router: it answers with what the server behind it says.
title="Shepherd Model Gateway, in front of llama-server"
version=1.13.0    # of the package smg
size="120 MB, and llama-server"
behind=llama-server
apis="openai_chat openai_completions"
model=tiny
ready=/readiness
lengths=forced
context=2048
cache=slots
page=''           # it has one on a port of its own, which is no engine's

install() { venv_with "smg==$version"; }

start() {
    local metrics
    metrics=$(free_port)
    exec "$home/venv/bin/smg" launch --worker-urls "$UPSTREAM" --host 127.0.0.1 --port "$1" \
        --prometheus-host 127.0.0.1 --prometheus-port "$metrics"
}
