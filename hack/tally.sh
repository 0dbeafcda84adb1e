#!/usr/bin/env bash
# Runs the tests that attack the system or inject faults, and prints one table of their
# results: hack/tally.sh attack|fault
# The complete output is in .cache/test-KIND.log.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kind=$1
case $kind in
attack) tests='^TestAttack' head='ATTACK|ATTEMPTS|SUCCESSES' ;;
fault) tests='^TestFault' head='FAULT|INJECTED|CHECKED|LOST|FOREIGN|WRONG|RECOVERY' ;;
*) echo "usage: hack/tally.sh attack|fault" >&2; exit 2 ;;
esac

# Only packages that have such a test: linking the others would take longer than the
# tests. Separate modules (the console, clients) have their own make targets.
packages=$(grep -rlE "^func ${tests#^}" --include='*_test.go' client internal test bench | xargs -n1 dirname | sort -u |
  while read -r dir; do [[ -f $dir/go.mod ]] || echo "./$dir"; done)
log=.cache/test-$kind.log
mkdir -p .cache
result=0
# shellcheck disable=SC2086 # one word per package
FRESHET_LONG=1 go test -count=1 -v -timeout 20m -run "$tests" $packages >"$log" 2>&1 || result=$?

{
  echo "$head"
  sed -nE "s/^.*tally $kind \| (.*)$/\1/p" "$log" | sed 's/ *| */|/g'
} | awk -F'|' '
  { for (i = 1; i <= NF; i++) { cell[NR, i] = $i; if (length($i) > width[i]) width[i] = length($i); if (NR > 1 && i > 1) sum[i] += $i }; n = NF }
  END {
    for (row = 1; row <= NR; row++) { for (i = 1; i <= n; i++) printf(i == 1 ? "%-*s" : "  %*s", width[i], cell[row, i]); print "" }
    printf "%-*s", width[1], "TOTAL"; for (i = 2; i <= n && i <= 6; i++) printf "  %*d", width[i], sum[i]; print ""
  }'
grep -E '^\s*--- (SKIP|FAIL)' "$log" || true
grep -E 'NOT TESTED' "$log" || true
if [ "$result" != 0 ]; then
  echo "some tests failed; the complete output is in $log" >&2
  exit 1
fi
