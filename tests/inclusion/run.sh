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
