# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
# What the files in servers/ may use. Sourced with $build, the folder of all servers.
reality=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
models=$build/models

# take SERVER: its file, with the defaults of what it does not say
take() {
    server=$1
    home=$build/$server
    title='' version='' size='' apis=openai_chat model=tiny ready=/health lengths=capped context=''
    key='' key_refused=401 page='' cache='' wrong_model=yes whole=yes ends=yes extra_body=''
    own_ttft='' own_tpot='' own_tpot_count='' python=python3 overrides='' behind='' gauges='' reasons=''
    scores='' rerank_model='' batched=''
    # shellcheck source=/dev/null
    source "$reality/servers/$server.sh"
}

free_port() { python3 "$reality/../support/free_ports.py" 1; }

uv() { "$build/uv/bin/uv" --quiet "$@"; }

# need_uv: an installer of Python packages that keeps each of them once, however many servers use it
need_uv() {
    if [[ -x $build/uv/bin/uv ]]; then return; fi
    python3 -m venv "$build/uv"
    "$build/uv/bin/pip" --quiet --disable-pip-version-check install uv
}

# venv_with PACKAGE...: $home/venv, by $python, with these and what they ask for; $overrides wins
venv_with() {
    local wanted="$python $* $overrides" more=()
    if [[ -f $home/installed && $(<"$home/installed") == "$wanted" ]]; then return; fi
    need_uv
    rm -rf "$home/venv" "$home/installed"
    if [[ $overrides ]]; then
        tr ' ' '\n' <<< "$overrides" > "$home/overrides.txt"
        more=(--override "$home/overrides.txt")
    fi
    uv venv --python "$python" "$home/venv"
    uv pip install --python "$home/venv/bin/python" "${more[@]}" "$@"
    echo "$wanted" > "$home/installed"
}

# download FOLDER PACKAGE [OPTION...]: a Python package's file, alone in that folder
download() {
    need_uv
    rm -rf "$1"
    mkdir -p "$1"
    "$build/uv/bin/pip" --quiet --disable-pip-version-check download --no-deps --dest "$1" "${@:3}" "$2"
}

# source_of PACKAGE: the sources of a Python package in $home/source
source_of() {
    rm -rf "$home/source"
    mkdir -p "$home/source"
    # Of the package alone: what it is built with may come as it is.
    download "$home/sdist" "$1" --no-binary "${1%%==*}"
    tar -xzf "$home"/sdist/*.tar.gz -C "$home/source" --strip-components=1
    rm -rf "$home/sdist"
}

# make_models: tiny ones of random weights, for all servers
make_models() {
    local maker=$reality/../real_engine variant
    mkdir -p "$models"
    for variant in normal eos; do
        [[ -s $models/hf-$variant/config.json ]] ||
            python3 "$maker/make_hf_model.py" --variant "$variant" -o "$models/hf-$variant"
    done
    [[ -s $models/tiny.gguf ]] || python3 "$maker/make_model.py" -o "$models/tiny.gguf"
    [[ -s $models/tiny-eos.gguf ]] ||
        python3 "$maker/make_model.py" --variant eos -o "$models/tiny-eos.gguf"
}
