#!/usr/bin/env bash
# Installs the peers and builds what is ours: bash tests/bench/peers/setup.sh [BUILD_DIR [TOOL...]]
# BUILD_DIR is build/peers by default; tools are vllm-rust, sglang-rust (the clients of the next two, alone), vllm,
# sglang, guidellm, aiperf, inference-perf, evalscope, genai-bench, k6.
# Each has an environment of its own, with versions pinned. Does nothing where all is up to date. A tool that
# cannot be installed is told, and is no reason to stop. It takes about 24 GB (torch comes with CUDA) and 10 minutes.
#   PYTHON=python3.12      of the environments; 3.12 or newer
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
mkdir -p "${1:-$root/build/peers}"
build=$(cd "${1:-$root/build/peers}" && pwd)
shift $(( $# > 0 ? 1 : 0 ))
tools=("$@")
(( ${#tools[@]} )) || tools=(vllm-rust sglang-rust vllm sglang guidellm aiperf inference-perf evalscope genai-bench k6)
# One that is a shim for versions that are not chosen is none.
python=${PYTHON:-$( { python3.12 -V > /dev/null 2>&1 && command -v python3.12; } || command -v python3)}
limit="timeout 1800"      # of one step; nothing waits for ever
missing=()

say() { echo "peers/setup.sh: $1" >&2; }

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' ||
    { say "PYTHON is $python, $("$python" -V 2>&1), and the tools need 3.12 or newer"; exit 2; }

environment() {   # environment NAME: an empty one, where there is none of this Python
    [[ $("$build/$1/bin/python" -V 2> /dev/null) == "$("$python" -V)" ]] && return
    rm -rf "${build:?}/$1"
    "$python" -m venv "$build/$1"
}
packages() {      # packages NAME ARGUMENT...: as pip has them
    local name=$1
    shift
    $limit "$build/$name/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

install_guidellm() { packages guidellm guidellm==0.8.1; }
install_aiperf() { packages aiperf aiperf==0.13.0; }
install_inference-perf() { packages inference-perf inference-perf==0.7.0; }
install_evalscope() { packages evalscope 'evalscope[perf]==1.14.1'; }
install_genai-bench() { packages genai-bench genai-bench==0.0.5; }
# Only what its client imports: the whole brings an engine for GPUs.
install_sglang() {
    packages sglang --no-deps sglang==0.5.23
    packages sglang aiohttp==3.14.5 apache-tvm-ffi==0.1.15.post2 compressed-tensors==0.20.0 datasets==5.2.0 \
        gguf==0.19.0 ipython==9.18.1 msgspec==0.22.0 numpy==2.5.5 orjson==3.13.0 pillow==13.0.0 psutil==7.2.2 \
        pybase64==1.5.1 pyzmq==27.3.0 requests==2.34.2 sentencepiece==0.2.3 starlette==1.10.0 torch==2.15.0 \
        torchvision==0.29.2 tqdm==4.70.1 transformers==5.23.0
}
# What it asks for but the kernels of GPUs, which its client does not load.
install_vllm() {
    packages vllm --no-deps vllm==0.33.0
    "$build/vllm/bin/python" - > "$build/vllm/rest.txt" <<'REST'
import importlib.metadata
import re
kernels = (r"(apache-tvm-ffi|fastsafetensors|flashinfer-\w+|humming-kernels|instanttensor|nvidia-[\w-]+|nvtx|PyNvVideoCodec|"
           r"quack-kernels|tilelang|tokenspeed-mla|torchcodec)\b")
for line in importlib.metadata.requires("vllm"):
    if "extra ==" not in line and not re.match(kernels, line):
        print(line)
REST
    packages vllm -r "$build/vllm/rest.txt"
}
# One file of a wheel: part NAME==VERSION FILE_IN_THE_WHEEL FILE
part() {
    local wheels
    wheels=$(mktemp -d)
    $limit "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$wheels" "$1"
    mkdir -p "$(dirname "$3")"
    "$python" - "$wheels"/*.whl "$2" "$3" <<'FILE'
import fnmatch
import sys
import zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, open(sys.argv[3], "wb") as out:
    out.write(wheel.read(next(name for name in wheel.namelist() if fnmatch.fnmatch(name, sys.argv[2]))))
FILE
    chmod +x "$3"
    rm -r "$wheels"
}
install_vllm-rust() { part vllm==0.33.0 vllm/vllm-rs "$build/vllm-rust/vllm-rs"; }
install_sglang-rust() { part sglang==0.5.23 'sglang/srt/rust_extensions/_bench.*.so' "$build/sglang-rust/_bench.so" &&
    ln -sf "$(command -v "$python")" "$build/sglang-rust/python"; }  # the one that it is for
# The SSE extension that it is used with is not on the Go proxy (403, "This module version is not available").
install_k6() {
    local go
    go=$(command -v go || echo /usr/local/go/bin/go)
    mkdir -p "$build/k6"
    (cd "$build/k6" && GOFLAGS=-buildvcs=false GOBIN=$build/k6 $limit "$go" install go.k6.io/k6@v1.8.1)
}

install() {       # install TOOL, unless it is there as wanted
    local wanted
    wanted="$("$python" -V) $(declare -f "install_$1" | cksum)"
    [[ -f $build/$1.installed && $(<"$build/$1.installed") == "$wanted" ]] && return
    say "installing $1 in $build ..."
    rm -f "$build/$1.installed"
    [[ $1 == k6 || $1 == *-rust ]] || environment "$1"
    "install_$1" && echo "$wanted" > "$build/$1.installed"
}
compile() {       # compile NAME FLAG...
    [[ $build/$1 -nt $here/$1.cpp ]] && return
    say "compiling $1 ..."
    "${CXX:-g++}" -std=c++20 -O2 "$here/$1.cpp" -o "$build/$1" -pthread
}

compile raw_client
# AIPerf finds a tokenizer offline only in the layout of a hub's cache.
if [[ ! -f $build/model/tokenizer.json || $root/tests/real_engine/make_model.py -nt $build/model/tokenizer.json ]]; then
    python3 "$root/tests/real_engine/make_hf_model.py" --no-weights -o "$build/model"
fi
hub=$build/hf/hub/models--peers--tiny revision=0000000000000000000000000000000000000001
mkdir -p "$hub/refs" "$hub/snapshots/$revision"
printf %s $revision > "$hub/refs/main"
cp "$build/model/"*.json "$hub/snapshots/$revision/"

for tool in "${tools[@]}"; do
    declare -F "install_$tool" >/dev/null || { say "no tool $tool"; exit 2; }
    # A function called after `if` would not stop at its first error: hence the shell of its own.
    set +e
    ( set -e; install "$tool" )
    status=$?
    set -e
    if ((status != 0)); then missing+=("$tool"); fi
done
(( ${#missing[@]} == 0 )) || { say "not installed: ${missing[*]} (see above)"; exit 1; }
