#!/usr/bin/env bash
# Prints the version of this tree, from the file VERSION (docs/reference/versions.md):
#   0.2.0               the commit has the tag v0.2.0, and no file differs from it
#   0.2.0-dev.g1a2b3c4  any other commit; ".dirty" is appended if a file differs from it
#   0.2.0-dev           not a git clone
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(<VERSION)
if ! commit=$(git rev-parse --short=12 HEAD 2>/dev/null); then
  echo "$version-dev"
  exit
fi
dirty=
[ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || dirty=.dirty
if [ -z "$dirty" ] && git tag --points-at HEAD | grep -qxF "v$version"; then
  echo "$version"
else
  echo "$version-dev.g$commit$dirty"
fi
