#!/usr/bin/env bash
# start.sh ROOT ENVIRONMENT... PROGRAM ARGUMENTS... runs a server of the root file system ROOT as the user 65532, as a
# container runtime does: the root is read-only except /var/lib/freshet and /tmp, there are no capabilities, and only the
# loopback interface exists. Run it in new pid, mount, uts, ipc and net namespaces. archive.sh and image.sh do.
set -euo pipefail
root=$1
shift
environment=()
while [[ $1 == *=* ]]; do
  environment+=("$1")
  shift
done
mount --bind "$root" "$root"
mount --bind "$root/var/lib/freshet" "$root/var/lib/freshet"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc" 2>/dev/null || true
ip link set lo up
chroot=$(command -v chroot) # the PATH of the environment may not have it
exec env -i "${environment[@]}" "$(command -v setpriv)" --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid \
  "$chroot" --userspec=65532:65532 --groups=65532 "$root" "$@"
