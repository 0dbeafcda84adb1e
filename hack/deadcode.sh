#!/usr/bin/env bash
# Fails when a function can be reached neither from a command nor from a test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dead=$(.cache/bin/deadcode -test -filter '^freshet/(cmd|internal)' ./...)
if [[ -n $dead ]]; then
  echo "functions that nothing reaches:" >&2
  echo "$dead" >&2
  exit 1
fi
