#!/usr/bin/env bash
# A compiler launcher: compiles the shared implementation of a project's gates once for all projects that
# have the same one, and anything else as it stands there.
#   tests/consumers/once.sh KEPT COMPILER ARGUMENT...
set -euo pipefail
kept=$1
shift
object='' source='' last=''
for argument in "$@"; do
    case $last in -o) object=$argument ;; -c) source=$argument ;; esac
    last=$argument
done
if [[ $source != *llmbench_gate_main*.cpp || ! $object ]]; then exec "$@"; fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$kept"
key=$({ echo "$1"; cat "$source" "$root"/llmbench.hpp "$root"/extensions/*.hpp; } | sha256sum | cut -d ' ' -f 1)
exec 9> "$kept/lock"
flock 9
if [[ ! -e $kept/$key.o ]]; then
    "$@"
    rm -f "$kept"/*.o
    cp "$object" "$kept/$key.o"
fi
cp "$kept/$key.o" "$object"
