#!/usr/bin/env bash
# Sets the module path of the Go client everywhere: in go.mod files, imports, pages and the
# examples. Run it to publish the client under another path.
#
#   hack/client-path.sh [NEW.PATH/client]
#
# Without an argument it keeps the path of client/go.mod and only converts imports of
# freshet/client, the path from before the client was a module of its own. So it converts
# a branch that is older than the module.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

current=$(sed -n 's/^module //p' client/go.mod)
new=${1:-$current}
if [[ ! $new =~ ^[a-z0-9-]+(\.[a-z0-9-]+)+(/[a-z0-9._-]+)*/client$ ]]; then
  echo "usage: hack/client-path.sh NEW.PATH/client; the first part needs a dot, the last one is client" >&2
  exit 2
fi

# replace OLD changes OLD to the new path in every tracked file with text, except in the
# changelog and design decisions, which describe the past, and in this script. What follows
# the path must not continue its last part.
replace() {
  local old=${1//./\\.} files
  [[ $1 == "$new" ]] && return
  mapfile -t files < <(git grep -lIE "(^|[^A-Za-z0-9./-])$old([^A-Za-z0-9-]|\$)" -- . \
    ':!CHANGELOG.md' ':!docs/adr' ':!hack/client-path.sh')
  [[ ${#files[@]} -eq 0 ]] && return
  perl -pi -e "s{(?<![A-Za-z0-9./-])\Q$1\E(?![A-Za-z0-9-])}{$new}g" "${files[@]}"
  # The new path may sort differently among the imports.
  mapfile -t files < <(printf '%s\n' "${files[@]}" | grep '\.go$' || true)
  [[ ${#files[@]} -eq 0 ]] || gofmt -w "${files[@]}"
}

replace freshet/client
replace "$current"
