#!/usr/bin/env bash
# What must not compile. Of all cases of cases.txt, and of parts.txt for the parts of src/, what is right is compiled, which must be taken, so that
# nothing fails for another reason; then what is wrong, where each case must fail with the message it names.
# Options with which no gate means what it says are refused in one sentence.
#   tests/compile_fail/run.sh [compiler...]   default: $CXX, else g++ and every clang++ found
set -euo pipefail
cd "$(dirname "$0")"
read -ra cppflags <<< "${CPPFLAGS:-}"
if (($#)); then compilers=("$@")
elif [[ -n ${CXX:-} ]]; then compilers=("$CXX")
else
    compilers=()
    for name in g++ clang++-16 clang++-19; do
        if command -v "$name" > /dev/null; then compilers+=("$name"); fi
    done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

complain() { printf '%s: [%s] %s\n' "$compiler" "$case" "$1"; failed=$((failed + 1)); }

# read_cases FILE: sets names, and for each of them in order what is wrong, what is right and the message; and
# the lines where the two stand
read_cases() {
    local line number=0
    cases=$1
    names=() wrong=() right=() message=() wrong_at=() right_at=()
    while IFS= read -r line; do
        number=$((number + 1))
        case $line in
            '['*']') names+=("${line:1:-1}") ;;
            'wrong: '*) wrong+=("${line#wrong: }") wrong_at+=("$number") ;;
            'right: '*) right+=("${line#right: }") right_at+=("$number") ;;
            'error: '*) message+=("${line#error: }") ;;
            '' | '#'*) ;;
            *) echo "$cases: cannot read: $line"; exit 2 ;;
        esac
    done < "$cases"
    if ((${#wrong[@]} != ${#names[@]} || ${#right[@]} != ${#names[@]} || ${#message[@]} != ${#names[@]})); then
        echo "$cases: a case has a name, what is wrong, what is right, and an error"
        exit 2
    fi
}

# compile wrong|right: each case is the inside of a function, and the compiler names its line in
# $cases; what it says goes to $work/log
compile() {
    local -n code=$1 at=$1_at
    local i folders=(-I../.. -I../../extensions)
    if [[ $cases == parts.txt ]]; then folders=(-I../../src); fi
    {
        if [[ $cases == parts.txt ]]; then
            printf '#include "core/described/causes.hpp"\nusing namespace llmbench::detail;\n'
        else
            printf '#include "llmbench.hpp"\n'
            for extension in ../../extensions/llmbench_*.hpp; do printf '#include "%s"\n' "$(basename "$extension")"; done
        fi
        printf 'using namespace llmbench;\n'
        for i in "${!code[@]}"; do
            printf '#line %d "%s"\nvoid case_%d() { %s }\n' "${at[i]}" "$cases" "$i" "${code[i]}"
        done
    } > "$work/$1.cpp"
    LC_ALL=C "$compiler" -std=c++20 "${folders[@]}" "${cppflags[@]}" -Werror -fsyntax-only "${all_errors[@]}" \
        "$work/$1.cpp" > "$work/log" 2>&1
}

check_cases() {
    local i said
    if ! compile right; then
        case="what is right"
        complain "does not compile"
        grep 'error:' "$work/log" | head -n 10
    fi
    if compile wrong; then echo "$compiler: takes all that is wrong"; fi
    for i in "${!names[@]}"; do
        case=${names[i]}
        said=$(sed -n "s/^$cases:${wrong_at[i]}:.*error: //p" "$work/log")
        if [[ ! $said ]]; then complain "compiles, but must not: ${wrong[i]}"
        elif ! grep -Eq "${message[i]}" <<< "$said"; then
            complain "fails with another message than /${message[i]}/: ${wrong[i]}"
            head -n 5 <<< "$said"
        else passed=$((passed + 1)); fi
    done
}

# under FILE OPTION...: "gates" or "implementation", compiled with these; messages go to $work/log
under() {
    local file=$1
    printf '#include "llmbench.hpp"\nTEST_CASE("a") { llmbench::gate({}); }\n' > "$work/gates.cpp"
    printf '#define LLMBENCH_MAIN\n#include "llmbench.hpp"\n' > "$work/implementation.cpp"
    printf '#include "llmbench_simulated.hpp"\n' | cat "$work/implementation.cpp" - > "$work/simulated.cpp"
    printf '#include "llmbench_simulated.hpp"\n' > "$work/alone.cpp"
    LC_ALL=C "$compiler" -std=c++20 -I../.. -I../../extensions "${cppflags[@]}" -Wno-deprecated -fsyntax-only \
        "${@:2}" "$work/$file.cpp" > "$work/log" 2>&1
}
# refuses WORDS FILE OPTION...: in one sentence, after which the compiler says nothing of its own
refuses() {
    local sentence="error: .*llmbench.*$1"
    case="${*:2}"
    if under "${@:2}"; then complain "compiles, but must not"
    elif ! grep -m 1 'error:' "$work/log" | grep -Eq "$sentence" ||
        (($(grep -c 'error:' "$work/log") != 2)); then
        complain "does not say just /$sentence/"
        grep 'error:' "$work/log" | head -n 5
    else passed=$((passed + 1)); fi
}
takes() {
    case="$*"
    if under "$@"; then passed=$((passed + 1)); return; fi
    complain "does not compile"
    head -n 10 "$work/log"
}
check_options() {
    local option file
    for file in gates implementation; do
        for option in -Ofast -ffast-math -ffinite-math-only; do
            refuses "infinity and NaN" "$file" "$option"
        done
        refuses "C\\+\\+20" "$file" -std=c++17
        refuses "exceptions" "$file" -fno-exceptions
        refuses "inside WSL" "$file" -D_WIN32
    done
    refuses "RTTI" simulated -fno-rtti
    refuses "comes after llmbench.hpp" alone
    takes gates -fno-rtti
    # With a folder in front whose asio says that it was read.
    local asked="$work/asked"
    mkdir -p "$asked/asio"
    for file in basic_{stream_socket,socket_acceptor,waitable_timer} io_context post; do
        echo '#error "asio was read"' > "$asked/asio/$file.hpp"
    done
    if [[ $(uname) == Linux ]]; then
        takes implementation -fno-rtti "-I$asked"
        takes simulated "-I$asked"
    fi
    # Without the system's headers nothing is there but what a folder of ours has.
    local there="$work/there"
    rm -rf "$there"
    mkdir -p "$there/doctest"
    for file in gates implementation; do refuses "needs doctest .*doctest-dev" "$file" -nostdinc; done
    : > "$there/doctest/doctest.h"
    refuses "needs picojson .*picojson-dev" implementation -nostdinc "-I$there"
    takes gates -Ofast -fno-finite-math-only
}

# names EXTENSION STATEMENT: what stands in an extension names its file where that is not included
names() {
    case="without llmbench_$1.hpp"
    printf '#include "llmbench.hpp"\nusing namespace llmbench;\nvoid f() { %s }\n' "$2" > "$work/without.cpp"
    if LC_ALL=C "$compiler" -std=c++20 -I../.. "${cppflags[@]}" -fsyntax-only "$work/without.cpp" > "$work/log" 2>&1
    then complain "compiles, but must not: $2"
    elif ! grep -q "llmbench_$1_\?[.]\?hpp" "$work/log"; then
        complain "does not name the file: $2"
        head -n 5 "$work/log"
    else passed=$((passed + 1)); fi
}
check_extensions() {
    python3 ../../ci/assemble.py --all "$work/llmbench_all.hpp"
    printf '#include "llmbench_all.hpp"\nTEST_CASE("a") { llmbench::gate({.target = llmbench::simulated()}); }\n' > "$work/all.cpp"
    takes all
    names answers 'gate({.workload = questions{.path = "q.jsonl"}});'
    names answers 'scenario s; s.workload = questions{.path = "q.jsonl", .format = gsm8k, .grade = last_number};'
    names compare 'compare({}, {{"a", endpoint{}}, {"b", endpoint{}}});'
    names compare 'curve({}, {8_rps, 16_rps});'
    names history '(void)scenario{.baseline = history("nights")};'
    names simulated 'any_target t = simulated();'
    names simulated 'any_target t = simulated({.slots = 4});'
    names simulated 'any_target t = simulated(engine{.slots = 4});'
    names simulated 'any_target t = simulated(engine{.slots = 4, .decode_step = 5_ms});'
    names simulated 'engine e;'
    names sessions 'gate({.workload = sessions{.path = "traces"}});'
    names sessions 'gate({.workload = sessions{.path = "traces", .max_wait = 10_s}});'
    names work 'slo s = preemptions == 0;'
    names machines 'judge_shards({"shard-0", "shard-1"}, {p90(ttft) <= 300_ms});'
}

# first_says SENTENCE STATEMENT: the first error, wherever the compiler sees it
first_says() {
    case="$2"
    printf '#include "llmbench.hpp"\nusing namespace llmbench;\nvoid f() { %s }\n' "$2" > "$work/first.cpp"
    if LC_ALL=C "$compiler" -std=c++20 -I../.. "${cppflags[@]}" -fsyntax-only "$work/first.cpp" > "$work/log" 2>&1
    then complain "compiles, but must not"
    elif ! grep -q "$1" <<< "$(grep -m 1 'error:' "$work/log")"; then
        complain "does not say first: $1"
        grep -m 3 'error:' "$work/log"
    else passed=$((passed + 1)); fi
}
check_sentences() {
    local lacks="an objective needs a statistic: p90(ttft) <= 300_ms"
    first_says "$lacks" 'gate({.requests = 40, .slos = {ttft <= 300_ms}});'
    first_says "$lacks" 'gate({.slos = {p90(ttft) <= 1_s, decode_speed >= 3_tps}});'
    first_says "$lacks" 'advisory(ttft <= 300_ms);'
    # What an extension has of a name that stays in the header.
    first_says "llmbench_capacity.hpp" 'gate({.arrivals = poisson(up_to(64_rps))});'
    first_says "llmbench_capacity.hpp" 'arrival_pattern a = closed_loop(up_to(64));'
    first_says "llmbench_capacity.hpp" 'gate({.slos = {p90(ttft) <= 300_ms, capacity >= 12_rps}});'
    first_says "llmbench_capacity.hpp" 'auto c = find_capacity({.slos = {p90(ttft) <= 300_ms}});'
    first_says "llmbench_capacity.hpp" 'scenario s; (void)find_capacity(s);'
    first_says "include.*llmbench_faults.hpp" 'gate({.on_fail = profile{}});'
    first_says "include.*llmbench_faults.hpp" 'gate({.beside = {{.name = "a", .every = 1_s, .steps = {post("/a")}}}});'
    first_says "include.*llmbench_answers.hpp" 'gate({.slos = {same_answers >= 60_pct}});'
    first_says "include.*llmbench_embeddings.hpp" 'any_target t = endpoint{.api = rerank};'
    first_says "$lacks" 'slo s = ttft <= 300_ms && tpot <= 30_ms;'
}

for compiler in "${compilers[@]}"; do
    all_errors=()
    if [[ $compiler == *clang* ]]; then all_errors=(-ferror-limit=0); fi
    check_options
    check_extensions
    check_sentences
    for file in cases.txt parts.txt; do
        read_cases "$file"
        check_cases
    done
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
