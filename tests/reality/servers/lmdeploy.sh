# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
# Its API server, tokenizer, sessions and page are real. The engine, which needs a GPU, is stubbed.
title="LMDeploy: API server real, engine stubbed"
version=0.18.0
size="6 GB"
apis="openai_chat openai_completions"
model=tiny
ready=/health
lengths=forced
context=2048
key=yes
page=/metrics
own_ttft=lmdeploy:time_to_first_token_seconds_sum
own_tpot=lmdeploy:time_per_output_token_seconds_sum   # of each gap
own_tpot_count=lmdeploy:time_per_output_token_seconds_count
ends=''           # the stub answers with words by chance, which do not end by themselves

install() { venv_with "lmdeploy==$version"; }

start() {
    local more=()
    if [[ ${API_KEY:-} ]]; then more=(--api-keys "$API_KEY"); fi
    exec "$home/venv/bin/python" "$reality/servers/lmdeploy_stub.py" serve api_server "$models/hf-normal" \
        --backend turbomind --model-name "$model" --server-name 127.0.0.1 --server-port "$1" \
        --session-len "$context" --max-batch-size 16 "${more[@]}"
}
