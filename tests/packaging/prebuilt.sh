#!/usr/bin/env bash
# `g++ -std=c++20 gates.cpp $(llmbench flags) -o gates`: what is compiled once is linked by all kinds of gate
# files, and by none that it does not fit; so says the linker. By pkg-config and CMake, too.
#   tests/packaging/prebuilt.sh INSTALLED            what `cmake --install` has left, with the program
#   tests/packaging/prebuilt.sh PROGRAM KEPT         installs it first, built in the folder KEPT
# Uses $CXX (default g++), $CMAKE and, where it is there, clang++-19 or clang++. Asks for no picojson.
# shellcheck disable=SC2046  # words of llmbench flags
set -euo pipefail
work=$(mktemp -d)
server='' secure=''
trap 'kill $server $secure 2> /dev/null || true; rm -rf "$work"' EXIT
unset "${!LLMBENCH_@}" "${!GITHUB_@}" CPATH CPLUS_INCLUDE_PATH LIBRARY_PATH
die() { printf 'prebuilt.sh: %s\n' "$*" >&2; exit 1; }
cmake=${CMAKE:-cmake} cxx=${CXX:-g++}
given=$(realpath "${1:?usage: prebuilt.sh INSTALLED, or PROGRAM KEPT}")
kept=$(realpath -m "${2:-$work/none}")
cd "$(dirname "$0")/../.."
top=$PWD
# shellcheck source=ci/common.sh
version=$(source ci/common.sh && version)

if [[ -d $given ]]; then cp -r "$given" "$work/installed"
else
    launcher=()
    if command -v ccache > /dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
    "$cmake" -S . -B "$kept" "${launcher[@]}" -DCMAKE_CXX_COMPILER="$cxx" -DLLMBENCH_BUILD_ARCHIVE=ON \
        -DLLMBENCH_WERROR=ON > "$work/log"
    "$cmake" --build "$kept" > "$work/log" 2>&1 || { tail -n 40 "$work/log"; die "it does not compile"; }
    "$cmake" --install "$kept" --prefix "$work/installed" > /dev/null
    mkdir -p "$work/installed/bin"
    cp "$given" "$work/installed/bin/llmbench"
fi
program=$work/installed/bin/llmbench include=$work/installed/include
[[ $("$program" --version) == "llmbench $version" ]] || die "the program is not of $version"
has_tls=
if [[ $(nm "$work/installed/lib/libllmbench.a" 2> /dev/null) == *llmbench_takes_tls* ]]; then has_tls=1; fi

cd "$work"
ok() { echo "ok: $*"; }
# ends STATUS TEXT COMMAND...: so it does, and says so
ends() {
    local status=0
    "${@:3}" > log 2>&1 || status=$?
    if ((status != $1)) || ! grep -qF -- "$2" log; then
        tail -n 40 log
        die "${*:3} ends with $status, not with $1, or does not say: $2"
    fi
}
# url_of FILE PROCESS: the server's, when it listens
url_of() {
    local tries url
    for ((tries = 0; tries < 300; ++tries)); do
        url=$(sed -n 's/^listening on //p' "$1")
        if [[ $url ]]; then echo "$url"; return; fi
        kill -0 "$2" 2> /dev/null || break
        sleep 0.1
    done
    die "llmbench serve does not listen: $(< "$1")"
}
: > server
"$program" serve --slots 32 --port 0 > server &
server=$!
url=$(url_of server $server)

cat > gates.cpp << 'END'
#include "llmbench.hpp"

using namespace llmbench;

TEST_CASE("in time") {
    gate({.workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(8)},
          .arrivals = closed_loop(4), .requests = 40, .slos = {mean(tpot) <= 10_s}});
}
TEST_CASE("never in time") {
    gate({.workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(8)},
          .arrivals = closed_loop(4), .requests = 40, .slos = {mean(tpot) <= 1_us}});
}
END
{ echo '#define LLMBENCH_MAIN'; cat gates.cpp; } > with_main.cpp
{ cat gates.cpp; printf '#define LLMBENCH_MAIN\n#include "llmbench.hpp"\n'; } > with_late_main.cpp
# shellcheck disable=SC2016  # the backticks are Markdown's
sed -n '/^```cpp/,/^```/{/^```/!p;/^```$/q}' "$top/README.md" > readme.cpp
cat > no_doctest.cpp << 'END'
#define LLMBENCH_NO_DOCTEST
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
using namespace llmbench;
int main() {
    const result r = run({.workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(8)},
                          .arrivals = closed_loop(4), .requests = 40, .slos = {mean(tpot) <= 1_us}});
    return exit_code();
}
END
cat > own_main.cpp << 'END'
#define DOCTEST_CONFIG_IMPLEMENT
#include "gates.cpp"
int main(int argc, char** argv) { return doctest::Context(argc, argv).run() + exit_code() > 0 ? 9 : 0; }
END
{ printf '#include "llmbench.hpp"\n'; cd "$include"; printf '#include "%s"\n' llmbench_*.hpp | grep -v llmbench_all; cd - > /dev/null
  cat << 'END'
using namespace llmbench;
TEST_CASE("rehearsed") {
    gate({.target = simulated(engine{}), .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(4)},
          .arrivals = closed_loop(4), .requests = 40, .repeats = 2, .slos = {mean(tpot) <= 10_s}});
}
TEST_CASE("not run") {
    gate({.arrivals = closed_loop(up_to(64)), .slos = {mean(ttft) <= 1_s}});
    gate({.baseline = history(), .workload = sessions{.path = "traces/"}, .slos = {mean(ttft) <= baseline + 1_ms}});
    gate({.target = endpoint{.api = rerank}, .slos = {accuracy >= 90_pct}});
}
END
} > extensions.cpp

compilers=("$cxx")
for clang in clang++-19 clang++; do
    if command -v "$clang" > /dev/null && [[ $cxx != *clang* ]]; then compilers+=("$clang"); break; fi
done
warnings=(-Wall -Wextra -Wshadow -Wconversion -Werror)
for compiler in "${compilers[@]}"; do
    # built NAME FLAG...: of llmbench flags
    built() { "$compiler" -std=c++20 "${warnings[@]}" "$1.cpp" $("$program" flags "${@:2}") -o "$1"; }
    built readme
    ends 2 "set LLMBENCH_URL" ./readme
    for name in gates with_main with_late_main; do
        built "$name"
        LLMBENCH_URL=$url ends 0 "PASS" "./$name" -tc="in time"
        LLMBENCH_URL=$url ends 1 "FAIL" "./$name" -tc="never in time"
    done
    ok "$compiler: files with LLMBENCH_MAIN, and without"
    built no_doctest --no-main
    LLMBENCH_URL=$url ends 1 "FAIL" ./no_doctest
    built own_main --no-main
    LLMBENCH_URL=$url ends 9 "test cases: 2 | 1 passed | 1 failed" ./own_main
    built own_main  # a main() of one's own is taken first
    built extensions
    ends 0 "PASS" ./extensions -tc=rehearsed
    ok "$compiler: a main() of one's own, without doctest, all extensions"
    # Apart, and with the flags before the files.
    "$compiler" -std=c++20 "${warnings[@]}" -c gates.cpp $("$program" flags --cflags) -o gates.o
    "$compiler" gates.o $("$program" flags --libs) -o apart
    "$compiler" -std=c++20 $("$program" flags) gates.cpp -o before
    LLMBENCH_URL=$url ends 0 "PASS" ./before -tc="in time"
    ok "$compiler: compiled and linked apart"
done

# ---- the templates of CI take it where it is there
for template in ci/gitlab.yml ci/Jenkinsfile; do
    commands=$(grep -oE "(llmbench flags >|g\+\+ -std=c\+\+20 gates.cpp )[^']*" "$top/$template")
    rm -f gates flags
    bash -euc "export PATH=$work/installed/bin:\$PATH; ${commands/g++/\"$cxx\"}" > log 2>&1 || { tail -n 40 log; die "$template: $commands"; }
    grep -q -- -lllmbench_main flags || die "$template does not link the archive"
    LLMBENCH_URL=$url ends 0 "PASS" ./gates -tc="in time"
done
ok "the templates of CI"

# ---- the programs of tests/outcomes, which are compiled with the header elsewhere
for name in gates own_main no_doctest; do
    mkdir -p outcomes
    "$cxx" -std=c++20 -I"$top/tests" -I"$top/tests/outcomes" "$top/tests/outcomes/$name.cpp" $("$program" flags) -o "outcomes/$name"
done
bash "$top/tests/outcomes/run.sh" "$work"/outcomes/{gates,own_main,no_doctest} one_gate refusals > log 2>&1 ||
    { tail -n 40 log; die "programs that link libllmbench.a end otherwise"; }
ok "the exit codes and texts of tests/outcomes"

# ---- https://
if [[ $has_tls ]]; then
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
        -keyout key.pem -out cert.pem 2> /dev/null
    : > secure
    "$program" serve --slots 32 --port 0 --cert cert.pem --key key.pem > secure &
    secure=$!
    https=$(url_of secure $secure)
    LLMBENCH_URL=$https ends 2 "$https: this program was built without TLS. Link OpenSSL: \`llmbench flags --tls\`" ./gates -tc="in time"
    if [[ $(ldd gates) == *libssl* ]]; then die "OpenSSL is linked without --tls"; fi
    sed 's/gate({/gate({.target = endpoint{.tls = {.ca_file = "cert.pem"}}, /' gates.cpp > tls.cpp
    for asked in "" -Wl,--as-needed; do
        "$cxx" -std=c++20 $asked tls.cpp $("$program" flags --tls) -o tls
        LLMBENCH_URL=$https ends 0 "PASS" ./tls -tc="in time"
    done
    ok "https:// with --tls, and a sentence without"
else
    ends 2 "was built without OpenSSL" "$program" flags --tls
fi

# ---- what does not belong together is one undefined name, which is the sentence
# refused_by_linker FILE INCLUDE OPTION...
refused_by_linker() {
    "$cxx" -std=c++20 "${@:3}" -isystem "$2" -DLLMBENCH_PREBUILT -c "$1" -o other.o
    if "$cxx" other.o $("$program" flags --libs) -o other > log 2>&1; then die "links: $*"; fi
    grep -q "libllmbench.a_and_these_headers_are_not_of_one_build_of_" log || { cat log; die "the linker does not say why: $*"; }
    local names
    names=$(sed -nE "s/.*undefined reference to .([^']*)'.*/\1/p" log | sort -u | wc -l)
    ((names == 1)) || { cat log; die "$names names are missing, not one: $*"; }
}
cp -r "$include" version
sed -i -E 's/^(#define LLMBENCH_VERSION_)MINOR .*/\1MINOR 8/' version/llmbench.hpp
refused_by_linker gates.cpp version
refused_by_linker no_doctest.cpp version
cp -r "$include" doctest
sed -i -E 's/^(#define DOCTEST_VERSION_)PATCH .*/\1PATCH 99/; s/^(#define DOCTEST_VERSION_STR) "[^"]*"/\1 "2.4.99"/' doctest/doctest/doctest.h
refused_by_linker gates.cpp doctest
grep -q 'with_doctest_2[.][0-9]*[.]99' log || die "the linker does not name doctest's version: $(< log)"
refused_by_linker no_doctest.cpp "$include" -D_GLIBCXX_USE_CXX11_ABI=0
ok "another version, another doctest, another ABI: refused by name"
# With the header's own implementation in one file, nothing of the archive is needed, or the linker tells of two.
"$cxx" -std=c++20 -isystem "$include" -c gates.cpp -o header.o
"$cxx" header.o $("$program" flags --libs) -o header
LLMBENCH_URL=$url ends 0 "PASS" ./header -tc="in time"
ok "a file compiled without LLMBENCH_PREBUILT"

# ---- other ways to the same flags
if command -v pkg-config > /dev/null; then
    PKG_CONFIG_PATH=$("$program" flags --pkg-config)
    export PKG_CONFIG_PATH
    "$cxx" -std=c++20 gates.cpp $(pkg-config --cflags --libs llmbench_main) -o by_pkg_config
    LLMBENCH_URL=$url ends 0 "PASS" ./by_pkg_config -tc="in time"
    ok "pkg-config"
fi
mkdir project
cp gates.cpp no_doctest.cpp project
cat > project/CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES CXX)
enable_testing()
find_package(llmbench 1.0 REQUIRED COMPONENTS simulated)
if(TARGET llmbench::header)
    message(STATUS "the header, too")
endif()
llmbench_add_gate(NAME chat SOURCES gates.cpp TIMEOUT 60)
llmbench_add_gate(NAME own SOURCES no_doctest.cpp TIMEOUT 60)
add_executable(linked gates.cpp)
target_link_libraries(linked PRIVATE llmbench::llmbench_main)
END
# As where nothing else is installed: no picojson, no other doctest.
for ignored in "" /usr/include; do
    "$cmake" -S project -B "by_cmake$ignored" -Dllmbench_DIR="$("$program" flags --cmake)" -DCMAKE_CXX_COMPILER="$cxx" \
        -DCMAKE_IGNORE_PATH="$ignored" > log 2>&1 || { cat log; die "find_package(llmbench)"; }
    if [[ $ignored ]] && grep -q "the header, too" log; then die "picojson is found where it is ignored"; fi
    "$cmake" --build "by_cmake$ignored" > log 2>&1 || { cat log; die "the project does not compile"; }
    LLMBENCH_URL=$url ends 0 "PASS" "by_cmake$ignored/linked" -tc="in time"
    LLMBENCH_URL=$url ends 1 "FAIL" "by_cmake$ignored/chat"
    LLMBENCH_URL=$url ends 1 "FAIL" "by_cmake$ignored/own"
done
large=$(find by_cmake -name '*.o' -size +2000k | wc -l)
((large == 0)) || die "a project has compiled the implementation"
if [[ $has_tls && -e /usr/include/openssl/ssl.h ]]; then
    [[ $(ldd by_cmake/linked) == *libssl* ]] || die "CMake has found OpenSSL, and the program does not link it"
fi
ok "find_package(llmbench), llmbench_add_gate"

# ---- what llmbench flags refuses
ends 2 "--cmake prints one folder" "$program" flags --cmake --libs
ends 2 "--no-main is of linking" "$program" flags --cflags --no-main
mkdir "with blank" alone
cp -r installed "with blank/installed"
ends 2 'needs a path without blanks' "with blank/installed/bin/llmbench" flags
ends 0 "with blank/installed/share/llmbench/cmake" "with blank/installed/bin/llmbench" flags --cmake
cp "$program" alone
ends 2 "there is no libllmbench.a for this program, $work/alone/llmbench" alone/llmbench flags
ok "llmbench flags refuses what no compiler could take"
