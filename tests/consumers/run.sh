#!/usr/bin/env bash
# The ways in which a project may use llmbench: each is built from nothing and its gate is run.
#   tests/consumers/run.sh bare|subdirectory|fetchcontent|package KEPT SERVER     uses $CXX and $CPPFLAGS
# KEPT: a folder for the implementation, which two of them compile alike. SERVER: tests/outcomes/no_doctest.cpp.
set -euo pipefail
kept=$(realpath -m "${2:?usage: run.sh KIND KEPT SERVER}") server=$(realpath "$3")
cd "$(dirname "$0")"
kind=$1
source=$(cd ../.. && pwd)
cmake=${CMAKE:-cmake}
export CXX=${CXX:-g++}
work=$(mktemp -d)
squatter=''
trap '[[ ! $squatter ]] || kill "$squatter" 2> /dev/null; rm -rf "$work"' EXIT
unset LLMBENCH_URL

if [[ $kind == bare ]]; then
    # The headers copied beside two files: one has the header alone, the other the implementations of all
    # extensions. (Our tests share one file with all of it; gates.cpp has one extension.) Here the header
    # is no system header, so this is also where a warning in it would reach a user. Those that take an
    # optimiser show where the benchmarks' one_repeat.cpp is compiled.
    read -ra cppflags <<< "${CPPFLAGS:-}"
    flags=(-std=c++20 "${cppflags[@]}" -O0 -Wall -Wextra -Wshadow -Wconversion -Werror -pthread)
    cp "$source/llmbench.hpp" "$source"/extensions/llmbench_*.hpp "$work"
    grep -vE 'LLMBENCH_MAIN|#include' gates.cpp > "$work/gates.inc"
    cd "$work"
    cat > header.cpp << 'FILE'
#define LLMBENCH_MAIN
#include "llmbench.hpp"
using namespace llmbench;
TEST_CASE("a server") { gate({.arrivals = closed_loop(4), .requests = 40, .slos = {mean(tpot) <= 10_s}}); }
FILE
    {
        printf '#define LLMBENCH_IMPLEMENT_EXTENSIONS\n#include "llmbench.hpp"\n'
        printf '#include "%s"\n' llmbench_*.hpp
        printf '#include "gates.inc"\n'
    } > extensions.cpp
    for file in header extensions; do "$CXX" "${flags[@]}" -c "$file.cpp"; done
    "$CXX" "${flags[@]}" header.o -o header
    rc=0
    ./header > said || rc=$?
    if ((rc != 2)) || ! grep -q "no target: set LLMBENCH_URL" said; then
        cat said
        echo "the header alone, without a server: exit code $rc"
        exit 1
    fi
    "$CXX" "${flags[@]}" header.o extensions.o -o both
    ./both -tc="the simulated server*"
    echo "works: $kind"
    exit
fi

# As users debug, but without what a debugger reads: nobody debugs these, and it takes time.
type=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
    "-DCMAKE_CXX_COMPILER_LAUNCHER=bash;$PWD/once.sh;$kept")
options=(-DLLMBENCH_SOURCE="$source" "${type[@]}")
if [[ $kind == package ]]; then
    "$cmake" -S "$source" -B "$work/llmbench" -DCMAKE_INSTALL_PREFIX="$work/prefix"
    "$cmake" --install "$work/llmbench"
    options=(-DCMAKE_PREFIX_PATH="$work/prefix" "${type[@]}")
fi
port=$(python3 ../support/free_ports.py 1)
options+=("-DSERVER=$server" "-DSERVER_PORT=$port")
"$cmake" -S "$kind" -B "$work/build" "${options[@]}"
cd "$work/build"
if [[ $kind == fetchcontent ]]; then
    # It brings the same targets as a subdirectory does, which is built and run.
    "${cmake%cmake}ctest" -N -L perf > tests
    grep -q ': chat$' tests || { cat tests; exit 1; }
    if [[ -e _deps/llmbench-build/tests ]]; then echo "our own tests are part of the project"; exit 1; fi
    echo "works: $kind"
    exit
fi
"$cmake" --build .
"${cmake%cmake}ctest" --output-on-failure -L perf --no-tests=error

# However many gates there are, the implementation was compiled once: its objects are the large ones.
large=$(find . -name '*.o' -size +2000k | wc -l)
if ((large != 1)); then
    echo "the implementation was compiled $large times, not once"
    exit 1
fi

if [[ $kind == package ]]; then
    # The server was there for the gate, is gone now, and left its log with the report.
    grep -q "listening on http://127.0.0.1:$port" llmbench-report/served/server.log
    if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then echo "the server lives on"; exit 1; fi
    # One that does not get ready fails the test, and says why.
    if "${cmake%cmake}ctest" --output-on-failure -L unready > unready.log; then
        echo "a gate passed without its server"
        exit 1
    fi
    grep -q "http://127.0.0.1:$port was not ready within 1 s" unready.log
    grep -q "the model file is broken on port $port" unready.log
    # One that is there already is not measured in its place.
    "$server" serve "$port" > squatter.log &
    squatter=$!
    until grep -q listening squatter.log; do sleep 0.05; done
    if "${cmake%cmake}ctest" --output-on-failure -R served > squatted.log; then
        echo "a gate measured another server than its own"
        exit 1
    fi
    grep -q "something answers at its URL already" squatted.log
    kill "$squatter"
    squatter=''
    # What is written wrong is told by name when it is configured.
    configured() {  # LINE...
        printf '%s\n' 'cmake_minimum_required(VERSION 3.22)' 'project(wrong LANGUAGES CXX)' "$@" \
            > "$work/wrong/CMakeLists.txt"
        "$cmake" -S "$work/wrong" -B "$work/wrong/build" "${options[@]}" > "$work/wrong/log" 2>&1
    }
    refused() {
        if configured "${3-enable_testing()}" 'find_package(llmbench REQUIRED)' "llmbench_add_gate($1)" ||
            [[ $(tr -s ' \n' ' ' < "$work/wrong/log") != *"$2"* ]]; then
            echo "llmbench_add_gate($1) does not say: $2"
            cat "$work/wrong/log"
            exit 1
        fi
    }
    mkdir "$work/wrong"
    refused "SOURCES a.cpp" "NAME is missing"
    refused "NAME chat" "SOURCES is missing"
    refused "NAME chat extra SOURCES a.cpp" "what is 'extra'?"
    refused "NAME chat SOURCES a.cpp TIMEOUT soon" "TIMEOUT is 'soon': a whole number above 0"
    refused "NAME chat SOURCES a.cpp PORT 80" "PORT is of use only with SERVER_COMMAND"
    refused "NAME chat SOURCES a.cpp ENVIRONMENT x" "ENVIRONMENT holds 'x': it must be NAME=value"
    refused "NAME chat SOURCES a.cpp URL" "URL has no value"
    refused "NAME chat SOURCES CMakeLists.txt" "needs a line enable_testing()" ""
    if configured 'find_package(llmbench REQUIRED COMPONENTS nonsense)' ||
        [[ $(tr -s ' \n' ' ' < "$work/wrong/log") != *"llmbench has no component 'nonsense'"* ]]; then
        echo "a component that there is not is found"
        exit 1
    fi
    configured 'find_package(llmbench REQUIRED COMPONENTS compare OPTIONAL_COMPONENTS nonsense)' ||
        { cat "$work/wrong/log"; exit 1; }
    rm -rf "$work/wrong/build"
    # The project's own doctest is the one, before any that is installed.
    mkdir -p "$work/wrong/mine/doctest"
    : > "$work/wrong/mine/doctest/doctest.h"
    rm -rf "$work/wrong/build"
    # shellcheck disable=SC2016  # CMake expands them
    configured 'add_library(doctest INTERFACE)' 'add_library(doctest::doctest ALIAS doctest)' \
        'target_include_directories(doctest INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/mine> $<INSTALL_INTERFACE:include>)' \
        'find_package(llmbench REQUIRED)' 'get_target_property(used llmbench::doctest INTERFACE_INCLUDE_DIRECTORIES)' \
        'if(NOT used STREQUAL "${CMAKE_SOURCE_DIR}/mine")' 'message(FATAL_ERROR "doctest is of ${used}")' 'endif()' ||
        { cat "$work/wrong/log"; exit 1; }
    rm -rf "$work/wrong/build"
    # Who asks for the implementation in a file of his own gets no other one.
    printf '#define LLMBENCH_IMPLEMENT\n#include "llmbench.hpp"\n' > "$work/wrong/own.cpp"
    configured 'enable_testing()' 'find_package(llmbench REQUIRED)' 'llmbench_add_gate(NAME own SOURCES own.cpp)' \
        'if(TARGET llmbench_gate_main)' 'message(FATAL_ERROR "it has a second implementation")' 'endif()' ||
        { cat "$work/wrong/log"; exit 1; }
fi

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
