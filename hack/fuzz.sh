#!/usr/bin/env bash
# Runs every fuzz target for a while. FUZZTIME is the time per target,
# PACKAGES the packages to look in.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fuzztime=${FUZZTIME:-10s}
read -ra packages <<<"${PACKAGES:-./...}"

# Only packages with a target are compiled.
for dir in $(go list -f '{{.Dir}}' "${packages[@]}"); do
  targets=$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | awk '{print $2}' || true)
  for target in $targets; do
    echo "== ${dir#"$PWD"/} $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$dir"
  done
done
