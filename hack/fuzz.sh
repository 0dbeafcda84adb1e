#!/usr/bin/env bash
# Runs every fuzz target. FUZZTIME is the time per target, PACKAGES the packages to
# search for targets.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fuzztime=${FUZZTIME:-10s}
read -ra packages <<<"${PACKAGES:-./...}"

# Compile only packages that have a fuzz target.
for dir in $(go list -f '{{.Dir}}' "${packages[@]}"); do
  targets=$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | awk '{print $2}' || true)
  for target in $targets; do
    echo "== ${dir#"$PWD"/} $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$dir"
  done
done
