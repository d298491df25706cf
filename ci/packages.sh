#!/usr/bin/env bash
# The Conan recipe, by Conan itself: makes the package from an archive of the last commit, or by the port
# beside a release's archive, installs it into a home of its own, and builds and runs the project of
# ci/packaging/test_package with it.
#   ci/packages.sh [ARCHIVE]       ARCHIVE: a source archive that ci/release.sh made
# Needs PyPI for Conan, and Debian for asio, picojson and doctest, which no registry is asked for.
# vcpkg's own program is not to be had from a package registry: tests/packaging stands for it.
set -euo pipefail
# shellcheck source=ci/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_compiler
need_python_tools
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=${1:-$work/llmbench.tar.gz}
if [[ ! ${1:-} ]]; then git archive --format=tar.gz --prefix=llmbench/ -o "$archive" HEAD; fi
tar -xzf "$archive" -C "$work"
tree=$(find "$work" -mindepth 1 -maxdepth 1 -type d -name 'llmbench*')

python3 -m venv "$work/conan"
"$work/conan/bin/pip" install --quiet conan
conan=$work/conan/bin/conan
export CONAN_HOME=$work/home
"$conan" profile detect > /dev/null
profile=$CONAN_HOME/profiles/default
sed -i 's/^compiler.cppstd=.*/compiler.cppstd=20/' "$profile"
# Debian's, in versions that the recipe takes: asio's own is older than Conan Center's oldest.
printf '[platform_requires]\nasio/1.28.1\ndoctest/2.4.9\npicojson/1.3.0\n' >> "$profile"
recipe=$tree/ci/packaging port=$(dirname "$archive")/ports/conan
if [[ -e $port ]]; then
    recipe=$work/port  # what is built stands beside it
    cp -r "$port" "$recipe"
fi
"$conan" create "$recipe"
say "the package was made from ${1:-the last commit}, and a project that uses it has passed its gate"
