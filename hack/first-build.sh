#!/usr/bin/env bash
# Prints a notice before a build that takes long: on a new clone the compiler runs for
# minutes without output. Prints nothing if bin/freshet exists or if most packages are in
# the build cache.
set -euo pipefail

[ ! -e bin/freshet ] || exit 0
# This dry run fails if modules are missing; GOPROXY=off prevents downloads.
if steps=$(GOPROXY=off go build -n ./cmd/freshet 2>&1) && [ "$(grep -c '/compile ' <<<"$steps")" -lt 200 ]; then
	exit 0
fi
echo "Building freshet for the first time: downloading modules if necessary and compiling 1,700 packages." >&2
echo "This takes a minute or two; later builds take seconds." >&2
