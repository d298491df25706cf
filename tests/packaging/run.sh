#!/usr/bin/env bash
# The vcpkg port and the Conan recipe, each with and without TLS: what they install from what they
# take along can be used, and speaks TLS only where that was asked for. The two tools themselves are
# stand-ins (vcpkg.cmake, conan.py), so this says nothing about their registries.
#   tests/packaging/run.sh          uses $CMAKE and $CXX
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export CMAKE=${CMAKE:-cmake} CXX=${CXX:-g++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# has_tls NAME yes|no: a project that finds the package in $work/NAME
mkdir "$work/user"
cat > "$work/user/CMakeLists.txt" << 'PROJECT'
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES CXX)
find_package(llmbench 0.1 REQUIRED)
get_target_property(include llmbench::llmbench INTERFACE_INCLUDE_DIRECTORIES)
if(NOT EXISTS "${include}/llmbench.hpp" OR NOT EXISTS "${LLMBENCH_PACKAGING_DIR}/llmbench-with-server.sh")
    message(FATAL_ERROR "the package is not whole")
endif()
get_target_property(definitions llmbench::tls INTERFACE_COMPILE_DEFINITIONS)
message(STATUS "TLS: ${definitions}")
PROJECT
has_tls() {
    local says="TLS: definitions-NOTFOUND"
    if [[ $2 == yes ]]; then says="TLS: LLMBENCH_WITH_TLS"; fi
    "$CMAKE" -S "$work/user" -B "$work/$1-user" -DCMAKE_PREFIX_PATH="$work/$1" \
        -DCMAKE_CXX_COMPILER_WORKS=ON > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    grep -qF -- "$says" "$work/log" || { echo "$1 does not say $says"; cat "$work/log"; exit 1; }
    echo "works: $1"
}

for tls in no yes; do
    features=core
    if [[ $tls == yes ]]; then features="core;tls"; fi
    "$CMAKE" -DFEATURES="$features" -DCURRENT_PACKAGES_DIR="$work/vcpkg-$tls" \
        -DBUILD="$work/vcpkg-$tls-build" -P "$here/vcpkg.cmake"
    [[ -s $work/vcpkg-$tls/share/llmbench/copyright && ! -e $work/vcpkg-$tls/lib ]]
    has_tls "vcpkg-$tls" "$tls"
    python3 "$here/conan.py" "$work/conan-$tls" "$tls"
    has_tls "conan-$tls" "$tls"
done
