#!/usr/bin/env bash
# Runs the engine's benchmarks and then prints them as the tables of
# docs/performance.md. The raw output, fit for benchstat, is kept in the file
# given as the first argument.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

raw=${1:?usage: $0 FILE}
mkdir -p "$(dirname "$raw")"
go test -run '^$' -bench . -benchmem -timeout 60m ./internal/engine/... | tee "$raw"

echo
echo "== tables for docs/performance.md"
echo
printf 'Machine: %s cores (%s), %s MB of memory, %s, load %s.\n' "$(nproc)" \
  "$(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo)" \
  "$(awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo)" \
  "$(df --output=fstype "${TMPDIR:-/tmp}" | tail -1)" "$(cut -d' ' -f1 /proc/loadavg)"

awk '
  # A line is: name, count, then pairs of value and unit.
  /^Benchmark/ {
    name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
    if (!(name in seen)) { order[++n] = name; seen[name] = 1 }
    for (i = 3; i < NF; i += 2) value[name, $(i + 1)] = $i
  }
  function figure(x) {
    if (x == "") return "-"
    if (x >= 100) { x = sprintf("%d", x + 0.5) ; while (match(x, /[0-9][0-9][0-9][0-9]($|,)/)) x = substr(x, 1, RSTART) "," substr(x, RSTART + 1); return x }
    return sprintf("%.3g", x)
  }
  # table prints the benchmarks whose names match, a column for each unit.
  function table(match_, units,    u, k, i, j, row, any) {
    k = split(units, u, " ")
    for (i = 1; i <= n; i++) {
      if (order[i] !~ match_) continue
      if (!any++) {
        row = "\n| benchmark |"; for (j = 1; j <= k; j++) row = row " " u[j] " |"; print row
        row = "|---|"; for (j = 1; j <= k; j++) row = row "---|"; print row
      }
      row = "| " order[i] " |"; for (j = 1; j <= k; j++) row = row " " figure(value[order[i], u[j]]) " |"
      print row
    }
  }
  END {
    table("^Sync$", "p50-µs p99-µs")
    table("^AgainstBare/", "bare/s append/s receive+ack/s append-%-of-bare receive+ack-%-of-append bare-cpu-µs append-cpu-µs receive+ack-cpu-µs")
    table("^(BareSet|Append)/", "op/s p50-µs p99-µs B/op allocs/op")
    table("^(ReceiveAck|Pipeline|JournalAppend)/", "op/s p50-µs p99-µs B/op allocs/op")
    table("^(Open|Recover)/", "s/open heap-MB")
    table("^Memory$", "B/topic B/topic-written B/subscription B/subscription-leasing B/idle-topic")
    table("^Leases$", "B/lease")
    table("^WriteAmplification", "amp amp-log amp-flush amp-compact space op/s")
  }
' "$raw"
