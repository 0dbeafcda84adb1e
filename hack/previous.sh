#!/usr/bin/env bash
# Builds the previous version from its commit, if it is not built yet, and prints the path of the binary:
#   hack/previous.sh    builds .cache/bin/freshet-VERSION
# hack/previous-version has the version and the commit. The clone needs that commit (git fetch --unshallow).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -r version commit < <(grep -v '^#' hack/previous-version)
binary=$PWD/.cache/bin/freshet-$version-${commit:0:12}
if [ ! -x "$binary" ]; then
  if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
    echo "commit $commit of version $version is not in this clone; fetch it with: git fetch --unshallow" >&2
    exit 1
  fi
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  git archive "$commit" | tar -x -C "$work"
  mkdir -p .cache/bin
  package=freshet/internal/base/version
  CGO_ENABLED=0 go -C "$work" build -o "$binary" \
    -ldflags "-X $package.version=$version -X $package.commit=$commit" ./cmd/freshet >&2
fi
echo "$binary"
