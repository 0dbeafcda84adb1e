#!/usr/bin/env bash
# Creates a small data directory with the binary of this tree and packs it. The tests of
# all later versions open it:
#   hack/fixture.sh NAME    writes test/e2e/faults/testdata/NAME.tar.gz
# Add one for every release that changes a format. Never regenerate an existing one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=${1:?usage: hack/fixture.sh NAME}
binary=${FRESHET_BIN:-bin/freshet}
work=$(mktemp -d)
data=$work/data
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT

port=${FRESHET_FIXTURE_PORT:-18799}
url=http://127.0.0.1:$port
"$binary" serve --data-dir "$data" --http "127.0.0.1:$port" --https off --ops off --stream off --stream-tls off --log-level warn &
pid=$!
for _ in $(seq 300); do
  curl -sf "$url/readyz" >/dev/null && break
  sleep 0.2
done

as_admin() { curl -sSf -o /dev/null -H "Authorization: Bearer $(cat "$data/admin.token")" -H 'Content-Type: application/json' "$@"; }
topic=$url/admin/v2/persistent/public/default/kept
as_admin -X PUT "$topic"
as_admin -X PUT "$topic/subscription/reader"
for i in 0 1 2 3 4; do
  as_admin -X POST "$url/admin/rest/topics/v1/public/default/kept/message" --data-binary "\"message $i\""
done
as_admin -X POST "$url/subjects/kept/versions" --data '{"schema":"\"string\""}'
as_admin -X POST "$url/apis/cloud.vendor.io/v1alpha1/namespaces/default/serviceaccounts" \
  --data '{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"ServiceAccount","metadata":{"name":"kept"}}'

kill "$pid"
wait "$pid" || true
pid=
# Preallocated space would enlarge the archive and is not needed.
rm -f "$data/RESERVE" "$data"/etcd/member/wal/*.tmp
mkdir -p test/e2e/faults/testdata
tar -C "$data" -czf "test/e2e/faults/testdata/$name.tar.gz" .
ls -l "test/e2e/faults/testdata/$name.tar.gz"
