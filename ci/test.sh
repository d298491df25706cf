#!/usr/bin/env bash
# Builds and runs every test; installs what is missing first.
#   ci/test.sh            all legs
#   ci/test.sh --quick    the first leg only
# Each leg builds into build/NAME, so that a second run compiles only what changed.
set -euo pipefail
# shellcheck source=ci/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

quick=
case ${1:-} in
    '') ;;
    --quick) quick=1 ;;
    *) die "usage: ci/test.sh [--quick]" ;;
esac

# leg NAME LABELS WITHOUT CMAKE_OPTION...: builds, and runs the tests that have a label which LABELS
# matches and none that WITHOUT does. What holds a compiler or a processor comes first; what waits
# and measures time then has the machine.
leg() {
    local name=$1 labels=$2 without=$3 begin=$SECONDS
    say "$name: build"
    configure "$name" -DLLMBENCH_WERROR=ON "${@:4}"
    cmake --build "build/$name" --parallel "$(cores)"
    say "$name: test"
    if [[ $labels != live ]]; then
        run_tests "$(cores)" "$name" -L "$labels" -LE "live|$without"
    fi
    if [[ ! live =~ $without ]]; then
        run_tests $(($(cores) + 1)) "$name" -L "$labels" -L live
    fi
    say "$name: done after $((SECONDS - begin)) s"
}

run_tests() {
    ctest --test-dir "build/$2" --output-on-failure --no-tests=error --parallel "$1" "${@:3}"
}

need_compiler
need_node
need_validators
need_proxies
need_browser

# What a user gets: optimised, warnings as errors. Finds wrong results, files that no longer compile
# or compile although they must not, a header out of shape, consumers that cannot use it.
# -O2 instead of CMake's -O3: a quarter less time to compile, and what most users have.
leg gcc . none -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG"
if [[ $quick ]]; then exit; fi

need_clang

# A second front end. Finds what only g++ accepts, and asio's coroutines under clang with libstdc++,
# which need a configuration of their own. What runs rather than compiles has had its turn by then.
# Its fuzzers go on from their corpus for twenty seconds: what the parsers make of any bytes at all.
leg clang . "real|browser|consumer|live" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$clang" \
    -DLLMBENCH_BUILD_EXAMPLES=OFF -DLLMBENCH_BUILD_BENCH=OFF -DLLMBENCH_BUILD_FUZZERS=ON

sanitized=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$clang"
    -DLLMBENCH_BUILD_EXAMPLES=OFF -DLLMBENCH_BUILD_BENCH=OFF)

# Finds reads beyond a buffer in the parsers, coroutines that outlive what they refer to, leaks of a
# cancelled request, signed overflow and bad casts in the arithmetic of the verdicts.
# Optimising what these two insert takes five times as long to compile.
leg asan unit none -DLLMBENCH_SANITIZE=address,undefined "${sanitized[@]}" \
    "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1"

# Finds data races between the threads of the load generator, the simulated server and the reports.
leg tsan live none -DLLMBENCH_SANITIZE=thread "${sanitized[@]}" \
    "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1"

say "all legs passed after $SECONDS s"
