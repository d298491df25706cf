#!/usr/bin/env bash
# What the header costs the files that hold gates: bytes after preprocessing and compile time of
# tests/structure/three_gates.cpp as multiples of a file that includes doctest.h alone.
#   tests/bench/include_cost.sh [RUNS]        default 15; uses $CXX (default g++) and $CPPFLAGS
# The files take turns, so that a slow minute of the machine hits them alike.
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-15}
read -ra cxx <<< "${CXX:-g++} -std=c++20 ${CPPFLAGS:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TIMEFORMAT='%R %U %S'

# median COLUMNS FILE: of the sum of these columns, in seconds
median() {
    awk -v columns="$1" '{ n = split(columns, c, ","); t = 0; for (i = 1; i <= n; i++) t += $c[i]; print t }' \
        "$2" | sort -n | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2 }'
}

echo '#include <doctest/doctest.h>' > "$work/doctest.cpp"
printf '#include "llmbench.hpp"\n' > "$work/header.cpp"
cp tests/structure/three_gates.cpp "$work/gates.cpp"
names=(doctest header gates)
what=("doctest.h alone" "llmbench.hpp, no gate" "three gates")

for ((run = 0; run < runs; run++)); do
    for name in "${names[@]}"; do
        { time "${cxx[@]}" -I. -O0 -c "$work/$name.cpp" -o "$work/$name.o"; } 2>> "$work/$name.times"
    done
done

echo "| file | bytes preprocessed | CPU s | elapsed s | bytes x | CPU x | elapsed x |"
echo "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
for i in "${!names[@]}"; do
    name=${names[i]}
    bytes=$("${cxx[@]}" -I. -E "$work/$name.cpp" | wc -c)
    cpu=$(median 2,3 "$work/$name.times")
    elapsed=$(median 1 "$work/$name.times")
    if ((i == 0)); then first=("$bytes" "$cpu" "$elapsed"); fi
    awk -v file="${what[i]}" -v b="$bytes" -v c="$cpu" -v e="$elapsed" -v b1="${first[0]}" \
        -v c1="${first[1]}" -v e1="${first[2]}" 'BEGIN {
            printf "| %s | %d | %.3f | %.3f | %.1f | %.1f | %.1f |\n", file, b, c, e, b / b1, c / c1, e / e1 }'
done
