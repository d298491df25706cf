# shellcheck shell=bash
# Shared by the scripts of this directory, which source it: what they need from the machine.
# On a machine where everything is there nothing is run and nothing is printed.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# version: as the header states it, 1.0.0 or 1.0.0-rc.1
version() {
    awk '/^#define LLMBENCH_VERSION_/ { gsub(/"/, "")
                                        v = v (v == "" || $3 == "" ? "" : $2 ~ /PRE$/ ? "-" : ".") $3 }
         END { print v }' llmbench.hpp
}

say() { printf '\n== %s\n' "$*"; }
die() { printf 'ci: %s\n' "$*" >&2; exit 1; }

has() { command -v "$1" > /dev/null 2>&1; }

# has_header FILE...: one of these can be included by g++
has_header() {
    local file
    for file in "$@"; do
        if printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$file" |
            g++ -E -x c++ - > /dev/null 2>&1; then return; fi
    done
    return 1
}

# what_would_be_installed COMMAND...: the packages that these would install, and nothing is
what_would_be_installed() {
    (
        only_ask=1 apt_log=''
        for command in "$@"; do "$command"; done
    ) 3>&1 > /dev/null 2>&1
}
# Where it is set nothing is installed: what would be is told, on a descriptor of its own.
only_ask=

# try_install PACKAGE...: Debian and Ubuntu, as root or through sudo; what apt said is in $apt_log
try_install() {
    if [[ $only_ask ]]; then
        printf '%s\n' "$@" >&3
        return
    fi
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
    has apt-get || die "please install these (there is no apt-get here to do it): $*"
    if ((EUID != 0)); then
        has sudo || die "please install these as root (there is no sudo here to do it): $*"
        apt=(sudo "${apt[@]}")
    fi
    say "installing $*"
    local get=("${apt[@]}" install -y --no-install-recommends "$@")
    # The package lists are fetched only where installing with those that are there does not work.
    apt_log=$("${get[@]}" 2>&1) || apt_log=$("${apt[@]}" update 2>&1 && "${get[@]}" 2>&1)
}

install() {
    if (($#)) && ! try_install "$@"; then
        tail -n 20 <<< "$apt_log" >&2
        die "apt-get could not install $*; what it said last stands above"
    fi
}

need_compiler() {
    local missing=()
    has g++ || missing+=(g++)
    has cmake || missing+=(cmake)
    has ninja || has make || missing+=(ninja-build)
    has_header asio.hpp || missing+=(libasio-dev)
    has_header doctest/doctest.h || missing+=(doctest-dev)
    has_header picojson.h picojson/picojson.h || missing+=(picojson-dev)
    has_header CLI/CLI.hpp || missing+=(libcli11-dev)
    has_header toml++/toml.h || missing+=(libtomlplusplus-dev)
    has_header openssl/ssl.h || missing+=(libssl-dev)
    install "${missing[@]}"
}

# need_python: for what is generated and checked
need_python() { has python3 || install python3; }

# need_clang: sets clang to a clang++ with its sanitizer runtimes. 19 is the newest of Debian 12,
# other releases have others; before 16 its UBSan cannot compile coroutines.
need_clang() {
    local version
    for version in 19 20 21 18 17 16; do
        clang=clang++-$version
        if has "$clang" && clang_links "$clang"; then return; fi
    done
    for version in 19 18 16; do
        clang=clang++-$version
        if try_install "clang-$version" "libclang-rt-$version-dev"; then return; fi
    done
    die "no clang 16 or newer could be installed; apt-get said: $(tail -n 1 <<< "$apt_log")"
}

# need_libcxx: clang's own standard library, for the test that the header compiles with it, which
# skips itself where there is no such package
need_libcxx() {
    if printf '#include <string>\n' | "$clang" -stdlib=libc++ -fsyntax-only -x c++ - 2> /dev/null
    then return; fi
    local version=${clang#clang++-}
    try_install "libc++-$version-dev" "libc++abi-$version-dev" ||
        say "no libc++ here: the header is not compiled with it"
}

# clang_links COMPILER: its sanitizer runtimes are installed, which is a package of its own
clang_links() {
    printf 'int main() {}\n' |
        "$1" -fsanitize=address,undefined -x c++ - -o /dev/null > /dev/null 2>&1
}

# configure DIRECTORY OPTION...: build/DIRECTORY, everything of ours but the fuzzers where OPTION says nothing
# else, with ninja and ccache where they are there
configure() {
    local directory=build/$1
    shift
    if has ninja && [[ ! -e $directory/CMakeCache.txt ]]; then set -- -G Ninja "$@"; fi
    if has ccache; then set -- -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "$@"; fi
    cmake -S . -B "$directory" -DLLMBENCH_BUILD_{TESTS,EXAMPLES,BENCH,PROGRAM}=ON "$@" > /dev/null
}

cores() { nproc 2> /dev/null || echo 2; }

# need_validators: what holds reports and templates against the rules of those who read them
need_validators() {
    local missing=()
    has shellcheck || missing+=(shellcheck)
    has curl || missing+=(curl)
    has xmllint || missing+=(libxml2-utils)
    has_header gtest/gtest.h || missing+=(libgtest-dev)
    python_has yaml || missing+=(python3-yaml)
    python_has jsonschema || missing+=(python3-jsonschema)
    install "${missing[@]}"
    take_debians_python yaml jsonschema
}

python_has() { python3 -c "import $1" 2> /dev/null; }

# take_debians_python MODULE...: the python3 of the path may be another one (pyenv, conda, a virtual
# environment), which does not see what was installed from Debian. Then Debian's own goes before it.
take_debians_python() {
    local module
    if [[ $only_ask ]]; then return; fi
    for module in "$@"; do
        python_has "$module" && continue
        mkdir -p build/debian
        ln -sf /usr/bin/python3 build/debian/python3
        PATH=$PWD/build/debian:$PATH
        python_has "$module" || die "python3 has no module '$module', though it was installed"
    done
}

# need_proxies: real servers for the tests to stand behind. A container starts no services; where one
# is started on installing, it is left alone and the tests use ports of their own.
need_proxies() {
    local missing=()
    has nginx || [[ -x /usr/sbin/nginx ]] || missing+=(nginx-light)
    has haproxy || [[ -x /usr/sbin/haproxy ]] || missing+=(haproxy)
    install "${missing[@]}"
}

# need_several: what starts several programs that send one load
need_several() {
    local missing=()
    has parallel || missing+=(parallel)
    has bzip2 || missing+=(bzip2)  # which parallel calls
    has pgrep || missing+=(procps)
    has mpicxx.openmpi || missing+=(libopenmpi-dev openmpi-bin)
    has mpicxx.mpich || missing+=(libmpich-dev mpich)
    install "${missing[@]}"
}

# need_node: for the report page in a browser, and for the schema of JUnit files
need_node() {
    local missing=()
    has node || missing+=(nodejs)
    has npm || missing+=(npm)
    install "${missing[@]}"
}

# need_browser: for the report page; its test skips itself where there is no such package
need_browser() {
    if has chromium || has chromium-browser || has google-chrome; then return; fi
    try_install chromium || say "no chromium here: the report page is not looked at in a browser"
}

# need_python_tools: to install Python packages, each server's beside the others'
need_python_tools() {
    local missing=()
    has python3 || missing+=(python3)
    has curl || missing+=(curl)
    python3 -c 'import ensurepip, venv' 2> /dev/null || missing+=(python3-venv)
    install "${missing[@]}"
}

# need_pytest: for the wheel in an empty environment, and the recipe beside it: tests/packaging/python.sh
need_pytest() {
    need_python_tools
    python_has pytest || /usr/bin/python3 -c 'import pytest' 2> /dev/null || install python3-pytest
}
