#!/usr/bin/env bash
# Meets real servers: installs them into build/reality, starts and gates them, one after another.
#   ci/reality.sh             all of tests/reality/servers
#   ci/reality.sh NAME...     these
#   ci/reality.sh --list      their names, versions and what each installs
#   ci/reality.sh --work [NAME...]    counts the work of vllm, sglang and llama-server: what repeats, what finds regressions
# Needs PyPI (uv and the servers come from there), and for some the Go module proxy; gigabytes of disk.
# No GPU and no model: the servers run on the CPU, on a tiny model that is made on the spot.
set -euo pipefail
# shellcheck source=ci/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

all=()
for file in tests/reality/servers/*.sh; do all+=("$(basename "$file" .sh)"); done
if [[ ${1:-} == --list ]]; then
    build=build/reality
    # shellcheck source=tests/reality/common.sh
    source tests/reality/common.sh
    for name in "${all[@]}"; do
        take "$name"
        printf '%-18s %-12s %s\n' "$name" "$version" "$size"
    done
    exit
fi
counts_work=''
if [[ ${1:-} == --work ]]; then
    counts_work=yes
    shift
    if (($# == 0)); then set -- vllm sglang llama-server; fi
fi
names=("$@")
if (($# == 0)); then names=("${all[@]}"); fi
for name in "${names[@]}"; do
    [[ -f tests/reality/servers/$name.sh ]] || die "there is no server '$name'; there are: ${all[*]}"
done

need_compiler
need_python_tools
mkdir -p build/reality
if [[ $counts_work ]]; then
    say "building the program into build/reality/program"
    cmake -S . -B build/reality/program -DCMAKE_BUILD_TYPE=Release -DLLMBENCH_BUILD_PROGRAM=ON
    cmake --build build/reality/program --target llmbench_program
    exec bash tests/reality/work.sh build/reality/program/llmbench build/reality 30 "${names[@]}"
fi
say "building the gates into build/reality"
if [[ ! build/reality/gates -nt llmbench.hpp || ! build/reality/gates -nt tests/reality/gates.cpp ]]; then
    g++ -std=c++20 -Og -I. tests/reality/gates.cpp -o build/reality/gates -pthread
fi
bash tests/reality/run.sh build/reality/gates build/reality "${names[@]}"
