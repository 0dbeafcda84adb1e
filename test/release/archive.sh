#!/usr/bin/env bash
# Installs an archive of a release into an empty root file system, as docs/howto/install.md does, over the version before:
#   test/release/archive.sh ARCHIVE [PREVIOUS]
# ARCHIVE is freshet_VERSION_linux_ARCH.tar.gz of this machine's architecture, PREVIOUS the program of the version before
# (default: the one in ARCHIVE). Its server takes a message over HTTP and one over Kafka, that of the archive delivers
# both. This needs root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

archive=$(realpath "$1") work=$(mktemp -d) server= outer=
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
if [ "$(id -u)" != 0 ]; then
  echo "NOT TESTED: installing an archive needs root" >&2
  exit
fi

step "archive: program, licences, man pages, completions"
mkdir "$work/files"
tar -xzf "$archive" -C "$work/files"
files=$(echo "$work"/files/freshet_*)
previous=$(realpath "${2:-$files/freshet}")
for path in freshet LICENSE README.md THIRD-PARTY-NOTICES.txt completions/freshet.bash completions/_freshet man/man1/freshet.1; do
  [ -s "$files/$path" ] || fail "the archive has no $path"
done
version=$(basename "$files")
version=${version#freshet_}
version=${version%_linux_*}
case $("$files/freshet" version) in "freshet $version ("*) ;; *) fail "freshet version: $("$files/freshet" version)" ;; esac

root=$work/root
mkdir -p "$root"/{etc,proc,tmp,usr/local/bin,var/lib/freshet}
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
chown 65532:65532 "$root/var/lib/freshet"
chmod 700 "$root/var/lib/freshet"
CGO_ENABLED=0 go build -o "$root/usr/local/bin/kafka" ./test/release/kafka
environment=(PATH=/usr/local/bin HOME=/tmp FRESHET_DATA_DIR=/var/lib/freshet)

# start runs the installed program until stop, and waits until it is ready.
start() {
  unshare --fork --kill-child --pid --mount --uts --ipc --net test/release/start.sh "$root" "${environment[@]}" \
    /usr/local/bin/freshet serve >"$work/log" 2>&1 </dev/null &
  outer=$!
  local deadline=$((SECONDS + 120))
  until server=$(pgrep --parent "$outer") && inside freshet context show >/dev/null 2>&1; do
    kill -0 "$outer" 2>/dev/null && ((SECONDS < deadline)) || { cat "$work/log"; fail "the server does not become ready"; }
    read -rt 0.5 <> <(:) || true
  done
}
inside() {
  local program=$1
  shift
  nsenter --target "$server" --mount --net --uts --ipc env -i "${environment[@]}" \
    "$(command -v chroot)" --userspec=65532:65532 --groups=65532 "$root" "/usr/local/bin/$program" "$@"
}
stop() {
  kill -TERM "$server"
  wait "$outer" || fail "the server ended with status $?"
  server=
}

step "archive: $("$previous" version) takes a message over HTTP and one over Kafka"
install -m 755 "$previous" "$root/usr/local/bin/freshet"
start
inside freshet topic create orders
inside freshet produce orders over-http
inside kafka 127.0.0.1:9092 /var/lib/freshet/admin.token orders over-kafka >"$work/kafka"
printf 'over-http\nover-kafka\n' | diff - "$work/kafka" || fail "messages over Kafka"
stop

step "archive: install $version over it"
install -m 755 "$files/freshet" "$root/usr/local/bin/"
install -D -m 644 -t "$root/usr/local/share/man/man1" "$files"/man/man1/*
install -D -m 644 "$files/completions/freshet.bash" "$root/usr/share/bash-completion/completions/freshet"
start
inside freshet version | grep -qF "freshet $version (" || fail "freshet version"
inside freshet consume orders --subscription upgraded --create-from earliest --count 2 | diff "$work/kafka" - ||
  fail "messages over HTTP after the upgrade"
inside kafka 127.0.0.1:9092 /var/lib/freshet/admin.token orders | diff "$work/kafka" - ||
  fail "messages over Kafka after the upgrade"
stop
echo "archive: ok"
