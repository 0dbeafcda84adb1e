#!/usr/bin/env bash
# Runs the prose linter over the Markdown pages, and over the comments and messages of the source files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

extracted=$(mktemp -d)
trap 'rm -rf "$extracted"' EXIT
go run ./hack/prose "$extracted"
mapfile -t pages < <(git ls-files '*.md')
if ! found=$(.cache/bin/vale --config .vale.ini --output line "$extracted" "${pages[@]}"); then
  printf '%s\n' "$found" | sed -e "s|$extracted/||" -e 's|\.txt:|:|'
  exit 1
fi
