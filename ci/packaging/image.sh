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
echo "checked without docker: llmbench:$version"
