#!/usr/bin/env bash
# Runs the engine's benchmarks and prints them as the tables of docs/performance.md.
# The raw output, which benchstat can read, is written to the file named by the first
# argument.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

raw=${1:?usage: $0 FILE}
mkdir -p "$(dirname "$raw")"
go test -run '^$' -bench . -benchmem -timeout 60m ./internal/storage/... ./internal/ensemble/... | tee "$raw"

echo
echo "== tables for docs/performance.md"
echo
printf 'Machine: %s cores (%s), %s MB of memory, %s, load %s.\n' "$(nproc)" \
  "$(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo)" \
  "$(awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo)" \
  "$(df --output=fstype "${TMPDIR:-/tmp}" | tail -1)" "$(cut -d' ' -f1 /proc/loadavg)"

awk -f hack/bench-engine.awk "$raw"
