#!/usr/bin/env bash
# Measures an empty server on this machine: time from exec to ready, and memory
# once idle. Then runs the surfaces' benchmarks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

data=$(mktemp -d)
server=
finish() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$data" "$data.log"
}
trap finish EXIT

now() { date +%s%3N; }

# start LABEL prints how long a server takes until /readyz is 200.
start() {
  local began
  began=$(now)
  bin/freshet serve --data-dir "$data" --http 127.0.0.1:18080 --https off --ops off >"$data.log" 2>&1 &
  server=$!
  until bin/freshet health --server http://127.0.0.1:18080 --timeout 1s >/dev/null 2>&1; do
    if ! kill -0 "$server" 2>/dev/null; then
      echo "the server did not start:" >&2
      cat "$data.log" >&2
      exit 1
    fi
  done
  printf '%-36s %6d ms\n' "$1" $(($(now) - began))
}

start "start-up to ready, first start"
sleep 5 # let start-up garbage be collected before memory is read
printf '%-36s %6d MB\n' "resident memory, idle" $(($(awk '/^VmRSS/ {print $2}' "/proc/$server/status") / 1024))
kill "$server"
began=$(now)
wait "$server" || true
server=
printf '%-36s %6d ms\n' "stop" $(($(now) - began))
start "start-up to ready, restart"

# Ratios are of a bare handler under the same client in the same run.
echo
go test -run '^$' -bench . -timeout 60m ./internal/messageapi ./internal/registryapi
if [[ -d bench ]]; then
  FRESHET_BIN=$PWD/bin/freshet go test -run '^$' -bench . -timeout 60m ./bench/...
fi
