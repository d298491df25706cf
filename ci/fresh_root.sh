#!/usr/bin/env bash
# Proves the README's promise: on a bare Debian 12 with nothing but git, the two commands work.
#   ci/fresh_root.sh [--where-possible] [COMMAND...]     default: bash ci/demo.sh, then bash ci/test.sh
# Makes a minimal Debian root in a temporary directory, clones the last commit into it and runs each
# command there. Needs root and debootstrap; the root takes its packages from where this machine
# does; --where-possible says that nothing was shown where that cannot be, and ends with 0. KEEP=1
# leaves the root behind for a look.
set -euo pipefail
# shellcheck source=ci/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

option=()
cannot() { die "$1"; }
if [[ ${1:-} == --where-possible ]]; then
    option=("$1")
    shift
    cannot() { say "NOT SHOWN that the two commands work on a bare Debian: $1"; exit 0; }
elif [[ ${1:-} == --* ]]; then
    die "usage: ci/fresh_root.sh [--where-possible] [COMMAND...]"
fi
commands=("$@")
if ((${#commands[@]} == 0)); then commands=("bash ci/demo.sh" "bash ci/test.sh"); fi
((EUID == 0)) || cannot "a new root can only be made by root"
has debootstrap || (install debootstrap) || cannot "there is no debootstrap"
unshare --mount --propagation private true 2> /dev/null ||
    cannot "nothing can be mounted here (a container without CAP_SYS_ADMIN)"
suite=bookworm

# A mount namespace of our own: whatever is mounted below is gone when this script ends.
if [[ -z ${LLMBENCH_IN_NAMESPACE:-} ]]; then
    LLMBENCH_IN_NAMESPACE=1 exec unshare --mount --propagation private -- \
        bash ci/fresh_root.sh "${option[@]}" "${commands[@]}"
fi

base=$(mktemp -d)
root=$base/root
if [[ -z ${KEEP:-} ]]; then
    # The mounts go first, so that nothing below the machine's own /dev is ever removed.
    trap 'umount -l -R "$root"/{proc,dev} 2> /dev/null || true
          mountpoint -q "$root/dev" || rm -rf --one-file-system "$base"' EXIT
else
    echo "the root is $root"
fi

# The mirror of the machine's own sources, in the one-line or in the deb822 format.
mirror=$(sed -nE "s/^deb (\[[^]]*\] )?([^ ]+) $suite .*/\2/p" /etc/apt/sources.list \
    /etc/apt/sources.list.d/*.list 2> /dev/null | head -n 1 || true)
if [[ -z $mirror ]]; then
    mirror=$(awk -v suite="$suite" '
        function flush() { if (uri && found) { print uri; exit }; uri = ""; found = 0 }
        /^URIs:/ { uri = $2 }
        /^Suites:/ { for (i = 2; i <= NF; i++) if ($i == suite) found = 1 }
        /^[ \t]*$/ { flush() }
        END { flush() }' /etc/apt/sources.list.d/*.sources 2> /dev/null | head -n 1)
fi
[[ $mirror ]] || cannot "the machine's apt sources name no mirror of $suite"

say "making a minimal Debian ($suite) in $root"
debootstrap --variant=minbase --include=git,ca-certificates "$suite" "$root" "$mirror" \
    > "$base/debootstrap.log" 2>&1 ||
    { tail "$base/debootstrap.log" >&2; die "debootstrap failed"; }

# The machine's way to its packages: sources, keys, and of the apt settings only those for fetching.
rm -f "$root/etc/apt/sources.list"
for file in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/trusted.gpg.d \
    /etc/apt/keyrings /usr/share/keyrings; do
    if [[ -e $file ]]; then cp -a "$file" "$root$(dirname "$file")/"; fi
done
for file in /etc/apt/apt.conf.d/*; do
    if grep -q '^ *Acquire' "$file"; then cp "$file" "$root/etc/apt/apt.conf.d/"; fi
done
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
# Proxies and private certificate authorities come by environment variables, npm's registry too.
environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
    LANG=C.UTF-8 TERM="${TERM:-dumb}")
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    if [[ -n ${!name:-} ]]; then environment+=("$name=${!name}"); fi
done
for name in SSL_CERT_FILE NODE_EXTRA_CA_CERTS PIP_CERT; do
    if [[ -f ${!name:-} ]]; then
        mkdir -p "$root$(dirname "${!name}")"
        cp -L "${!name}" "$root${!name}"
        environment+=("$name=${!name}")
    fi
done
if has npm; then
    environment+=("npm_config_registry=$(npm config get registry 2> /dev/null)")
fi

git clone --quiet --no-local "$PWD" "$root/root/llmbench"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mountpoint -q "$root/dev/shm" || mount -t tmpfs tmpfs "$root/dev/shm"

for command in "${commands[@]}"; do
    say "in the fresh root: $command"
    begin=$SECONDS
    chroot "$root" env -i "${environment[@]}" bash -c "cd /root/llmbench && $command" < /dev/null ||
        die "'$command' failed in the fresh root after $((SECONDS - begin)) s"
    say "'$command' worked in the fresh root, $((SECONDS - begin)) s"
done
