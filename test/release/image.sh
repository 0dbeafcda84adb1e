#!/usr/bin/env bash
# image.sh DOCKER.tar OCI.tar: checks the image of this machine's architecture, and starts it. Without podman it
# is unpacked and run in namespaces as the image's user. packages.sh calls it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

docker=$(realpath "$1") oci=$(realpath "$2") work=$(mktemp -d) server=
cleanup() {
  [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
step() { printf -- '-- %s\n' "$*"; }
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

step "image: layout, user, entrypoint, ports, volume, health check"
mkdir "$work/docker" "$work/root"
tar -xf "$docker" -C "$work/docker"
tar -tf "$oci" | grep -qx oci-layout || fail "the OCI file has no layout"
python3 - "$work/docker" <<'END'
import json, sys
folder = sys.argv[1]
[image] = json.load(open(folder + "/manifest.json"))
config = json.load(open(folder + "/" + image["Config"]))["config"]
assert config["User"] == "65532:65532", config["User"]
assert config["Entrypoint"] == ["/freshet"], config["Entrypoint"]
assert config["Healthcheck"]["Test"][:3] == ["CMD", "/freshet", "health"], config["Healthcheck"]
assert set(config["ExposedPorts"]) == {"8443/tcp", "9093/tcp", "8081/tcp"}, config["ExposedPorts"]
assert list(config["Volumes"]) == ["/var/lib/freshet"], config["Volumes"]
assert config["Labels"]["org.opencontainers.image.version"] == "0.2.0-rc.1", config["Labels"]
open(folder + "/layers", "w").write("".join(layer + "\n" for layer in image["Layers"]))
open(folder + "/cmd", "w").write("".join(a + "\n" for a in config["Cmd"]))
open(folder + "/env", "w").write("".join(a + "\n" for a in config["Env"]))
open(folder + "/health", "w").write("".join(a + "\n" for a in config["Healthcheck"]["Test"][2:]))
open(folder + "/tag", "w").write(image["RepoTags"][0])
END
[ "$(cat "$work/docker/tag")" = "freshet:0.2.0-rc.1" ] || fail "tag $(cat "$work/docker/tag")"
if [ "$(id -u)" != 0 ]; then
  echo "NOT TESTED: running the image needs root" >&2
  exit
fi

while read -r layer; do tar -xpf "$work/docker/$layer" -C "$work/root" --numeric-owner; done <"$work/docker/layers"
[ "$(stat -c %u:%g:%a "$work/root/var/lib/freshet")" = 65532:65532:700 ] || fail "owner of the volume"
grep -q 'BEGIN CERTIFICATE' "$work/root/etc/ssl/certs/ca-certificates.crt" || fail "certificate authorities"

mapfile -t cmd <"$work/docker/cmd"
mapfile -t environment <"$work/docker/env"
mapfile -t health <"$work/docker/health"

step "image: run it as its user, with its own arguments, in a root with nothing else"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$work/root/etc/hosts" # a container runtime writes it
in_image=("$(command -v chroot)" --userspec=65532:65532 --groups=65532 "$work/root") # the image's PATH has no chroot
unshare --fork --kill-child --pid --mount --uts --ipc --net test/release/start.sh "$work/root" "${environment[@]}" \
  /freshet "${cmd[@]}" >"$work/log" 2>&1 </dev/null &
outer=$!
deadline=$((SECONDS + 120))
inside() {
  nsenter --target "$server" --mount --net --uts --ipc env -i "${environment[@]}" "${in_image[@]}" "$@"
}
until server=$(pgrep --parent "$outer") && inside /freshet "${health[@]}" >/dev/null 2>&1; do
  kill -0 "$outer" 2>/dev/null && ((SECONDS < deadline)) || { cat "$work/log"; fail "the image does not become healthy"; }
  read -rt 0.5 <> <(:) || true
done
[ "$(stat -c %u "/proc/$server")" = 65532 ] || fail "the server does not run as the image's user"

step "image: a message over HTTP; the health check fails when the server has stopped"
inside /freshet topic create orders
inside /freshet produce orders over-http
got=$(inside /freshet consume orders --subscription s --create-from earliest --count 1)
[ "$got" = over-http ] || fail "got '$got'"
nsenter --target "$server" --net --mount sleep infinity &
keeper=$!
disown
kill -TERM "$server"
wait "$outer" || true
server=$keeper
inside /freshet "${health[@]}" >/dev/null 2>&1 && fail "the health check passes without a server"
echo "image: ok"
