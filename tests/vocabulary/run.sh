#!/usr/bin/env bash
# Every public name compiles without a warning in a user's file, whatever that file has opened.
#   tests/vocabulary/run.sh        uses $CXX (default g++) and $CPPFLAGS
set -euo pipefail
cd "$(dirname "$0")"
read -ra cxx <<< "${CXX:-g++} ${CPPFLAGS:-}"
for source in t_*.cpp; do
    "${cxx[@]}" -std=c++20 -I../.. -Wall -Wextra -Wshadow -Wconversion -Werror \
        -fsyntax-only "$source"
    echo "compiles: $source"
done
