#!/usr/bin/env bash
# Says before a build that takes long that it does: on a new clone the compiler would
# say nothing for minutes. Says nothing when there is a binary, or when most of it is in the
# build cache.
set -euo pipefail

[ ! -e bin/freshet ] || exit 0
# A dry run; it fails when modules are missing, and nothing is fetched for it.
if steps=$(GOPROXY=off go build -n ./cmd/freshet 2>&1) && [ "$(grep -c '/compile ' <<<"$steps")" -lt 200 ]; then
	exit 0
fi
echo "Building freshet for the first time: 1,700 packages are compiled, and fetched before if need be." >&2
echo "That takes a minute or two; later builds take seconds." >&2
