#!/usr/bin/env bash
# Installs, starts, upgrades, removes and purges the packages, and runs the image:
#   test/release/packages.sh BINARY [PREVIOUS]
# BINARY is a program for Linux of this machine's architecture, PREVIOUS the one of the version before
# (default: BINARY again; both get packages with different versions). The deb is tested under a real
# systemd in a root of its own, see boot.sh; this needs root. What cannot be tested is reported as NOT TESTED.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

binary=$(realpath "$1") previous=$(realpath "${2:-$1}")
work=$(mktemp -d) init=
cleanup() {
  [ -z "$init" ] || kill -KILL "$init" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT

step() { printf -- '-- %s\n' "$*"; }
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  [ -z "$init" ] || inside journalctl --no-pager --lines 40 --unit freshet >&2
  exit 1
}
skip() { printf 'NOT TESTED: %s\n' "$*" >&2; }
# await SECONDS COMMAND... repeats the command until it succeeds.
await() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || fail "still failing: $*"
    read -rt 0.5 <> <(:) || true
  done
}

arch=$(dpkg --print-architecture)
step "packing $arch and arm64 packages and the image"
go -C tools/release build -o "$work/pack" ./pack
pack() { "$work/pack" --root . --arch "$arch" --dist "$work/dist" "$@" >/dev/null; }
pack --binary "$previous" --version 0.1.0 --what deb,rpm
pack --binary "$binary" --version 0.2.0-rc.1
pack --binary Makefile --version 0.2.0-rc.1 --arch arm64 --what deb,rpm
CGO_ENABLED=0 go build -o "$work/dist/kafka" ./test/release/kafka
old=freshet_0.1.0_linux_$arch new=freshet_0.2.0-rc.1_linux_$arch

step "unit: the same as that of freshet generate systemd; systemd-analyze verify and security"
dpkg-deb --extract "$work/dist/$new.deb" "$work/tree"
unit=$work/tree/usr/lib/systemd/system/freshet.service
"$binary" generate systemd --binary /usr/bin/freshet --config /etc/freshet/freshet.yaml --user freshet \
  --backup-dir /var/backups/freshet | diff - "$unit"
sed 's#^ExecStart=/usr/bin/freshet#ExecStart=/bin/true#' "$unit" >"$work/freshet.service"
output=$(systemd-analyze verify "$work/freshet.service" 2>&1) || true
[ -z "$output" ] || fail "systemd-analyze verify: $output"
# Exposure 2.0 of 10 at most; the threshold is ten times the bound.
systemd-analyze security --offline=true --threshold=20 --no-pager "$work/freshet.service" >"$work/security" ||
  fail "systemd-analyze security: $(tail -n 1 "$work/security")"
tail -n 1 "$work/security"

test_deb() {
  step "deb: boot systemd in a root of its own"
  mkdir "$work/boot"
  local group=/sys/fs/cgroup
  [ -e $group/cgroup.procs ] || group=/sys/fs/cgroup/unified
  group=$group/freshet-test-$$
  mkdir "$group" || { skip "deb under systemd: no writable cgroup2 hierarchy"; return; }
  (
    echo "$BASHPID" >"$group/cgroup.procs"
    PACKAGES=$work/dist exec unshare --fork --kill-child --pid --mount --uts --ipc --net --cgroup \
      test/release/boot.sh "$work/boot" "$work"
  ) </dev/null >"$work/boot.log" 2>&1 &
  local outer=$!
  await 60 pgrep --parent "$outer"
  init=$(pgrep --parent "$outer")
  inside() { nsenter --target "$init" --all --root env --chdir=/ HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
  export -f inside
  await 120 inside systemctl is-system-running --wait
  freshet() { inside env FRESHET_DATA_DIR=/var/lib/freshet freshet "$@"; }
  state() { inside systemctl show --property "$1" --value freshet; }
  installed() { inside dpkg-query --show --showformat '${db:Status-Abbrev} ${Version}' freshet 2>/dev/null || true; }
  expect() { [ "$2" = "$3" ] || fail "$1: got '$2', want '$3'"; }

  step "deb: install 0.1.0; the service is ready when dpkg returns"
  inside dpkg --install "/run/packages/$old.deb"
  expect "service after the installation" "$(state ActiveState)" active
  expect "service enabled" "$(inside systemctl is-enabled freshet)" enabled
  expect "owner of the data" "$(inside stat -c %U:%G:%a /var/lib/freshet)" freshet:freshet:700
  expect "owner of the configuration" "$(inside stat -c %U:%G:%a /etc/freshet/freshet.yaml)" root:freshet:640
  expect "user of the process" "$(inside ps -o user= -C freshet)" freshet

  step "deb: a message over HTTP and one over Kafka"
  await 60 freshet context show # version 0.1.0 is "ready" before it serves
  freshet topic create orders
  freshet produce orders over-http
  consumed() { freshet consume orders --subscription "$1" --count "$2" --create-from earliest; }
  inside /run/packages/kafka 127.0.0.1:9092 /var/lib/freshet/admin.token orders over-kafka >"$work/kafka"
  printf 'over-http\nover-kafka\n' | diff - "$work/kafka" || fail "messages over Kafka"
  consumed both 2 | diff "$work/kafka" - || fail "messages over HTTP"

  step "deb: the administrator edits the configuration; upgrade to 0.2.0~rc.1 restarts the service"
  printf 'log:\n  format: json\n' | inside tee /etc/freshet/freshet.yaml >/dev/null
  pid=$(state MainPID)
  inside dpkg --install "/run/packages/$new.deb"
  expect "version" "$(installed)" "ii  0.2.0~rc.1-1"
  expect "service after the upgrade" "$(state ActiveState)" active
  [ "$(state MainPID)" != "$pid" ] || fail "the upgrade has not restarted the service"
  expect "configuration" "$(inside head -n 1 /etc/freshet/freshet.yaml)" "log:"
  case $(state StatusText) in serving*) ;; *) fail "status '$(state StatusText)'" ;; esac
  expect "watchdog" "$(state WatchdogUSec)" 2min
  expect "mode after the upgrade" "$(inside stat -c %U:%G:%a /etc/freshet/freshet.yaml)" root:freshet:640
  expect "messages after the upgrade" "$(consumed after 1 | head -n 1)" over-http

  step "deb: reload, and a server that hangs is restarted by the watchdog"
  inside systemctl reload freshet
  await 60 inside sh -c 'journalctl --no-pager -u freshet | grep -q "SIGHUP: log, audit log"'
  inside systemctl kill --signal=STOP freshet
  await 300 inside sh -c 'journalctl --no-pager -u freshet | grep -qi "watchdog timeout"'
  await 300 inside systemctl is-active freshet

  step "deb: an upgrade does not start a stopped service"
  inside systemctl stop freshet
  expect "result of the stop" "$(state Result)" success
  inside dpkg --install "/run/packages/$new.deb"
  expect "service after the upgrade" "$(state ActiveState)" inactive
  inside systemctl start freshet

  step "deb: remove keeps data and configuration, a new installation continues with them"
  inside dpkg --remove freshet
  expect "state" "$(installed)" "rc  0.2.0~rc.1-1"
  inside test ! -e /usr/bin/freshet || fail "the program is still there"
  inside test -e /etc/freshet/freshet.yaml || fail "remove has deleted the configuration"
  inside test -e /var/lib/freshet/admin.token || fail "remove has deleted data"
  inside sh -c '! pgrep -x freshet' || fail "the server still runs"
  inside dpkg --install "/run/packages/$new.deb"
  expect "service after a new installation" "$(state ActiveState)" active
  expect "messages after a new installation" "$(consumed again 1 | head -n 1)" over-http

  step "deb: purge deletes data and configuration, and keeps backups"
  inside touch /var/backups/freshet/backup
  inside dpkg --purge freshet
  for path in /etc/freshet /var/lib/freshet /usr/share/doc/freshet /usr/lib/systemd/system/freshet.service \
    /etc/systemd/system/freshet.service /etc/systemd/system/multi-user.target.wants/freshet.service; do
    inside sh -c "test ! -e $path && test ! -L $path" || fail "$path is left after purge"
  done
  inside test -e /var/backups/freshet/backup || fail "purge has deleted backups"
  kill -KILL "$init"
  wait "$outer" 2>/dev/null || true
  init=
  rmdir "$group" 2>/dev/null || true
}

test_rpm() {
  step "rpm: digests, files and scripts; install, upgrade and remove in a root of its own"
  rpm --checksig --nosignature "$work/dist/$new.rpm"
  rpm --query --package --configfiles "$work/dist/$new.rpm" | grep -qx /etc/freshet/freshet.yaml ||
    fail "the configuration is no configuration file"
  rpm --query --package --scripts "$work/dist/$new.rpm" | grep -q 'try-restart freshet.service' || fail "scripts"
  # Scripts need programs of a distribution, which an empty root does not have.
  local options=(--root "$work/rpmroot" --nodeps --noscripts)
  mkdir "$work/rpmroot"
  rpm "${options[@]}" --install "$work/dist/$old.rpm"
  echo "log: {format: json}" >"$work/rpmroot/etc/freshet/freshet.yaml"
  rpm "${options[@]}" --upgrade "$work/dist/$new.rpm"
  [ "$(rpm --root "$work/rpmroot" --query freshet)" = "freshet-0.2.0~rc.1-1.$(uname -m)" ] || fail "rpm --query"
  cmp "$binary" "$work/rpmroot/usr/bin/freshet"
  grep -q json "$work/rpmroot/etc/freshet/freshet.yaml" || fail "rpm has overwritten the configuration"
  # Only the edited configuration differs; owners differ because the root has no users.
  rpm --root "$work/rpmroot" --verify --nodeps --noscripts --nouser --nogroup freshet >"$work/verify" || true
  grep -v ' c /etc/freshet/freshet.yaml' "$work/verify" && fail "rpm --verify"
  rpm "${options[@]}" --erase freshet
  [ ! -e "$work/rpmroot/usr/bin/freshet" ] || fail "rpm has left the program"
}

if [ "$(id -u)" != 0 ]; then
  skip "deb: needs root"
elif [ ! -x /lib/systemd/systemd ] || ! dpkg --status adduser >/dev/null 2>&1; then
  skip "deb: needs a Debian with systemd and adduser"
else
  test_deb
fi
if command -v rpm >/dev/null; then test_rpm; else skip "rpm: not installed (Debian: rpm)"; fi
test/release/image.sh "$work/dist/$new.docker.tar" "$work/dist/freshet_0.2.0-rc.1_linux.oci.tar"
echo "packages: ok"
