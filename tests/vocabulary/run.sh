#!/usr/bin/env bash
# Every public name compiles without a warning in a user's file, whatever that file has opened; so
# does every piece of C++ in the documentation, and the gate that llmbench count writes.
#   tests/vocabulary/run.sh        uses $CXX (default g++) and $CPPFLAGS
set -euo pipefail
cd "$(dirname "$0")"
read -ra cxx <<< "${CXX:-g++} ${CPPFLAGS:-}"
"${cxx[@]}" -std=c++20 -I../.. -I../../extensions -Wall -Wextra -Wshadow -Wconversion -Werror -fsyntax-only t_vocab.cpp
echo "compiles: t_vocab.cpp"

# Whole test cases stand as they are, fields become a scenario's, all else is the inside of a function.
cd ../..
mapfile -t pages < <(find README.md ci examples guides src tests -name '*.md' -not -path '*/node_modules/*' |
    LC_ALL=C sort)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    echo '#include <cstdio>'
    echo '#include <cstdlib>'
    echo '#include "llmbench.hpp"'
    for extension in extensions/llmbench_*.hpp; do echo "#include \"$extension\""; done
    echo 'using namespace llmbench;'
    awk '/^```/ { if (inside) { close_block(); inside = 0 } else if ($0 == "```cpp") { inside = 1; n = 0 }
                  next }
         inside { line[++n] = $0; from[n] = FNR }
         function close_block(   i, whole, fields) {
             for (i = 1; i <= n; i++) if (line[i] ~ /^TEST_CASE/) whole = 1
             fields = line[1] ~ /^\./
             if (!whole) printf fields ? "extern const scenario r%d; const scenario r%d = {\n" \
                                       : "void r%d(); void r%d() {\n", ++count, count
             for (i = 1; i <= n; i++) {
                 if (line[i] ~ /^(#define LLMBENCH_MAIN|#include "llmbench|using namespace llmb)/) continue
                 printf "#line %d \"%s\"\n%s\n", from[i], FILENAME, line[i]
             }
             if (!whole) print fields ? "};" : "}"
         }' "${pages[@]}"
    sed -n '/^TEST_CASE/,/^}/p' tests/golden/program/count.txt
} > "$work/pages.cpp"
blocks=$(cat "${pages[@]}" | grep -c '^```cpp')
"${cxx[@]}" -std=c++20 -I. -Iextensions -Wall -Wextra -Wshadow -Wconversion -Werror -fsyntax-only \
    "$work/pages.cpp"
echo "compiles: the $blocks pieces of C++ in ${#pages[@]} pages, and the gate of llmbench count"
