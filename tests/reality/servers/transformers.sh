# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
title="transformers serve"
version=5.24.0
size="5.4 GB"
apis="openai_chat openai_completions"
model=tiny
ready=/health
lengths=refused   # 422: Unexpected fields in the request: {'ignore_eos'}
key=''            # it knows none
context=''        # and no limit either: it computes what it is sent

install() { venv_with "transformers[serving]==$version" torch; }

start() {
    # Its models' names are their paths, here one that is the same on every machine.
    mkdir -p "$home/$2"
    ln -sfn "$models/hf-$2" "$home/$2/$model"
    cd "$home/$2" || exit
    exec "$home/venv/bin/transformers" serve "$model" --device cpu --host 127.0.0.1 --port "$1"
}
