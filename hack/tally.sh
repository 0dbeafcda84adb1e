#!/usr/bin/env bash
# Runs the tests that attack the system or inject faults, in all modules of the repository, and
# prints one table of their results: hack/tally.sh attack|fault [--list]
# The complete output is in .cache/test-KIND.json. --list only lists the tests.
# TALLY_TIMEOUT bounds the run (default 40m).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kind=${1:-}
case $kind in
attack) tests=TestAttack ;;
fault) tests=TestFault ;;
*) echo "usage: hack/tally.sh attack|fault [--list]" >&2; exit 2 ;;
esac

# module FOLDER prints the folder of the module that a folder belongs to.
module() {
  local dir=$1
  until [[ -f $dir/go.mod ]]; do dir=$(dirname "$dir"); done
  echo "$dir"
}

# Only packages that have such a test: linking the others would take longer than the tests.
declare -A packages=()
wanted=()
while IFS=: read -r file declaration; do
  dir=$(dirname "$file") name=${declaration#func } name=${name%%(*}
  root=$(module "$dir")
  path=${dir#"$root"}
  [[ " ${packages[$root]:-} " == *" .$path "* ]] || packages[$root]+=" .$path"
  wanted+=("$(awk '$1 == "module" {print $2; exit}' "$root/go.mod")$path.$name")
done < <(grep -rE "^func $tests\w*\(" --include='*_test.go' --exclude-dir=.cache --exclude-dir=.git \
  --exclude-dir=node_modules . | sort -u)
if [[ ${2:-} == --list ]]; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi

log=$PWD/.cache/test-$kind.json
mkdir -p .cache
: >"$log"
# Attacks on the ensemble need three members, which only they start here.
[[ $kind == fault ]] || export FRESHET_TEST_CLUSTER=1
limit=${TALLY_TIMEOUT:-40m}
began=$SECONDS
run() {
  for root in "${!packages[@]}"; do
    # shellcheck disable=SC2086 # one word per package
    FRESHET_LONG=1 go -C "$root" test -count=1 -json -timeout 20m -run "^$tests" ${packages[$root]} >>"$log" 2>&1 || true
  done
}
export -f run
# The events tell which tests failed; an interrupted run has tests without a result.
timeout --kill-after=30s "$limit" bash -c "$(declare -p packages log tests); run" || echo "stopped after $limit" >&2
result=0
go run ./hack/tally "$kind" "${wanted[@]}" <"$log" || result=$?
echo "took $(((SECONDS - began) / 60)) min $(((SECONDS - began) % 60)) s; the complete output is in ${log#"$PWD"/}"
exit "$result"
