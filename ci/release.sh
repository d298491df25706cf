#!/usr/bin/env bash
# Makes a release of the last commit in build/release-VERSION/: the header and the extensions, the program
# and its wheel for machines like this one, both with the header compiled (llmbench-VERSION-linux-ARCH.tar.gz),
# a source archive, ports for vcpkg and Conan that name it, and SHA256SUMS.
#   ci/release.sh [--no-tests] [--arm64] [URL]     URL: where people will find these files, as README.md
#                                                  has it in RELEASE=; default: that folder
#   --arm64: the program, libllmbench.a and their wheel for Linux on Arm64, too, by Debian's cross compiler
# Refuses a tree with changes. Runs the README's two commands and every test before, unless told not to.
# The program is made from the archive and needs no library; it then runs in a root with nothing else in
# it, and judges a server outside of that. So does the wheel, in an empty environment.
set -euo pipefail
# shellcheck source=ci/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tests=1 arm64=
while [[ ${1:-} == --no-tests || ${1:-} == --arm64 ]]; do
    if [[ $1 == --arm64 ]]; then arm64=1; else tests=; fi
    shift
done
[[ $# -le 1 && ${1:-} != -* ]] || die "usage: ci/release.sh [--no-tests] [--arm64] [URL]"
changes=$(git status --porcelain)
[[ -z $changes ]] || die "the tree has changes, a release is of a commit: $(head -n 3 <<< "$changes" | paste -sd,)"
version=$(version)
if tagged=$(git rev-parse --quiet --verify "v$version^{commit}") && [[ $tagged != "$(git rev-parse HEAD)" ]]; then
    die "v$version is another commit: raise the version in src/api/version.hpp"
fi
url=${1:-file://$PWD/build/release-$version}
if [[ $url != file://* ]] && ! grep -q "^RELEASE=$url " README.md; then
    die "README.md says where to get a release: write RELEASE=$url there, and commit"
fi
need_compiler
need_python
for command in "tests/structure/check.sh" ${tests:+"ci/demo.sh" "ci/test.sh" "ci/test.sh --all"}; do
    say "$command"
    read -ra words <<< "$command"
    bash "${words[@]}" || die "'$command' failed: there is no release"
done

out=$PWD/build/release-$version
work=$(mktemp -d)
server=
trap 'kill $server 2> /dev/null || true; rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"
archive=llmbench-$version.tar.gz
git archive --format=tar.gz --prefix="llmbench-$version/" -o "$out/$archive" HEAD
tar -xzf "$out/$archive" -C "$work"
source=$work/llmbench-$version
cp "$source"/{LICENSE,llmbench.hpp,extensions/llmbench_*.hpp} "$out"
python3 "$source/ci/assemble.py" --all "$out/llmbench_all.hpp"

say "the program, from $archive"
program=llmbench-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
launcher=()
if has ccache; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
export CCACHE_BASEDIR=$work  # the folder has another name each time
cmake -S "$source" -B "$work/build" "${launcher[@]}" -DLLMBENCH_BUILD_PROGRAM=ON \
    -DLLMBENCH_PROGRAM_STATIC=ON -DLLMBENCH_WITH_TLS=ON -DLLMBENCH_BUILD_ARCHIVE=ON > /dev/null
cmake --build "$work/build" --parallel "$(cores)" --target llmbench_program llmbench_archive llmbench_main
strip -o "$out/$program" "$work/build/llmbench"
# What is linked into it asks for this: who wrote it, and the licences that Debian's files only name.
cat /usr/share/doc/{libcli11-dev,libtomlplusplus-dev,picojson-dev,libssl-dev,libc6-dev,libstdc++-*-dev}/copyright \
    /usr/share/common-licenses/{Apache-2.0,LGPL-2.1,GPL-3} > "$out/$program.licenses"

# Beside it what gates in C++ link.
# packed INSTALLED PROGRAM STRIP: what cmake --install has left, as the archive of a release
packed() {
    cp "$2" "$1/bin/llmbench"
    "$3" --strip-unneeded "$1"/lib/lib*.a
    cp "$out/$program.licenses" "$1/share/licenses/llmbench/of-what-is-linked.txt"  # the same libraries everywhere
    tar -C "$(dirname "$1")" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
        -czf "$out/$(basename "$1").tar.gz" "$(basename "$1")"
}
installed=$work/llmbench-$version-${program#llmbench-}
cmake --install "$work/build" --prefix "$installed" > "$work/installed" || die "$(tail -n 3 "$work/installed")"
packed "$installed" "$out/$program" strip
bash tests/packaging/prebuilt.sh "$installed"

say "the program alone, in a root that has nothing else"
root=$work/root
mkdir "$root"
cp "$out/$program" "$root/llmbench"
user=()
((EUID == 0)) || user=(--map-root-user)
in_root() { env -i "$(command -v unshare)" "${user[@]}" --root="$root" /llmbench "$@"; }
[[ $(in_root --version) == "llmbench $version" ]] || die "the program is not of $version"
: > "$work/server"  # the shell of the background may come to it late
"$work/build/llmbench" serve --slots 32 --port 0 > "$work/server" &
server=$!
for ((tries = 0; tries < 600; ++tries)); do
    at=$(sed -n 's/^listening on //p' "$work/server")
    if [[ $at ]] || ! kill -0 "$server" 2> /dev/null; then break; fi
    sleep 0.1
done
[[ $at ]] || die "the simulated server did not start within a minute"
# gates STATUS OBJECTIVE: with such a status it ends, and so say its reports
gates() {
    local status=0 report=$root/llmbench-report file says
    rm -rf "$report"
    in_root run --url "$at" --rate 20 --requests 100 --output-tokens 16 --slo "$2" || status=$?
    ((status == $1)) || die "llmbench ended with $status, not with $1"
    for file in report.html summary.md junit.xml metrics.txt records.jsonl; do
        [[ -s $report/$file ]] || die "it has left no $file"
    done
    for says in "\"version\": \"$version\"" "\"exit_code\": $1,"; do
        grep -qF "$says" "$report/result.json" || die "result.json does not say $says"
    done
}
gates 0 'p90(ttft) <= 5 s'
gates 1 'mean(tpot) <= 0.1 ms'

say "a wheel of it, installed into an empty environment; an image of it"
need_pytest
wheel=$(python3 ci/packaging/wheel.py --prefix "$installed" "$out/$program" "$out" "$out/$program.licenses")
bash tests/packaging/python.sh "$out/$program" "$wheel"
bash ci/packaging/image.sh "$out/$program" "$out/$program.licenses"
if [[ $arm64 ]]; then
    bash "$source/ci/portability.sh" arm64-program
    aarch64-linux-gnu-strip -o "$out/llmbench-linux-aarch64" "$source/build/arm64-program/llmbench"
    cp "$out/$program.licenses" "$out/llmbench-linux-aarch64.licenses"  # the same libraries
    for_arm=$work/llmbench-$version-linux-aarch64
    cp -r "$source/build/arm64-program/installed" "$for_arm"
    packed "$for_arm" "$out/llmbench-linux-aarch64" aarch64-linux-gnu-strip
    python3 ci/packaging/wheel.py --prefix "$for_arm" "$out/llmbench-linux-aarch64" "$out" "$out/llmbench-linux-aarch64.licenses"
fi

say "ports that name $url/$archive"
mkdir -p "$out/ports/vcpkg" "$out/ports/conan"
ports=$source/ci/packaging  # without what a build has left in the tree
cp "$ports"/vcpkg/{vcpkg.json,usage} "$out/ports/vcpkg"
{
    cat << PORT
vcpkg_download_distfile(ARCHIVE FILENAME "$archive" URLS "$url/$archive"
    SHA512 $(sha512sum < "$out/$archive" | cut -d ' ' -f 1))
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "\${ARCHIVE}")
PORT
    sed '1,/SOURCE_PATH/d' "$ports/vcpkg/portfile.cmake"
} > "$out/ports/vcpkg/portfile.cmake"
cp -r "$ports"/{conanfile.py,test_package} "$out/ports/conan"
cat > "$out/ports/conan/conandata.yml" << DATA
sources:
  "$version":
    url: "$url/$archive"
    sha256: "$(sha256sum < "$out/$archive" | cut -d ' ' -f 1)"
DATA
mkdir -p "$out/ports/homebrew"
sed -e "s#^  homepage .*#  homepage \"$url\"#; s#^  url .*#  url \"$url/$archive\"#" \
    -e "s#^  sha256 .*#  sha256 \"$(sha256sum < "$out/$archive" | cut -d ' ' -f 1)\"#" \
    "$ports/homebrew/llmbench.rb" > "$out/ports/homebrew/llmbench.rb"
if [[ $url == file://* ]]; then bash tests/packaging/run.sh "$out/ports"; fi

(cd "$out" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum > "$work/sums" && mv "$work/sums" SHA256SUMS)
say "the release is in $out"
cat "$out/SHA256SUMS"
