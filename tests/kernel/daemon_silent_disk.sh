#!/bin/bash
# The /dev of a container is on a file system that does not answer. The daemon continues with all
# other containers, does not lower that container's quota and says why. At its end it restores
# without waiting, and the next daemon can start.
# daemon_silent_disk.sh PROGRAMS
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

cgroups=''
modules=/usr/lib/uml/modules/$(uname -r)
[ -d "$modules" ] || modules=$tree/build/guest/modules/$(uname -r)
fuse=$modules/kernel/fs/fuse/fuse.ko

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@" 2>&1; }
says() { cli "${@:2}" | grep -q "$1"; }
lowered() { [ "$(snapshot "$1" | grep "/$2=")" != "$(grep "^$1/$2=" <<<"$original")" ]; }
gone() { [ ! -e "/proc/$1" ]; }

# finit_module(2) of x86-64, because not every machine has insmod.
load_module() {
  # shellcheck disable=SC2016
  perl -e 'open my $module, "<", $ARGV[0] or die "$ARGV[0]: $!\n"; my $none = "";
    syscall(313, fileno $module, $none, 0) == 0 or die "loading $ARGV[0]: $!\n"' "$1"
}

make_empty() {
  mkdir "$root/$1" || exit 1
  echo '60000 100000' >"$root/$1/cpu.max"
  echo 134217728 >"$root/$1/memory.max"
  cgroups+=" $1"
  original+=${original:+$'\n'}$(snapshot "$1")  # the others are lowered already
}

make_idle() {
  make_empty "$1"
  (echo "$BASHPID" >"$root/$1/cgroup.procs" && exec sleep 1000) &
}

# No request is ever read. A process that waits for an answer can be killed.
unread='exec sleep 1000'
# The first request is answered and the others are only read. A process that waits for an answer
# waits forever. The answer is its length, no error, the request's number, protocol 7.12, no
# options.
# shellcheck disable=SC2016
unanswered='
  dd bs=65536 count=1 <&9 >/tmp/asked
  { printf "\50\0\0\0\0\0\0\0"; dd if=/tmp/asked bs=1 skip=8 count=8
    printf "\7\0\0\0\14\0\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\20\0\0"; } >/tmp/answer
  dd if=/tmp/answer bs=64 count=1 >&9
  exec cat <&9 >/tmp/requests'

add_silent() {  # NAME SERVER: sets $server; the server mounts its /dev before it joins
  make_empty "$1"
  (exec unshare --mount bash -c "
    exec 9<>/dev/fuse 2>/tmp/server.log
    mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 silent /dev &&
      echo \$\$ >'$root/$1/cgroup.procs' || exit
    $2") &
  server=$!
}

hangs_at() {  # NAME
  until_true 60000 says "the scan for a GPU hangs at $1" status ||
    fail "status does not report $1: $(cli status; cat /tmp/server.log)"
  until_true 30000 lowered "$1" memory.high || fail "the memory of $1 is not lowered"
  says 'cpu gpu_container' list -o wide || fail "list does not say why: $(cli list -o wide)"
  if lowered "$1" cpu.max; then fail "the quota of $1 was lowered although it may have a GPU"; fi
}

check_restored() {  # AFTER-WHAT
  local start
  start=$(now_ms)
  if until_true "$restore_limit_ms" all_original; then
    echo "$1: restored after $(($(now_ms) - start)) ms"
  else
    fail "$1: not restored within $restore_limit_ms ms"
    diff <(echo "$original") <(snapshot $cgroups)
    tail -n 5 /tmp/daemon.log
  fi
}

# The other containers are scanned again when the hang ends.
goes_on() {
  start_daemon
  until_true 60000 lowered test-idle cpu.max || fail 'the quota of test-idle is not lowered'
  add_silent test-silent "$unread"
  hangs_at test-silent
  make_idle test-late
  until_true 30000 lowered test-late memory.high || fail 'the memory of test-late is not lowered'
  pause_ms 3000
  if lowered test-late cpu.max; then fail 'the quota of test-late was lowered unscanned'; fi
  lowered test-idle cpu.max || fail 'the hang raised the quota of another container'
  kill "$server"
  until_true 60000 lowered test-late cpu.max || fail 'the quota of test-late stays after the hang'
  if says 'the scan for a GPU hangs' status; then fail 'status still reports the ended hang'; fi
}

ends_at_once() {
  add_silent test-deaf "$unread"
  hangs_at test-deaf
  kill -TERM "$daemon"
  check_restored 'stop during a GPU scan that hangs'
  wait "$daemon" || fail 'the daemon did not exit with 0 during a GPU scan that hangs'
  kill "$server"
}

# A process that nobody can kill outlives the daemon, but without its lock.
another_starts() {
  local before
  start_daemon
  add_silent test-dumb "$unanswered"
  hangs_at test-dumb
  before=$daemon
  kill -TERM "$before"
  check_restored 'stop during a GPU scan that cannot be ended'
  pause_ms 1000
  if gone "$before"; then fail 'the GPU scan could be ended, so nothing is proved'; fi
  start_daemon
  until_true 60000 lowered test-dumb memory.high ||
    fail "no other daemon can start: $(tail -n 3 /tmp/daemon.log)"
  kill -TERM "$daemon"
  check_restored 'the last stop'
  kill "$server"
  until_true 20000 gone "$daemon" || fail 'a daemon still runs although nothing hangs any more'
  wait "$before" || fail 'the first daemon did not exit with 0'
}

load_module "$fuse" || exit 1
mknod /dev/nvidia0 c 1 3 || exit 1
make_idle test-idle
write_config '/test*'
goes_on
ends_at_once
another_starts
finish
