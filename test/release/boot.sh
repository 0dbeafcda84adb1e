#!/usr/bin/env bash
# boot.sh FOLDER MARK starts systemd in a copy of this machine's root file system that disappears with it: the
# lower layer of an overlay is /, the upper one is in memory. Run it in new pid, mount, uts, ipc, net and
# cgroup namespaces; packages.sh does. MARK is the name by which packages.sh finds the process.
set -euo pipefail
folder=$1 mark=$2

mount -t tmpfs tmpfs "$folder"
mkdir -p "$folder"/{upper,work,root}
root=$folder/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || mount --rbind /sys "$root/sys"
mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
rm -f "$root/usr/sbin/policy-rc.d" # containers have one that forbids services
rm -f "$root/etc/systemd/system/freshet.service" # a unit of this machine's administrator hides the package's
for path in run tmp dev; do mount -t tmpfs tmpfs "$root/$path"; done
mkdir -p "$root"/dev/{pts,shm} "$root/run/packages"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx" # PrivateDevices copies it
mount --bind "$PACKAGES" "$root/run/packages"
ip link set lo up
# The new root must be the root of the mount namespace: with chroot, systemd cannot set up the mounts of a unit.
mkdir "$root/run/old"
cd "$root"
pivot_root . run/old
umount --lazy /run/old
rmdir /run/old
# /proc/1/environ of the namespace has the mark.
exec env -i container=other FRESHET_TEST="$mark" PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=basic.target --log-target=journal --show-status=no
