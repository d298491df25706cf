#!/usr/bin/env bash
# Ways in which a program may include the header.
#   tests/inclusion/run.sh CASE        uses $CXX (default g++) and $CPPFLAGS
# libcxx takes a clang++ with libc++ instead; without one it is skipped (exit code 77).
set -euo pipefail
cd "$(dirname "$0")"
case=${1:?usage: run.sh CASE}
read -ra cxx <<< "${CXX:-g++} ${CPPFLAGS:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(-std=c++20 -I../.. -I../../extensions -Wall -Wextra -Wshadow -Wconversion -Werror -pthread)
if [[ $case == no_doctest ]]; then
    "${cxx[@]}" "${flags[@]}" -M no_doctest.cpp > "$work/headers"
    if grep doctest/ "$work/headers"; then
        echo "LLMBENCH_NO_DOCTEST still includes doctest"
        exit 1
    fi
    echo "works: $case"
    exit
fi

if [[ $case == linked ]]; then
    # Files that do not belong together are a linker's error, which names what differs.
    has=$(sed -nE '1s/^[^ ]* llmbench ([^:]*):.*/\1/p' ../../llmbench.hpp) other=9.8.7
    has=${has//-/}
    mkdir "$work/other"
    cp ../../llmbench.hpp ../../extensions/*.hpp "$work/other"
    python3 ../../ci/assemble.py --all "$work/other/llmbench_all.hpp"
    sed -i.bak -E 's/^(#define LLMBENCH_VERSION_)MAJOR .*/\1MAJOR 9/; s/^(#define LLMBENCH_VERSION_)MINOR .*/\1MINOR 8/
        s/^(#define LLMBENCH_VERSION_)PATCH .*/\1PATCH 7/; s/^(#define LLMBENCH_VERSION_)PRE .*/\1PRE ""/' "$work/other/llmbench.hpp"
    cd "$work"
    printf '#include "llmbench.hpp"\nTEST_CASE("a") { llmbench::gate({.requests = 40, .slos = {p90(llmbench::ttft) <= llmbench::time_span::from_seconds(1)}}); }\n' > gates.cpp
    printf '#include "llmbench.hpp"\nint more() { return llmbench::types::text("more").empty(); }\n' > more.cpp
    compile() { "${cxx[@]}" "$@" -std=c++20 -Wall -Wextra -Werror -c; }  # OBJECT SOURCE INCLUDES
    here=(-I"$OLDPWD/../.." -I"$OLDPWD/../../extensions")
    compile gates.cpp -o gates.o "${here[@]}"
    compile more.cpp -o more.o "${here[@]}"
    compile more.cpp -o no_doctest.o "${here[@]}" -DLLMBENCH_NO_DOCTEST
    compile more.cpp -o other.o -Iother
    bad=0
    # links OBJECT...: what a linker says is in the file `said`
    links() { if "${cxx[@]}" "$@" -o program > said 2>&1; then echo "links without LLMBENCH_MAIN: $*"; exit 1; fi; }
    says() { grep -qE -- "$1" said || { echo "a linker does not say: $1"; head -n 20 said; bad=1; }; }
    advice="LLMBENCH_MAIN_belongs_in_one_file_with_llmbench_"
    with="_with_doctest_[0-9.]+"
    links gates.o more.o
    says "$advice${has}$with"
    first=$(grep -E 'undefined' said | grep -v "\bmain'\?\$" | head -n 1)
    [[ $first == *"$advice"* ]] || { echo "this is said before the advice: $first"; bad=1; }
    (($(wc -l < said) <= 40)) || { echo "$(wc -l < said) lines for one that is missing"; bad=1; }
    if grep -q 'all_files_of_a_program' said; then echo "files of one version differ"; bad=1; fi
    links gates.o other.o
    says "$advice${has}$with"
    says "$advice${other}$with"
    if [[ $(uname) == Linux ]]; then  # both names in one line
        says "llmbench_${has}$with.*llmbench_${other}$with|llmbench_${other}$with.*llmbench_${has}$with"
    fi
    links gates.o no_doctest.o
    says "$advice${has}$with"
    says "$advice${has}_without_doctest"
    # What one file can show is an error of the compiler.
    says_compiler() {  # SENTENCE OPTION...
        if "${cxx[@]}" -std=c++20 -fsyntax-only "${@:2}" > said 2>&1; then echo "compiles: ${*:2}"; bad=1; fi
        grep -qF -- "$1" <<< "$(grep -m 1 'error:' said)" || { echo "a compiler does not say: $1"; grep -m 3 error: said; bad=1; }
    }
    says_compiler "compile without -fpack-struct" gates.cpp "${here[@]}" -fpack-struct
    printf '#pragma pack(1)\n' | cat - gates.cpp > packed.cpp
    says_compiler "no #pragma pack is in force" packed.cpp "${here[@]}"
    for extension in other/llmbench_*.hpp; do
        name=$(basename "$extension")
        printf '#include "llmbench.hpp"\n#include "%s"\n' "$name" > extension.cpp
        says_compiler "$name is of " extension.cpp -Iother
        says_compiler "but llmbench.hpp is llmbench_$other: take both from one release" extension.cpp -Iother
    done
    if ((bad)); then exit 1; fi
    echo "works: $case"
    exit
fi

if [[ $case == libcxx ]]; then
    cxx=()
    for clang in clang++-19 clang++-20 clang++-21 clang++-18 clang++-17 clang++; do
        if printf '#include <string>\nint main() {}\n' |
            "$clang" -stdlib=libc++ -x c++ - -o "$work/empty" 2> /dev/null; then
            read -ra cxx <<< "$clang -stdlib=libc++ ${CPPFLAGS:-}"
            break
        fi
    done
    if ((${#cxx[@]} == 0)); then
        echo "skipped: no clang++ with libc++ here"
        exit 77
    fi
fi

# Whether names clash shows without generating code. Another standard library runs, too.
if [[ $case != libcxx ]]; then
    "${cxx[@]}" "${flags[@]}" -fsyntax-only "$case.cpp"
    echo "compiles: $case"
    exit
fi
"${cxx[@]}" "${flags[@]}" no_short_names.cpp -o "$work/program"
cd "$work"
env -u LLMBENCH_URL LLMBENCH_REPORT_DIR="$work/report" ./program
echo "works: $case"
