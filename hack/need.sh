#!/usr/bin/env bash
# hack/need.sh COMMAND PACKAGE... makes sure that COMMAND exists. If it is missing, the
# script installs the Debian packages that contain it, as root or with sudo -n. If another
# process holds the lock of the package manager, the script waits up to LOCK_TIMEOUT
# seconds (default 300) for it.
set -euo pipefail

command=$1
shift
command -v "$command" >/dev/null && exit 0

if ! command -v apt-get >/dev/null; then
  echo "$command is missing and apt-get does not exist; install $* yourself" >&2
  exit 1
fi
root=()
if [[ $(id -u) -ne 0 ]]; then
  root=(sudo -n)
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# apt runs apt-get and repeats it while another process holds a lock. apt-get itself can
# wait for the lock of dpkg, but not for the lock of the package lists.
deadline=$((SECONDS + ${LOCK_TIMEOUT:-300}))
apt() {
  local said=""
  until "${root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >"$output" 2>&1; do
    if ! grep -qE 'Could not get lock|Unable to lock|Unable to acquire' "$output" || ((SECONDS >= deadline)); then
      return 1
    fi
    if [[ -z $said ]]; then
      echo "another process holds the lock of the package manager; waiting for it" >&2
      said=yes
    fi
    sleep 2
  done
}

echo "$command is missing: installing $*" >&2
if ! { apt update && apt install -y "$@"; }; then
  tail -n 3 "$output" >&2
  echo "installing $command failed; install it yourself (Debian: $*)" >&2
  exit 1
fi
