# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
title="MAX"
version=26.7.0    # of the package modular
size="1.6 GB"
apis="openai_chat openai_completions"
model=tiny
ready=/health
lengths=forced
context=2048

install() { venv_with "modular==$version"; }

start() {
    export MAX_SERVE_DISABLE_TELEMETRY=1   # and with it a page of metrics on a port of its own
    # Its models' names are their paths, here one that is the same on every machine.
    mkdir -p "$home/$2"
    ln -sfn "$models/hf-$2" "$home/$2/$model"
    cd "$home/$2" || exit
    exec "$home/venv/bin/max" serve --model-path "$model" --devices cpu --port "$1" \
        --max-length "$context" --max-batch-size 4 --quantization-encoding float32
}
