# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
# Its front end, discovery, tokenizer and scheduler are real; the forward pass is simulated by its mocker,
# which takes the time that an engine would take, and answers with words by chance.
title="NVIDIA Dynamo: front end and scheduler (as of vLLM) real, engine stubbed by its mocker"
engine=vllm       # whose scheduler it imitates
version=1.4.2     # of the package ai-dynamo
size="450 MB"
apis="openai_chat openai_completions"
model=tiny
ready=/v1/models/tiny   # of all models there are none for the first seconds, with status 200
lengths=forced
context=2048
page=/metrics
gauges=none       # it counts requests until their first token, or until their end: no queue of an engine
ends=''           # words by chance do not end by themselves

install() {
    venv_with "ai-dynamo==$version"
    python3 "$reality/servers/dynamo_model.py" "$models/hf-normal" "$home/$model"
}

start() {
    # Both are found by a folder of files, and nothing leaves the machine's own address.
    export DYN_FILE_KV=$home/found-$1 DYN_TCP_RPC_HOST=127.0.0.1
    local limit=() found_by=(--discovery-backend file --request-plane tcp --event-plane zmq)
    rm -rf "$DYN_FILE_KV"
    if [[ $context ]]; then limit=(--max-model-len "$context"); fi
    # Its models' names are their paths, here one that is the same on every machine.
    cd "$home" || exit
    venv/bin/python -m dynamo.mocker --model-path "$model" --model-name "$model" \
        --engine-type "$engine" "${limit[@]}" "${found_by[@]}" &
    exec venv/bin/python -m dynamo.frontend --http-host 127.0.0.1 --http-port "$1" "${found_by[@]}"
}
