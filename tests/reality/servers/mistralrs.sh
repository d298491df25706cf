# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
title="mistral.rs"
version=0.8.1     # of the crate mistralrs-cli
size="1.8 GB, built from its sources; needs cargo 1.88"
apis="openai_chat openai_completions"
model=tiny
ready=/health
lengths=capped    # it does not know ignore_eos
context=''        # and no limit: it computes what it is sent

install() {
    if [[ -x $home/bin/mistralrs ]]; then return; fi
    cargo install mistralrs-cli --version "$version" --locked --root "$home" --target-dir "$home/target"
    rm -rf "$home/target"
}

start() {
    # Its models' names are their paths, here one that is the same on every machine.
    mkdir -p "$home/$2"
    ln -sfn "$models/hf-$2" "$home/$2/$model"
    cd "$home/$2" || exit
    exec "$home/bin/mistralrs" serve --cpu --format plain --model-id "$model" --token-source none \
        --host 127.0.0.1 --port "$1" --max-seq-len 2048
}
