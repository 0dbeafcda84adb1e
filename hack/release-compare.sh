#!/usr/bin/env bash
# Builds the release of the checked out commit twice, in clones with different paths, and fails if a byte differs:
#   hack/release-compare.sh [--only TARGET,TARGET]
# Changes that are not committed are not part of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for clone in "$work/first" "$work/second/longer/path"; do
  git clone --quiet --no-hardlinks . "$clone"
  make -C "$clone" release RELEASE="$*"
done
diff -r "$work/first/dist" "$work/second/longer/path/dist"
echo "both builds are equal:"
cat "$work/first/dist/SHA256SUMS"
