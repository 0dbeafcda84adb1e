#!/usr/bin/env bash
# Runs the prose linter over Markdown pages, and over the comments and messages of Go and
# JavaScript files: over those given as arguments, or over all files of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

extracted=$(mktemp -d)
trap 'rm -rf "$extracted"' EXIT
go run ./hack/prose "$extracted" "$@"
if [[ $# -gt 0 ]]; then
  mapfile -t pages < <(printf '%s\n' "$@" | grep '\.md$' || true)
else
  mapfile -t pages < <(git ls-files '*.md')
fi
if ! found=$(.cache/bin/vale --config .vale.ini --output line "$extracted" "${pages[@]}"); then
  printf '%s\n' "$found" | sed -e "s|$extracted/||" -e 's|\.txt:|:|'
  exit 1
fi
