#!/usr/bin/env bash
# Checks the files that changed since a commit, including uncommitted and new files:
# formatting, linters, prose, and the unit tests of the changed packages and of the
# packages that import them. `make test` is the whole suite.
#
#   hack/check.sh [COMMIT]
#
# The default commit is the one where the branch left origin/main or main. On main itself
# it is the commit before the last one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=.cache/bin

# base prints the commit to compare with.
base() {
  local branch commit
  for branch in origin/main main; do
    if commit=$(git merge-base HEAD "$branch" 2>/dev/null) && [[ $commit != $(git rev-parse HEAD) ]]; then
      echo "$commit"
      return
    fi
  done
  git rev-parse --verify --quiet HEAD~1 || git rev-parse HEAD
}

section() { printf '== %s (after %d s)\n' "$*" "$SECONDS"; }

since=${1:-$(base)}
echo "changes since $(git log -1 --format='%h %s' "$since")"
mapfile -t files < <({
  git diff --name-only --diff-filter=d "$since"
  git ls-files --others --exclude-standard
} | sort -u)
mapfile -t go_files < <(printf '%s\n' "${files[@]}" | grep '\.go$' || true)
mapfile -t prose < <(printf '%s\n' "${files[@]}" | grep -E '\.(go|js|md)$' || true)

if [[ ${#prose[@]} -gt 0 ]]; then
  section "prose: ${#prose[@]} files"
  hack/prose/run.sh "${prose[@]}"
fi
if [[ ${#go_files[@]} -eq 0 ]]; then
  echo "no Go file has changed; ${#files[@]} other files have"
  exit 0
fi

section "format: ${#go_files[@]} files"
unformatted=$("$bin/golangci-lint" fmt --diff "${go_files[@]}")
if [[ -n $unformatted ]]; then
  printf '%s\nrun make format\n' "$unformatted" >&2
  exit 1
fi

# Packages with a changed file, of the main module and of the client. Other modules of tests are left out.
client=$(sed -n 's/^module //p' client/go.mod)
mapfile -t changed < <({
  printf '%s\n' "${go_files[@]}" | xargs -n1 dirname | sort -u | sed 's|^|./|' |
    xargs go list -e -f '{{with .Module}}{{if eq .Path "freshet"}}{{$.ImportPath}}{{end}}{{end}}' 2>/dev/null || true
  printf '%s\n' "${go_files[@]}" | xargs -n1 dirname | sort -u | sed -nE "s#^client(/|\$)#$client\1#p"
} | sed '/^$/d')
# The packages with unit tests that are changed or import a changed package. Packages
# below test/ and bench/ start the binary, so they belong to make test.
mapfile -t tested < <(go list -e \
  -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' \
  ./api/... "$client/..." ./cmd/... ./console/... ./internal/... |
  CHANGED="${changed[*]}" awk 'BEGIN { n = split(ENVIRON["CHANGED"], list, " "); for (i = 1; i <= n; i++) changed[list[i]] = 1
               print "freshet/internal/archtest" }
       $1 == "freshet/internal/archtest" { next }
       { for (i = 1; i <= NF; i++) if ($i in changed) { print $1; next } }')

if [[ ${#changed[@]} -gt 0 ]]; then
  section "lint: ${#changed[@]} packages"
  mapfile -t ours < <(printf '%s\n' "${changed[@]}" | sed -nE 's#^freshet(/|$)#.\1#p')
  [[ ${#ours[@]} -eq 0 ]] || "$bin/golangci-lint" run --allow-parallel-runners "${ours[@]}"
  # The linters work on one module at a time.
  mapfile -t theirs < <(printf '%s\n' "${changed[@]}" | sed -nE "s#^$client(/|\$)#.\1#p")
  [[ ${#theirs[@]} -eq 0 ]] || (cd client && "../$bin/golangci-lint" run --allow-parallel-runners "${theirs[@]}")
fi
section "unit tests: ${#tested[@]} packages, the changed ones and those that import them"
go test -short "${tested[@]}"
section "done"
