#!/usr/bin/env bash
# What must not compile. Each case of cases.txt is compiled twice: wrong, which must fail with the
# message the case names, and right, which must compile, so that nothing fails for another reason.
# So are options with which no gate means what it says: they are refused in one sentence.
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

# compile CODE: the code stands in a function body; messages go to $work/log
compile() {
    printf '#include "llmbench.hpp"\nusing namespace llmbench;\nvoid probe() { %s }\n' "$1" \
        > "$work/case.cpp"
    LC_ALL=C "$compiler" -std=c++20 -I../.. "${cppflags[@]}" -Werror -fsyntax-only \
        "$work/case.cpp" > "$work/log" 2>&1
}

check_case() {
    local ok=1
    if ! compile "$right"; then
        complain "the corrected form does not compile: $right"; head -n 10 "$work/log"; ok=0
    fi
    if compile "$wrong"; then
        complain "compiles, but must not: $wrong"; ok=0
    elif ! grep -Eq "error: .*($error)" "$work/log"; then
        complain "fails with another message than /$error/: $wrong"
        grep -m 5 'error:' "$work/log" || head -n 10 "$work/log"
        ok=0
    fi
    passed=$((passed + ok))
}

# under FILE OPTION...: "gates" or "implementation", compiled with these; messages go to $work/log
under() {
    local file=$1
    printf '#include "llmbench.hpp"\nTEST_CASE("a") { llmbench::gate({}); }\n' > "$work/gates.cpp"
    printf '#define LLMBENCH_MAIN\n#include "llmbench.hpp"\n' > "$work/implementation.cpp"
    LC_ALL=C "$compiler" -std=c++20 -I../.. "${cppflags[@]}" -Wno-deprecated -fsyntax-only \
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
    refuses "RTTI" implementation -fno-rtti
    takes gates -fno-rtti
    takes gates -Ofast -fno-finite-math-only
}

for compiler in "${compilers[@]}"; do
    if ! compile ';'; then
        echo "$compiler: the header alone does not compile"
        head -n 20 "$work/log"
        exit 1
    fi
    check_options
    case='' wrong='' right='' error=''
    while IFS= read -r line; do
        case $line in
            '['*']') case=${line:1:-1} ;;
            'wrong: '*) wrong=${line#wrong: } ;;
            'right: '*) right=${line#right: } ;;
            'error: '*) error=${line#error: }; check_case ;;
            '' | '#'*) ;;
            *) echo "cases.txt: cannot read: $line"; exit 2 ;;
        esac
    done < cases.txt
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
