# Prints the output of the engine's benchmarks as the tables of
# docs/performance.md. A line is: name, count, then pairs of value and unit.
/^Benchmark/ && NF > 3 {
  name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
  if (!(name in seen)) { order[++n] = name; seen[name] = 1 }
  for (i = 3; i < NF; i += 2) value[name, $(i + 1)] = $i
}

# number formats a number with three digits, or as an integer with thousands separators.
function number(x) {
  if (x == "") return ""
  if (x < 100) return sprintf("%.3g", x)
  x = sprintf("%d", x + 0.5)
  while (match(x, /[0-9][0-9][0-9][0-9](,|$)/)) x = substr(x, 1, RSTART) "," substr(x, RSTART + 1)
  return x
}

function head(title, columns,    k, j, row) {
  print "\n" title "\n"
  k = split(columns, column, "|")
  row = "|"; for (j = 1; j <= k; j++) row = row " " column[j] " |"; print row
  row = "|"; for (j = 1; j <= k; j++) row = row "---|"; print row
}

# table prints the benchmarks whose names match, with one column for each unit.
function table(title, names, units,    k, i, j, u, row) {
  k = split(units, u, " ")
  gsub(" ", "|", units)
  head(title, "benchmark|" units)
  for (i = 1; i <= n; i++) if (order[i] ~ names) {
    row = "| " order[i] " |"
    for (j = 1; j <= k; j++) row = row " " number(value[order[i], u[j]]) " |"
    print row
  }
}

function cell(name) {
  if (!(name in seen)) return ""
  return number(value[name, "op/s"]) " /s, " number(value[name, "p50-µs"] / 1000) " ms"
}

# appends prints appends next to writes to bare Pebble, one row for each load.
function appends(    i, load, row) {
  head("### Append", "load|1 topic|1,000 topics|100,000 topics|bare Pebble")
  for (i = 1; i <= n; i++) if (order[i] ~ /^BareSet\//) {
    load = order[i]; sub(/^BareSet\//, "", load)
    row = "| " load " | " cell("Append/" load "/topics=1") " | " cell("Append/" load "/topics=1000")
    print row " | " cell("Append/" load "/topics=100000") " | " cell(order[i]) " |"
  }
}

END {
  table("Disk", "^Sync$", "op/s p50-µs p99-µs")
  table("### Against bare Pebble", "^AgainstBare/", "bare/s append/s receive+ack/s append-%-of-bare receive+ack-%-of-append bare-cpu-µs append-cpu-µs receive+ack-cpu-µs")
  appends()
  table("### Receive, acknowledge, journals", "^(ReceiveAck|Pipeline|JournalAppend)/", "op/s p50-µs p99-µs allocs/op")
  table("### Opening", "^(Open|Recover)/", "s/open heap-MB")
  table("### Memory", "^Memory$", "B/topic B/topic-written B/subscription B/subscription-leasing B/idle-topic")
  table("Leases", "^Leases$", "B/lease")
  table("### Write amplification", "^WriteAmplification", "amp-log amp-flush amp-compact amp space op/s")
}
