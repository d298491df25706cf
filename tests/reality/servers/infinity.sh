# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
# Two tiny BERTs of random weights: one embeds, the other one scores.
title="Infinity"
version=0.0.78
size="5.6 GB"
apis="openai_embeddings rerank"
model=tiny
rerank_model=tiny-rerank
ready=/health
lengths=characters   # its usage, unless it is told --lengths-via-tokenize
key=yes
whole=''          # each of its answers is
ends=''
page=''           # it has one, of what Python and its web server do
more=()

install() {
    venv_with "infinity-emb[server,torch]==$version" "numpy<2"
    "$home/venv/bin/python" "$reality/servers/bert_models.py" "$models/hf-normal" \
        "$home/tiny" "$home/tiny-rerank"
}

start() {
    export DO_NOT_TRACK=1 OMP_NUM_THREADS=1
    if [[ ${API_KEY:-} ]]; then more+=(--api-key "$API_KEY"); fi
    # Its models' names are their paths, here those that are the same on every machine.
    cd "$home" || exit
    exec "$home/venv/bin/infinity_emb" v2 --model-id tiny --model-id tiny-rerank --url-prefix /v1 \
        --host 127.0.0.1 --port "$1" --device cpu --no-bettertransformer --no-compile \
        --no-model-warmup "${more[@]}"
}
