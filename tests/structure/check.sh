#!/usr/bin/env bash
# The shape of src/, of llmbench.hpp and of the documentation, cheap to check and easy to lose: order,
# size, macros, includes, links.
#   tests/structure/check.sh       uses $CXX (default g++) and $CPPFLAGS
set -euo pipefail
cd "$(dirname "$0")/../.."
header=llmbench.hpp
max_lines=500 max_function_lines=80 max_columns=100 max_preprocessed_bytes=150000
read -ra cxx <<< "${CXX:-g++} -std=c++20 ${CPPFLAGS:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# check NAME COMMAND...: the command says on stdout what is wrong, and succeeds if nothing is.
check() {
    local name=$1
    shift
    if "$@" > "$work/log" 2>&1; then passed=$((passed + 1)); echo "ok: $name"
    else failed=$((failed + 1)); echo "NOT OK: $name"; head -n 40 "$work/log"; fi
}

# The table is the "//   [A] SLO expressions" lines above the include guard.
contents_equal_banners() {
    sed -n '/^#ifndef LLMBENCH_HPP/q; s|^//   \(\[[A-Z]\] .*\)$|\1|p' "$header" \
        > "$work/contents"
    sed -n 's|^// ===== \(\[[A-Z]\] .*[^ =]\) =*$|\1|p' "$header" > "$work/banners"
    [[ -s $work/contents ]] && diff "$work/contents" "$work/banners"
}

# Whoever opens the file sees the gate that README.md has, and finds where the implementation begins.
first_page() {
    # shellcheck disable=SC2016  # the backticks are Markdown's
    sed -n '/^```cpp/,/^```$/{/^```/!p;/^```$/q}' README.md > "$work/gate"
    [[ $(wc -l < "$work/gate") -gt 10 ]] || { echo "README.md has no gate"; return 1; }
    sed -n '\|^// #include "llmbench.hpp"|,\|^// }$|s|^// \{0,1\}||p' "$header" | diff - "$work/gate" || return 1
    local line
    line=$(sed -n 's|^// The implementation begins in line \([0-9]*\) .*|\1|p' "$header")
    sed -n "${line:-1}p" "$header" | grep '^// ===== the implementation: [0-9,]* lines, compiled where LLMBENCH_MAIN is =*$'
}

# Why: core/base/vector.hpp. CLI11 gives a std::vector.
own_vector() {
    ! grep -rn --include='*.hpp' --include='*.cpp' 'std::vector' src |
        grep -vE '^src/(api/|core/base/vector.hpp|program/arguments.hpp)'
}

# Private words that the field's terms have replaced: nobody searches for them, nobody can guess them.
no_private_words() {
    local words='grounds|arms_grounds|findings|assess|judged_as_reported|looked_at|client_bias'
    words+='|run_arms|arm_figures|arm_list|virtual_world|inside_world|current_world|hang_ups|own_lack'
    words+='|turns_for_all|told_beside|made_up_prompts|is_hurt|says_yes|is_no|words_of_others|cohort_of'
    words+='|server_account|history_mark|in_a_lump|unheard'
    ! grep -rnwE --include='*.hpp' --include='*.cpp' "$words" src | grep -vE '^[^:]*:[0-9]+: *//' |
        grep -vE '"[^"]*\b('"$words"')\b[^"]*"'
}

# version.hpp states it; all else repeats it or reads it there.
one_version() {
    local version found file banners=("$header" extensions/*.hpp)
    # shellcheck source=ci/common.sh
    version=$(source ci/common.sh && version)
    [[ $version =~ ^[0-9]+(\.[0-9]+){2}(-[a-z]+\.[0-9]+)?$ ]] || { echo "the header's version is \"$version\""; return 1; }
    found=$(sed -nE '/^## /{s///p;q}' CHANGELOG.md
        sed -nE 's/.*"version-semver": "([^"]*)".*/\1/p' ci/packaging/vcpkg/vcpkg.json
        sed -nE 's/.*llmbench-([0-9.]+)-py3.*/\1/p; s/.*llmbench-([0-9.]+)rc([0-9]+)-py3.*/\1-rc.\2/p' README.md
        sed -nE 's/.*\) Version ([^ ]*) .*/\1/p; s/^ *RELEASE[=:].*\/v([^ ]*) .*/\1/p' README.md
        for file in "${banners[@]}"; do sed -nE '1s/^[^ ]* [a-z_]+ ([^:]*):.*/\1/p' "$file"; done
        sed -nE 's/^  "version": "([^"]*)".*/\1/p' tests/golden/{result,comparison}.json)
    echo "the header is $version; CHANGELOG, vcpkg, README (five times), banners and golden files say:"
    echo "$found"
    [[ $(sort -u <<< "$found") == "$version" ]] && (($(wc -l <<< "$found") == 9 + ${#banners[@]}))
}

# A byte order mark, a tab or a stray byte would shift columns; bytes are counted, not characters.
columns() { ! LC_ALL=C grep -nE "^.{$((max_columns + 1)),}|	| +\$" "$header"; }

lines() {
    find src -name '*.hpp' -exec awk -v most="$max_lines" '
        { ++lines[FILENAME] }
        END { for (f in lines) if (lines[f] > most) { print f ": " lines[f] " lines"; bad = 1 }
              exit bad }' {} +
}

functions() {
    find src -name '*.hpp' -exec python3 tests/structure/functions.py "$max_function_lines" {} +
}

# A misspelt name would stand in a report as it is written.
places_have_values() { find src -name '*.hpp' -exec python3 tests/structure/templates.py {} +; }

# Reports show what core/figures computed: they may name what was found, but know no method.
reports_compute_nothing() {
    local methods='base/statistics|judging/(values|counts|judge|validity|numbers|samples|server|client)'
    ! grep -rnE "#include \"core/($methods|measured/metrics)\.hpp\"" src/core/reports
}

# A rule that reads its own sentences would be another one when somebody corrects a word of them.
verdicts_read_no_text() { python3 tests/structure/decides.py; }

# Whatever a file says is a number becomes one of ours in core/base/json.hpp alone: there
# is its range, and the sentence where it lies outside.
numbers_of_files_are_checked() {
    ! grep -rnE 'get<double>\(\)|<(int|long long|std::size_t|std::u?int[0-9]+_t)>\(number_' \
        src/core/{files,reports} src/program/others src/effects/{gates,verbs.hpp}
}

# A thread may live in a made-up world: what asks the machine for time, or sleeps, is in one place.
# asio and epoll are given points in time.
one_clock() {
    local time='_clock::now|clock_(gettime|nanosleep)|gettimeofday|std::time\(|::time\(|sleep_for'
    time+='|this_thread::sleep|nanosleep|usleep|::sleep\(|[.>]wait_(for|until)\(|schedstat"'
    ! grep -rnE "$time" src/effects | grep -vE '^src/effects/system/clock\.hpp:'
}

# Bytes and names go through the network's interface, which a world of its own may be behind. The
# simulated server's sockets are its own, and so is the line to the guard of a process.
one_network() {
    local calls='::(socket|connect|accept4?|bind|listen|send|sendto|sendmsg|recv|recvfrom|recvmsg'
    calls+='|getaddrinfo|epoll_[a-z0-9_]*)\('
    ! grep -rnE "[^a-zA-Z0-9_]$calls" src/effects |
        grep -vE '^src/effects/(net/(sockets|machine_network)|targets/spawned)\.hpp:'
}

# What users compile is tested with what users take: no part beside it in one program.
header_or_parts() {
    ! grep -rnE '#include "(api|core|effects)/' examples tests/{consumers,inclusion,live,outcomes,virtual}
}

# Ours, the three short names, and the configuration of the two libraries below us.
macro_names() {
    ! grep -nE '^[[:space:]]*#[[:space:]]*define[[:space:]]' "$header" |
        grep -vE 'define[[:space:]]+(LLMBENCH_|(CHECK|REQUIRE|WARN)_SLO\(|DOCTEST_CONFIG_|ASIO_)'
}

# What a file with gates reads, compared with what doctest alone would make it read.
headers_of() { "${cxx[@]}" -I. -M -x c++ "$1" | tr ' ' '\n' | grep '^/' | sort -u; }
included_headers() {
    local expensive='memory|functional|chrono|iostream|ostream|sstream|string|string_view|vector'
    expensive+='|optional|variant|map|unordered_map|thread|mutex|algorithm|filesystem|coroutine'
    echo '#include <doctest/doctest.h>' > "$work/doctest_only.cpp"
    headers_of "$work/doctest_only.cpp" > "$work/doctest_headers"
    headers_of tests/structure/three_gates.cpp > "$work/gate_headers"
    [[ -s $work/gate_headers ]] || return 1
    ! comm -13 "$work/doctest_headers" "$work/gate_headers" |
        grep -E "/asio|/picojson|/($expensive)\$"
}

preprocessed_size() {
    local n
    n=$("${cxx[@]}" -I. -E tests/structure/three_gates.cpp | wc -c)
    echo "$n bytes after preprocessing, at most $max_preprocessed_bytes"
    ((n <= max_preprocessed_bytes))
}

# The file up to the end of a section compiles, so nothing there leans on what stands below. Open at
# a banner are the include guard and any number of namespaces.
cut_after() {
    local cut="$work/cut.hpp" opened closed
    awk -v title="[A] $1" '
        /^\/\/ =====/ { if (seen) exit; sub(/^\/\/ ===== /, ""); sub(/ =+$/, ""); seen = ($0 == title); next }
        /^}  \/\/ inline namespace v1/ { exit }
        { print }' "$header" > "$cut"
    opened=$(grep -cE '^#[[:space:]]*if' "$cut" || true)
    closed=$(grep -cE '^#[[:space:]]*endif' "$cut" || true)
    awk '/^(inline )?namespace .*\{$/ { ++open } /^}  \/\/ (inline )?namespace/ { --open }
         END { while (open-- > 0) print "}" }' "$cut" > "$work/ends"
    cat "$work/ends" >> "$cut"
    for ((; closed < opened; closed++)); do echo '#endif' >> "$cut"; done
    printf '#include "cut.hpp"\n' > "$work/cut.cpp"
    "${cxx[@]}" -Wall -Wextra -Werror -fsyntax-only "$work/cut.cpp"
}

# An exception that left a thread would end the program.
threads_are_contained() {
    ! grep -rn 'std::thread(' src --include='*.hpp' | grep -v '^src/effects/system/threads.hpp:'
}

# The page of the source says which tests belong to a recipe: the files are there.
# shellcheck disable=SC2016  # the backticks are Markdown's
named_tests_exist() {
    local name bad=0
    while read -r name; do
        [[ $(find tests -name "$name" | wc -l) == 1 ]] || { echo "no file $name"; bad=1; }
    done < <(grep -oh '`test_[a-z_]*\.cpp`' src/README.md | tr -d '`' | sort -u)
    return "$bad"
}

real_gates_are_short() {
    awk '/^TEST_CASE/ { from = FNR }
         /^}/ && from { if (FNR - from >= 15) { print FILENAME ":" from ": " FNR - from + 1 " lines"; bad = 1 }
                        from = 0; ++gates }
         END { exit bad || gates < 10 }' examples/real_gates/*.cpp
}
# What pages repeat of constants, and which constants published rates are of.
constants() { python3 tests/structure/constants.py; }
# The list of checks in src/, and that for users.
checks_have_one_name() { python3 tests/structure/checks.py; }
# Links and files that the pages name are there, and the first page stays short.
pages() {
    local all
    mapfile -t all < <(find README.md ci examples guides src tests -name '*.md' -not -path '*/node_modules/*')
    python3 tests/structure/pages.py "${all[@]}"
}

check "the tests that pages name are there" named_tests_exist
check "every link of the documentation leads somewhere" pages
# A symbolic link would do for GitHub, but archives and other systems may bring a file with its path.
check "the action at the top is that of ci/github" diff ci/github/action.yml action.yml
check "a page has the whole vocabulary" python3 tests/structure/vocabulary.py
check "each field of a scenario has its option, or a reason" python3 tests/structure/options.py
check "a gate of others fits in 15 lines" real_gates_are_short
check "the table of contents equals the banners" contents_equal_banners
check "the header's first page has the gate of README.md" first_page
check "the version is the same everywhere" one_version
check "no private word has come back" no_private_words
check "arrays are the vector of core/base/" own_vector
check "no line is too long, no tab, no trailing space" columns
check "the header is what src/ gives" python3 ci/assemble.py --check
check "the parts are put together, or refused in a sentence" python3 tests/structure/refusals.py
check "pages repeat the numbers of src/, and rates are of its constants" constants
check "the checks of verdicts have one name in src/ and in pages" checks_have_one_name
check "no part is too long" lines
check "nothing has grown by more than 3 %" python3 tests/structure/weight.py
check "nothing knows 1 % more of the rest than is written down" python3 tests/structure/weigh.py
check "nothing is thrown out of a thread" threads_are_contained
check "no function is too long" functions
check "places in texts have values of their names" places_have_values
check "reports know no statistics and no method" reports_compute_nothing
check "verdicts are decided on no text" verdicts_read_no_text
check "numbers of files are checked in one place" numbers_of_files_are_checked
check "time is asked for in one place" one_clock
check "bytes and names go through one interface" one_network
check "no program mixes the header and its parts" header_or_parts
check "every macro has our prefix" macro_names
check "a file with gates reads no expensive header" included_headers
check "a file with gates stays small" preprocessed_size
while read -r section; do
    check "the header ends well after [A] $section" cut_after "$section"
done < <(sed -n 's|^// ===== \[A\] \(.*[^ =]\) =*$|\1|p' "$header")
echo "$passed passed, $failed failed"
((failed == 0))
