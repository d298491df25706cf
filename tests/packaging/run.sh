#!/usr/bin/env bash
# The vcpkg port and the Conan recipe, each with and without TLS: what they install from what they
# take along can be used, and speaks TLS only where that was asked for. The two tools themselves are
# stand-ins (vcpkg.cmake, conan.py), so this says nothing about their registries.
#   tests/packaging/run.sh [PORTS]          PORTS: those of a release; uses $CMAKE and $CXX
set -euo pipefail
ports=$(realpath "${1:-$(dirname "$0")/../../ci/packaging}")
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
export CMAKE=${CMAKE:-cmake} CXX=${CXX:-g++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=ci/common.sh
version=$(source ci/common.sh && version)

# has_tls NAME yes|no: a project that finds the package in $work/NAME
mkdir "$work/user"
cat > "$work/user/CMakeLists.txt" << 'PROJECT'
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES CXX)
find_package(llmbench 1.0 REQUIRED)
message(STATUS "numbers: ${llmbench_VERSION}.")
get_target_property(include llmbench::llmbench INTERFACE_INCLUDE_DIRECTORIES)
if(NOT EXISTS "${include}/llmbench.hpp" OR NOT COMMAND llmbench_add_gate)
    message(FATAL_ERROR "the package is not whole")
endif()
get_target_property(definitions llmbench::tls INTERFACE_COMPILE_DEFINITIONS)
message(STATUS "TLS: ${definitions}")
PROJECT
has_tls() {
    local says="TLS: definitions-NOTFOUND"
    if [[ $2 == yes ]]; then says="TLS: LLMBENCH_WITH_TLS"; fi
    "$CMAKE" -S "$work/user" -B "$work/$1-user" -DCMAKE_PREFIX_PATH="$work/$1" \
        -DCMAKE_CXX_COMPILER_WORKS=ON > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    grep -qxF -- "-- numbers: ${version%%-*}." "$work/log" || { echo "$1 is not $version"; cat "$work/log"; exit 1; }
    grep -qF -- "$says" "$work/log" || { echo "$1 does not say $says"; cat "$work/log"; exit 1; }
    echo "works: $1"
}

# asio is of a feature, and of the header only where it is no Linux.
python3 - "$ports/vcpkg/vcpkg.json" << 'END'
import json, sys
port = json.load(open(sys.argv[1]))
plain = [d if isinstance(d, str) else d["name"] for d in port["dependencies"] if isinstance(d, str) or "platform" not in d]
assert "asio" not in plain and {"name": "asio", "platform": "!linux"} in port["dependencies"], port["dependencies"]
assert port["features"]["simulated"]["dependencies"] == ["asio"]
END

# What the formula of a Homebrew tap names is in the tree: Homebrew itself is not here.
formula=$ports/homebrew/llmbench.rb
if command -v ruby > /dev/null; then ruby -c "$formula" > /dev/null; fi
grep -q "LLMBENCH_BUILD_PROGRAM=ON" "$formula"
while read -r word; do
    grep -q "${word/PICOJSON/.*}" CMakeLists.txt ci/packaging/*.cmake || { echo "$formula sets $word, which CMake does not know"; exit 1; }
done < <(sed -nE 's/.*"-D([A-Z_0-9]+)=.*/\1/p' "$formula")

recipe=$ports/conanfile.py
if [[ -e $ports/conan ]]; then recipe=$ports/conan/conanfile.py; fi
for tls in no yes; do
    features=core
    if [[ $tls == yes ]]; then features="core;tls"; fi
    "$CMAKE" -DPORT="$ports/vcpkg" -DFEATURES="$features" -DCURRENT_PACKAGES_DIR="$work/vcpkg-$tls" \
        -DBUILD="$work/vcpkg-$tls-build" -P "$here/vcpkg.cmake"
    cmp LICENSE "$work/vcpkg-$tls/share/llmbench/copyright"
    [[ -s $work/vcpkg-$tls/share/llmbench/usage && $(cd "$work/vcpkg-$tls/lib" && echo *) == pkgconfig ]]
    has_tls "vcpkg-$tls" "$tls"
    python3 "$here/conan.py" "$recipe" "$work/conan-$tls" "$tls" "$version"
    has_tls "conan-$tls" "$tls"
    cmp LICENSE "$work/conan-$tls/licenses/LICENSE"
    grep -qx "Version: $version" "$work/conan-$tls/share/pkgconfig/llmbench.pc"
    if command -v pkg-config > /dev/null; then
        read -r includes < <(PKG_CONFIG_PATH="$work/conan-$tls/share/pkgconfig" pkg-config --cflags-only-I llmbench)
        [[ -s ${includes#-I}/llmbench.hpp ]] || { echo "pkg-config says $includes"; exit 1; }
    fi
done

# What is otherwise than in Debian: vcpkg has picojson.h in a folder of its own, and Conan's OpenSSL is a
# target, beside variables that do not say where its libraries are.
mkdir -p "$work/theirs/include/picojson"
touch "$work/theirs/include/picojson/picojson.h"
cat > "$work/theirs/FindOpenSSL.cmake" << 'MODULE'
set(OPENSSL_FOUND TRUE)
set(OPENSSL_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/include")
set(OPENSSL_SSL_LIBRARY ssl)
set(OPENSSL_CRYPTO_LIBRARY crypto)
set(OPENSSL_LIBRARIES openssl::openssl)
MODULE
cat >> "$work/user/CMakeLists.txt" << 'PROJECT'
get_target_property(include llmbench::picojson INTERFACE_INCLUDE_DIRECTORIES)
get_target_property(libraries llmbench::tls INTERFACE_LINK_LIBRARIES)
message(STATUS "picojson: ${include}, OpenSSL: ${libraries}.")
PROJECT
"$CMAKE" -S "$work/user" -B "$work/theirs-user" -DCMAKE_PREFIX_PATH="$work/theirs;$work/vcpkg-yes" \
    -DCMAKE_MODULE_PATH="$work/theirs" -DCMAKE_CXX_COMPILER_WORKS=ON > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep -qxF -- "-- picojson: $work/theirs/include/picojson, OpenSSL: openssl::openssl." "$work/log" || { cat "$work/log"; exit 1; }
echo "works: libraries of package managers"
