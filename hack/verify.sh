#!/usr/bin/env bash
# Regenerates the checked-in code and fails if any file changes. It compares with the
# working tree, so it can be run before a commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

generated() {
  echo deploy/helm/freshet/files/alerts.yml
  echo docs/reference/helm-values.md
  find api internal docs/reference/cli -name 'zz_generated.*' -o -path 'api/generated/*' -type f -o -name 'generated.p*' -o -path 'docs/reference/cli/*.md' | LC_ALL=C sort
}

before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
generated | tar -cf - -T - | tar -xf - -C "$before"

hack/update-codegen.sh
rm -f docs/reference/cli/*.md
bin/freshet docs markdown docs/reference/cli

if ! command -v protoc >/dev/null; then
  echo "verify: protobuf code was SKIPPED: protoc is missing and could not be installed" >&2
fi

status=0
for file in $({ generated; (cd "$before" && generated 2>/dev/null); } | LC_ALL=C sort -u); do
  if ! diff -u "$before/$file" "$file" 2>&1 | head -40; then
    status=1
  fi
done
if [[ $status -ne 0 ]]; then
  echo "verify: generated code was out of date and has been regenerated; commit it" >&2
fi
exit $status
