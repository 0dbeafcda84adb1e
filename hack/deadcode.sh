#!/usr/bin/env bash
# Fails if a function cannot be reached from any command of this module, or is exported
# and used by tests only. Being used by a test does not justify code. Packages that
# exist for tests are excluded by name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for_tests='^internal/(.*/)?(enginetest|identitytest|loadtest|brokertest|kindstest|messagingtest|natstest|passkeytest|pebbletest|pipelinetest|signintest|validationtest)/'

found=$(
  .cache/bin/deadcode -filter '^freshet/(cmd|internal)' ./...
  go run ./hack/testonly ./cmd/... ./internal/...
)
unreachable=$(grep -vE "$for_tests" <<<"$found" || true)
if [[ -n $unreachable ]]; then
  echo "unreachable functions; remove them or call them:" >&2
  echo "$unreachable" >&2
  exit 1
fi
