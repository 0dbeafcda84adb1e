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
# Measured with an empty build cache and go1.26: 750 s of CPU time for 1,800 packages. A build uses all CPUs.
cpu=750
cpus=${FRESHET_CPUS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)}
seconds=$(((cpu + cpus - 1) / cpus))
if [ "$seconds" -lt 90 ]; then
	time="$seconds seconds"
else
	time="$(((seconds + 30) / 60)) minutes"
fi
echo "Building freshet for the first time: downloading modules if necessary and compiling 1,800 packages." >&2
echo "This takes about $time with $cpus CPUs; later builds take seconds." >&2
