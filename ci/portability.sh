#!/usr/bin/env bash
# Builds llmbench for machines that this one is not, and runs what can be run here.
#   ci/portability.sh [PART...]    default: the first three, one after the other
#     arm64         Linux on Arm64: Debian's cross compiler; the unit tests, but one that starts
#                   itself, and live gates run under qemu-user
#     macos-arm64   macOS on Apple silicon, macos-x86_64 on Intel: the header, the examples and the
#                   tests are compiled and linked by zig's clang with its own macOS headers, not run
#     arm64-program the program for Linux on Arm64, static and with TLS, as build/arm64-program/llmbench, and
#                   libllmbench.a; under qemu-user the program passes a gate on its own server, and so does a
#                   gate file that links the archive. ci/release.sh --arm64 makes a wheel of both
# What it needs comes from Debian and, zig alone, from PyPI. All but the last are without TLS: there is no
# OpenSSL for these machines here. Nothing is skipped: what cannot be had ends it.
set -euo pipefail
# shellcheck source=ci/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

zig_version=0.17.1

# The libraries that are headers alone, without what else stands beside them in /usr/include.
headers=$PWD/build/portability/headers
take_headers() {
    local name from
    mkdir -p "$headers"
    for name in asio asio.hpp doctest picojson picojson.h CLI toml++; do
        for from in /usr/include /usr/local/include; do
            if [[ -e $from/$name ]]; then ln -sfn "$from/$name" "$headers/$name"; fi
        done
    done
}

# build_for NAME SYSTEM PROCESSOR COMPILER CMAKE_OPTION...
build_for() {
    local name=$1
    say "$name: build, after $SECONDS s"
    configure "$name" -DCMAKE_SYSTEM_NAME="$2" -DCMAKE_SYSTEM_PROCESSOR="$3" \
        -DCMAKE_CXX_COMPILER="$4" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O0" \
        -DLLMBENCH_WITH_TLS=OFF -DLLMBENCH_WERROR=ON -DLLMBENCH_BUILD_BENCH=OFF \
        -DLLMBENCH_TESTS_AT_ONCE=35 \
        -DLLMBENCH_{ASIO,PICOJSON,DOCTEST}_INCLUDE_DIR="$headers" \
        -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON "${@:5}"
    cmake --build "build/$name" --parallel "$(cores)"
}

need_arm64() {
    has aarch64-linux-gnu-g++ || install g++-aarch64-linux-gnu
    has qemu-aarch64 || install qemu-user
}

linux_on_arm64() {
    need_arm64
    build_for arm64 Linux aarch64 aarch64-linux-gnu-g++ \
        "-DCMAKE_CROSSCOMPILING_EMULATOR=$(command -v qemu-aarch64);-L;/usr/aarch64-linux-gnu"
    say "arm64: unit tests, after $SECONDS s"
    ctest --test-dir build/arm64 --output-on-failure --no-tests=error --parallel "$(cores)" \
        -L unit -LE live
    # An emulated client takes its time: only what does not depend on that is asked for.
    say "arm64: live gates, after $SECONDS s"
    qemu-aarch64 -L /usr/aarch64-linux-gnu build/arm64/examples/own_main
}

# OpenSSL is unpacked from Debian's package for Arm64, by lists in a folder of its own: this machine
# keeps its one architecture.
program_on_arm64() {
    need_arm64
    local ssl=$PWD/build/portability/openssl name=arm64-program
    local libraries=$ssl/usr/lib/aarch64-linux-gnu program=build/arm64-program/llmbench
    if [[ ! -e $libraries/libssl.a ]]; then
        mkdir -p "$ssl"/{lists,archives}/partial
        local apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
            -o Dir::State="$ssl" -o Dir::State::status=/dev/null -o Dir::Cache="$ssl")
        "${apt[@]}" update
        (cd "$ssl" && "${apt[@]}" download libssl-dev)
        dpkg -x "$ssl"/libssl-dev_*.deb "$ssl"
    fi
    say "$name: build, after $SECONDS s"
    configure $name -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DLLMBENCH_BUILD_{TESTS,EXAMPLES,BENCH}=OFF \
        -DLLMBENCH_PROGRAM_STATIC=ON -DLLMBENCH_WITH_TLS=ON -DLLMBENCH_BUILD_ARCHIVE=ON \
        -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON \
        -DLLMBENCH_{ASIO,PICOJSON,DOCTEST,CLI11,TOMLPLUSPLUS}_INCLUDE_DIR="$headers" \
        "-DCMAKE_CXX_FLAGS=-isystem $ssl/usr/include/aarch64-linux-gnu" \
        -DOPENSSL_INCLUDE_DIR="$ssl/usr/include" -DOPENSSL_SSL_LIBRARY="$libraries/libssl.a" \
        -DOPENSSL_CRYPTO_LIBRARY="$libraries/libcrypto.a"
    cmake --build build/$name --parallel "$(cores)" --target llmbench_program llmbench_archive llmbench_main
    say "$name: a gate, after $SECONDS s"
    : > build/$name/served
    qemu-aarch64 $program serve --slots 32 --port 0 > build/$name/served &
    local server=$! at='' tries
    for ((tries = 0; tries < 600; ++tries)); do
        at=$(sed -n 's/^listening on //p' build/$name/served)
        [[ ! $at ]] || break
        sleep 0.1
    done
    # Times say nothing of an emulated client.
    qemu-aarch64 $program run --url "$at" --users 2 --requests 30 --warmup 2 --output-tokens 4 \
        --report build/$name/report --slo 'error_rate <= 20 %' || die "the program for Arm64 passes no gate"
    say "$name: a gate file that links libllmbench.a, after $SECONDS s"
    rm -rf build/$name/installed
    cmake --install build/$name --prefix build/$name/installed > /dev/null
    cat > build/$name/gates.cpp << 'END'
#include "llmbench.hpp"
TEST_CASE("linked") {
    using namespace llmbench;
    gate({.workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(4)},
          .arrivals = closed_loop(2), .requests = 30, .repeats = 2, .slos = {error_rate <= 20_pct}});
}
END
    local flags
    read -ra flags <<< "$(qemu-aarch64 build/$name/installed/bin/llmbench flags)"
    aarch64-linux-gnu-g++ -std=c++20 build/$name/gates.cpp "${flags[@]}" -o build/$name/gates
    LLMBENCH_URL=$at LLMBENCH_REPORT_DIR=build/$name/report qemu-aarch64 -L /usr/aarch64-linux-gnu build/$name/gates ||
        die "a gate file that links the archive for Arm64 passes no gate"
    kill "$server"
}

# on_macos NAME ZIG_TARGET PROCESSOR
on_macos() {
    local zig=$PWD/build/portability/zig wrapper=$PWD/build/portability/$1-c++
    if [[ $("$zig/bin/python" -m ziglang version 2> /dev/null) != "$zig_version" ]]; then
        say "installing zig $zig_version"
        python3 -c "import ensurepip" 2> /dev/null || install python3-venv
        python3 -m venv "$zig"
        "$zig/bin/pip" --quiet install "ziglang==$zig_version" ||
            die "PyPI has no zig $zig_version for this machine"
    fi
    printf '#!/bin/sh\nexec "%s" -m ziglang c++ -target %s "$@"\n' "$zig/bin/python" "$2" > "$wrapper"
    chmod +x "$wrapper"
    build_for "$1" Darwin "$3" "$wrapper"
}

need_compiler
take_headers
parts=("$@")
if ((${#parts[@]} == 0)); then parts=(arm64 macos-arm64 macos-x86_64); fi
for part in "${parts[@]}"; do
    case $part in
        arm64) linux_on_arm64 ;;
        arm64-program) program_on_arm64 ;;
        macos-arm64) on_macos "$part" aarch64-macos arm64 ;;
        macos-x86_64) on_macos "$part" x86_64-macos x86_64 ;;
        *) die "ci/portability.sh knows arm64, arm64-program, macos-arm64 and macos-x86_64, not \"$part\"" ;;
    esac
done
say "${parts[*]}: all that was to be shown is shown, after $SECONDS s"
