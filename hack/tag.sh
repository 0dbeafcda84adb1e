#!/usr/bin/env bash
# Creates the annotated tag vVERSION on the checked out commit. It pushes nothing.
# docs/reference/versions.md lists the steps of a release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(<VERSION)
refuse() {
  echo "tag v$version was not created: $*" >&2
  exit 1
}
[ -z "$(git status --porcelain)" ] || refuse "files differ from the commit; commit or remove them"
grep -q "^## \[$version\] - [0-9-]*$" CHANGELOG.md ||
  refuse "CHANGELOG.md has no heading '## [$version] - DATE'; rename the heading Unreleased"
read -r previous commit < <(grep -v '^#' hack/previous-version)
[ "$previous" != "$version" ] || refuse "hack/previous-version has this version; it must have the one before"
git merge-base --is-ancestor "$commit" HEAD ||
  refuse "commit $commit of version $previous in hack/previous-version is no ancestor of this one"
git tag --annotate --message "Freshet $version" "v$version"
echo "created tag v$version; publish it with: git push origin v$version"
