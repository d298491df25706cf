#!/usr/bin/env bash
# The image llmbench:VERSION of a static program, by the Dockerfile beside this: with docker where its daemon
# answers; else its layers are put into a folder, and the program runs with that as its root.
#   ci/packaging/image.sh PROGRAM [LICENCES]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:?usage: image.sh PROGRAM [LICENCES]}") licences=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { printf 'image.sh: %s\n' "$*" >&2; exit 1; }

context=$work/context
mkdir -p "$context/licenses"
cp "$program" "$context/llmbench"
cp "$here/../../LICENSE" ${licences:+"$licences"} "$context/licenses"
cp /etc/ssl/certs/ca-certificates.crt "$context" 2> /dev/null || : > "$context/ca-certificates.crt"
version=$("$program" --version)
version=${version#llmbench }

if docker info > /dev/null 2>&1; then
    docker build --quiet -t "llmbench:$version" -f "$here/Dockerfile" "$context" > /dev/null
    [[ $(docker run --rm "llmbench:$version" --version) == "llmbench $version" ]] || die "the image does not run"
    echo "built: llmbench:$version"
    exit
fi
# As the Dockerfile says: what is copied, the variables, the folder and the program that it begins.
root=$work/root variables=() entry='' folder=/
mkdir "$root"
while read -r word rest; do
    case $word in
        '' | '#'*) ;;
        FROM) [[ $rest == scratch ]] || die "only FROM scratch can be checked without docker" ;;
        COPY)
            read -r from to <<< "$rest"
            mkdir -p "$root$(dirname "$to")"
            cp -r "$context/$from" "$root$to"
            ;;
        ENV) read -ra variables <<< "$rest" ;;
        WORKDIR) folder=$rest && mkdir -p "$root$folder" ;;
        ENTRYPOINT) entry=$(sed -n 's/^\["\([^"]*\)"\]$/\1/p' <<< "$rest") ;;
        *) die "$word of the Dockerfile is not known here" ;;
    esac
done < "$here/Dockerfile"
user=()
((EUID == 0)) || user=(--map-root-user)
in_image() { env -i "${variables[@]}" "$(command -v unshare)" "${user[@]}" --root="$root" --wd="$folder" "$entry" "$@"; }
[[ $(in_image --version) == "llmbench $version" ]] || die "the program does not run alone: is it static?"
printf 'url = "http://127.0.0.1:1"\n[chat]\nslo = "p90(ttft) <= 1 s"\n' > "$root$folder/gates.toml"
in_image explain gates.toml > "$work/told" || die "it does not explain a file of gates: $(< "$work/told")"
# Its exit codes, by which a platform goes on, goes back or waits.
in_image serve --slots 32 --port 0 > "$work/served" &
server=$!
trap 'kill $server 2> /dev/null || true; rm -rf "$work"' EXIT
at=''
for ((tries = 0; tries < 600; ++tries)); do
    at=$(sed -n 's/^listening on //p' "$work/served")
    if [[ $at ]] || ! kill -0 "$server" 2> /dev/null; then break; fi
    sleep 0.1
done
# ends STATUS ARGUMENT...
ends() {
    local status=0
    in_image "${@:2}" > "$work/told" 2>&1 || status=$?
    ((status == $1)) || { cat "$work/told"; die "${*:2} ends with $status, not with $1"; }
}
gate=(run --url "$at" --users 2 --requests 30 --output-tokens 4 --report report)
ends 0 "${gate[@]}" --slo 'mean(e2e) <= 20 s'
ends 0 judge report --inconclusive fail
ends 1 "${gate[@]}" --slo 'mean(e2e) <= 1 us'
ends 1 judge report --inconclusive fail
ends 2 "${gate[@]}" --slo 'mean(e2e) <= 1'
ends 3 run --url http://127.0.0.1:1 --slo 'mean(e2e) <= 1 s'
echo "checked without docker: llmbench:$version"
