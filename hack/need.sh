#!/usr/bin/env bash
# hack/need.sh COMMAND PACKAGE... makes sure COMMAND is there, installing the
# Debian packages that bring it when it is missing and we are allowed to.
set -euo pipefail

command=$1
shift
command -v "$command" >/dev/null && exit 0

if ! command -v apt-get >/dev/null; then
  echo "$command is missing, and there is no apt-get to install $* with" >&2
  exit 1
fi
root=()
if [[ $(id -u) -ne 0 ]]; then
  root=(sudo -n)
fi
echo "$command is missing: installing $*" >&2
if ! { "${root[@]}" apt-get update -qq && "${root[@]}" apt-get install -y -qq "$@"; } >/dev/null 2>&1; then
  echo "$command could not be installed; do it by hand (Debian: $*)" >&2
  exit 1
fi
