#!/usr/bin/env bash
# The ways in which a project may use llmbench: each is built from nothing and its gate is run.
#   tests/consumers/run.sh bare|subdirectory|fetchcontent|package     uses $CXX and $CPPFLAGS
set -euo pipefail
cd "$(dirname "$0")"
kind=${1:?usage: run.sh bare|subdirectory|fetchcontent|package}
source=$(cd ../.. && pwd)
cmake=${CMAKE:-cmake}
export CXX=${CXX:-g++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LLMBENCH_URL

if [[ $kind == bare ]]; then
    # One file copied beside the gates, one compiler command. Here the header is no system header, so
    # this is also where a warning in it would reach a user, some of them only when optimising.
    read -ra cppflags <<< "${CPPFLAGS:-}"
    cp "$source/llmbench.hpp" gates.cpp "$work"
    cd "$work"
    "$CXX" -std=c++20 "${cppflags[@]}" -O2 -Wall -Wextra -Wshadow -Wconversion -Werror -pthread \
        gates.cpp -o gates
    ./gates
    echo "works: $kind"
    exit
fi

options=(-DLLMBENCH_SOURCE="$source" -DCMAKE_BUILD_TYPE=Debug)
if [[ $kind == package ]]; then
    "$cmake" -S "$source" -B "$work/llmbench" -DCMAKE_INSTALL_PREFIX="$work/prefix" \
        -DLLMBENCH_BUILD_TESTS=OFF -DLLMBENCH_BUILD_EXAMPLES=OFF -DLLMBENCH_BUILD_BENCH=OFF
    "$cmake" --install "$work/llmbench"
    options=(-DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Debug)
fi
"$cmake" -S "$kind" -B "$work/build" "${options[@]}"
"$cmake" --build "$work/build"
cd "$work/build"
"${cmake%cmake}ctest" --output-on-failure -L perf --no-tests=error

# A subproject or a package must neither build our tests nor leave its own targets lying about.
if [[ -e llmbench_tests || -e llmbench/tests ]]; then
    echo "the consumer built llmbench's own tests"
    exit 1
fi
# The gate's report belongs to the gate.
if [[ ! -e llmbench-report/chat/result.json ]]; then
    echo "llmbench_add_gate: no report in llmbench-report/chat"
    exit 1
fi
echo "works: $kind"
