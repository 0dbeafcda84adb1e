#!/usr/bin/env bash
# Fails when a function cannot be reached from any command of this module, or is
# exported and used by tests only. Tests are no reason to keep code; packages that
# exist for tests are left out by name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for_tests='^internal/(.*/)?(enginetest|identitytest|loadtest|brokertest|kindstest|messagingtest|natstest|passkeytest|pebbletest|signintest|validationtest)/'

found=$(
  .cache/bin/deadcode -filter '^freshet/(cmd|internal)' ./...
  go run ./hack/testonly ./cmd/... ./internal/...
)
unreachable=$(grep -vE "$for_tests" <<<"$found" || true)
if [[ -n $unreachable ]]; then
  echo "functions that no command reaches; remove them, or call them:" >&2
  echo "$unreachable" >&2
  exit 1
fi
