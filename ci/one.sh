#!/usr/bin/env bash
# Compiles one test file and what it needs, and runs it: right after any edit of src/ or of the test.
#   ci/one.sh tests/core/metric/test_table.cpp [OPTION OF DOCTEST...]
#   ci/one.sh core/metric/test_table           the same: the folder tests/ and .cpp may be left out
# A test of the parts takes seconds. A test in tests/virtual or tests/live compiles the whole header
# after an edit of src/, which takes half a minute. CXX names another compiler: clang++ takes half of
# g++'s time. build/one is the folder (LLMBENCH_ONE_DIR names another one).
set -euo pipefail
# shellcheck source=ci/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

(($# > 0)) || die "usage: ci/one.sh PATH_OF_A_TEST [OPTION OF DOCTEST...], for example core/metric/test_table"
test=${1#"$PWD"/} test=${test#tests/}
test=${test%.cpp}.cpp
shift
if [[ $test != */test_*.cpp || ! -e tests/$test ]]; then
    meant=$(cd tests && find api core effects virtual live -name 'test_*.cpp' -path "*$(basename "$test" .cpp)*" | head -n 12)
    die "no such test: tests/$test; ${meant:+do you mean $(printf '%s' "$meant" | paste -sd' ')? }these are tests: tests/{api,core,effects,virtual,live}/**/test_*.cpp"
fi
case $test in
    virtual/*) program=llmbench_virtual_tests ;;
    live/*) program=llmbench_live_tests ;;
    *) program=llmbench_tests ;;
esac
need_compiler
need_python

build=$(realpath -m "${LLMBENCH_ONE_DIR:-build/one}")
compiler=$(command -v "${CXX:-g++}") || die "CXX is \"$CXX\": there is no such compiler"
generator=()
if has ninja; then generator=(-G Ninja); fi
# CMake would keep to the compiler that it was first called with.
grep -qsx "CMAKE_CXX_COMPILER:[A-Z]*=$compiler" "$build/CMakeCache.txt" || rm -f "$build/CMakeCache.txt"
[[ $program == llmbench_tests ]] || python3 ci/assemble.py
mkdir -p "$build"
log=$build/one.log
{
    cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O0" \
        -DLLMBENCH_WERROR=ON -DLLMBENCH_BUILD_TESTS=ON "-DCMAKE_CXX_COMPILER=$compiler" "-DLLMBENCH_ONE_TEST=$test"
    cmake --build "$build" --parallel "$(cores)" --target "$program"
} > "$log" 2>&1 || { grep -v '^\[[0-9]' "$log" >&2; die "it does not compile; everything is in $log"; }
program=$build/tests/$program
mkdir -p "$build/report"
export LLMBENCH_REPORT_DIR=$build/report
cd tests
run=("$program" "--source-file=*/${test##*/}" "$@")
case $("${run[@]}" --count 2> /dev/null) in *": 0"*) die "no test case of tests/$test is named so: $*" ;; esac
exec "${run[@]}"
