#!/usr/bin/env bash
# Builds the tests and runs them; installs what is missing first.
#   ci/test.sh          with g++ alone: shows whether a change works
#   ci/test.sh --all    every test, with clang, sanitizers, fuzzers, a browser, proxies, a real engine, MPI
# Each leg builds into build/NAME, so that a second run compiles only what changed. It begins with what
# it is about to install and how long each leg took here the last time, and ends with a line for each.
# Nothing is tried twice.
set -euo pipefail
# shellcheck source=ci/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=ci/legs.sh
source ci/legs.sh

all=
case ${1:-} in
    '') ;;
    --all) all=1 ;;
    *) die "usage: ci/test.sh [--all]" ;;
esac

# Who builds all tests to run them once compiles several in one go; who edits one does not (tests/README.md).
common=(-DLLMBENCH_WERROR=ON -DLLMBENCH_TESTS_AT_ONCE=35)

# build_leg NAME CMAKE_OPTION...
build_leg() {
    configure "$1" "${common[@]}" "${@:2}"
    cmake --build "build/$1" --parallel "$(cores)"
}

# run_leg LEG BUILD NUMBER CTEST_OPTION...: so many tests side by side
run_leg() {
    leg "$1"
    ctest --test-dir "build/$2" --output-on-failure --no-tests=error --parallel "$3" "${@:4}"
    count_stalled "build/$2/Testing/Temporary/LastTest.log"
}
# What holds a compiler or a processor, one for each core.
test_leg() { run_leg "$1" "$2" "$(cores)" "${@:3}"; }
# What mostly waits for paced servers, so many side by side.
live_leg() { run_leg "$1-live" "$1" "$2" -L live "${@:3}"; }

needs=(need_compiler need_python)
legs_here=(gcc-build gcc-test gcc-live)
if [[ $all ]]; then
    needs+=(need_node need_validators need_pytest need_proxies need_several need_browser need_clang need_libcxx)
    legs_here=(gcc-build gcc-test gcc-real gcc-examples gcc-live others clang-test asan-test asan-live tsan-test
        tsan-live)
fi
install_list=$(what_would_be_installed "${needs[@]}" | sort -u | paste -sd ' ')
say "about to install: ${install_list:-nothing, all is there}"
legs_to_come "${legs_here[@]}"
for need in "${needs[@]}"; do "$need"; done

# What a user gets: optimised, warnings as errors. Finds wrong results, files that no longer compile
# or compile although they must not, a header out of shape, consumers that cannot use it.
# -O2 instead of CMake's -O3: a quarter less time to compile, and what most users have.
leg gcc-build
parts=()
if [[ $all ]]; then parts=("-DLLMBENCH_CONSUMER_COMPILER=$clang"); fi
configure gcc "${common[@]}" "${parts[@]}" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG"
targets=(--target llmbench_tests llmbench_tests_by_asio llmbench_seeds
    llmbench_virtual_tests llmbench_live_tests outcomes_gates outcomes_own_main outcomes_no_doctest)
if [[ $all ]]; then targets=(); fi
cmake --build build/gcc --parallel "$(cores)" "${targets[@]}"
if [[ ! $all ]]; then
    not_here="real|browser|examples|consumer|rates|all"
    test_leg gcc-test gcc -LE "live|$not_here"
    live_leg gcc $((2 * $(cores))) -LE "$not_here"
    all_legs_passed
    say "all of these passed after $SECONDS s; ci/test.sh --all has the others"
    exit
fi
test_leg gcc-test gcc -LE "live|real|examples"
test_leg gcc-real gcc -L real

other_builds() {
    chrt --idle --pid 0 "$BASHPID" || true
    local debug=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$clang"
        -DLLMBENCH_BUILD_EXAMPLES=OFF -DLLMBENCH_BUILD_BENCH=OFF -DLLMBENCH_BUILD_PROGRAM=OFF)
    # A second front end: what must compile, what must not, and the fuzzers. The tests themselves go
    # through it below, with sanitizers.
    configure clang "${common[@]}" "${debug[@]}" -DLLMBENCH_BUILD_FUZZERS=ON
    cmake --build build/clang --parallel "$(cores)" --target llmbench_fuzzers
    # Finds what only g++ accepts, reads beyond a buffer in the parsers, coroutines that outlive what
    # they refer to, leaks of a cancelled request, signed overflow and bad casts in the arithmetic of
    # the verdicts.
    # Optimising what these two insert takes five times as long to compile.
    build_leg asan "${debug[@]}" -DLLMBENCH_SANITIZE=address,undefined \
        "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1"
    # Finds data races between the threads of the load generator, the simulated server, the reports.
    build_leg tsan "${debug[@]}" -DLLMBENCH_SANITIZE=thread "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1"
}

# The live tests leave the processors idle nine tenths of their time. The other legs are built in
# that time, by a scheduling class that never takes a processor from anybody.
mkdir -p build
beside_legs other_builds build/others.log
test_leg gcc-examples gcc -L examples
live_leg gcc $((2 * $(cores)))
leg others
wait "$beside" || { cat build/others.log; die "clang refuses what g++ took"; }
beside=

# What runs rather than compiles has had its turn by now. The fuzzers go on from their corpus for
# twenty seconds: what the parsers make of any bytes at all.
test_leg clang-test clang -L "compile|fuzz"
test_leg asan-test asan -L unit -LE live
live_leg asan $(($(cores) + 1))
test_leg tsan-test tsan -L unit -LE live
live_leg tsan $(($(cores) + 1))
all_legs_passed
say "all legs passed after $SECONDS s"
