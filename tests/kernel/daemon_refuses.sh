#!/bin/bash
# On a host whose controllers are on cgroup v1 the daemon refuses to enforce: one sentence, exit 6,
# nothing touched. daemon_refuses.sh PROGRAMS, in a guest, whose cgroups it mounts anew.
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

every_limit() {
  find /tmp/cgroups -type f \( -name 'cpu.*' -o -name 'memory.*limit*' \) -perm -200 \
    -exec grep -H . {} + | sort
}

refused() {  # CASE
  local message status before
  before=$(every_limit)
  message=$(timeout 20 "$bin/cgphased" --cgroup-root /tmp/cgroups --state-dir /tmp/s \
    --runtime-dir /tmp/r --mode enforce 2>&1)
  status=$?
  echo "$1: exit $status: $message"
  [ "$status" = 6 ] || fail "$1: exit $status instead of 6"
  [ "$(grep -c . <<<"$message")" = 1 ] || fail "$1: not one sentence"
  [ "$(every_limit)" = "$before" ] || fail "$1: a limit changed"
}

mount_v1() {
  mkdir "/tmp/cgroups/$1" && mount -t cgroup -o "$1" none "/tmp/cgroups/$1" &&
    mkdir "/tmp/cgroups/$1/test" || { fail "cannot mount cgroup v1 $1"; finish; }
}

echo '-cpu -memory -io -pids' >"$root/cgroup.subtree_control"
umount "$root"
mkdir /tmp/cgroups
mount -t tmpfs none /tmp/cgroups
mount_v1 cpu
mount_v1 memory
refused 'cgroup v1'
mkdir /tmp/cgroups/unified
mount -t cgroup2 none /tmp/cgroups/unified
refused 'hybrid cgroups'
finish
