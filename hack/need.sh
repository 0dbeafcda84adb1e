#!/usr/bin/env bash
# hack/need.sh COMMAND PACKAGE... makes sure that COMMAND exists. If it is missing, the
# script installs the Debian packages that contain it, as root or with sudo -n.
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
echo "$command is missing: installing $*" >&2
if ! { "${root[@]}" apt-get update -qq && "${root[@]}" apt-get install -y -qq "$@"; } >/dev/null 2>&1; then
  echo "installing $command failed; install it yourself (Debian: $*)" >&2
  exit 1
fi
