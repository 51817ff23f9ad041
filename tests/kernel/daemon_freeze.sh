#!/bin/bash
# The host is short of memory, live: a growing batch container whose owner agrees is frozen beside a
# critical one and thaws in time, by itself and when the daemon is killed, stopped or ends. Nothing
# is killed, and what somebody else froze stays frozen.
# rule: BUDGET-07, BUDGET-08, S-04, REST-01
# shellcheck source=tests/kernel/daemon_fixture.sh
source "$(dirname "$0")/daemon_fixture.sh"

mib=$((1 << 20))

# A program in the container NAME that takes 4 MiB each 200 ms until it has MIB, gives half of them
# back and begins again.
grow() {  # NAME MIB
  (
    echo "$BASHPID" >"$root/$1/cgroup.procs"
    exec python3 - "$2" <<'PY'
import mmap
import sys
import time

held, most = [], int(sys.argv[1])
while True:
    if len(held) >= most:
        while len(held) > most // 2:
            held.pop().close()
    for _ in range(4):
        if len(held) < most:
            # Touching each page would cost a guest much time.
            held.append(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS |
                                  mmap.MAP_POPULATE))
    time.sleep(0.2)
PY
  ) &
}

start_with() {  # LONGEST-FREEZE
  write_config '/test*'
  local batch="\"/test-batch class=batch freeze=$1\""
  sed -i "/^include/a containers = [$batch, \"/test-critical class=critical\"]" /tmp/cgphase.toml
  printf '[budget]\nmemory = "45 %%"\n' >>/tmp/cgphase.toml
  start_daemon
}
is_frozen() { [ "$(<"$root/test-batch/cgroup.freeze")" = 1 ]; }
is_thawed() { [ "$(<"$root/test-batch/cgroup.freeze")" = 0 ]; }
stands_still() { grep -qx 'frozen 1' "$root/test-batch/cgroup.events"; }
await_freeze() {  # WHEN
  until_true 90000 is_frozen && return
  fail "$1: not frozen: $(<"$root/test-batch/memory.current") bytes in use"
  "$bin/cgphase" --socket "$runtime/read.sock" events
  tail -n 3 /tmp/daemon.log
  finish
}
await_thaw() {  # WHEN
  local start
  start=$(now_ms)
  until_true "$restore_limit_ms" is_thawed || fail "$1: still frozen after $restore_limit_ms ms"
  echo "$1: thawed after $(($(now_ms) - start)) ms"
}
nobody_was_killed() {
  local name
  for name in test-batch test-critical; do
    grep -qx 'oom_kill 0' "$root/$name/memory.events" || fail "$1: killed in $name"
  done
  [ "$(<"$root/test-critical/cgroup.freeze")" = 0 ] || fail "$1: the critical one is frozen"
}

make_container test-critical 'max 100000' $((400 * mib)) 2
make_container test-batch 'max 100000' $((700 * mib)) 2
grow test-critical 60
grow test-batch 450

start_with 8s
await_freeze 'first time'
start=$(now_ms)
until_true 2000 stands_still || fail 'the file says frozen, but the container runs'
before=$(<"$root/test-batch/memory.current")
explained=$("$bin/cgphase" --socket "$runtime/read.sock" events 2>&1)
[[ $explained = *'frozen for at most 8 s because the host is short of memory by'* ]] ||
  fail "events do not say why: $explained"
[ "$(<"$root/test-batch/memory.current")" -le $((before + mib)) ] || fail 'it grew while frozen'
until_true 12000 is_thawed || fail 'it does not thaw at its deadline'
took=$(($(now_ms) - start))
echo "frozen for $took ms"
[ "$took" -le 9000 ] || fail "frozen for $took ms"
nobody_was_killed 'a freeze'
# It runs as long as it was frozen.
pause_ms 4000
is_thawed || fail 'frozen again too soon'

await_freeze 'second time'
nobody_was_killed 'a second freeze'
kill -TERM "$daemon"
wait "$daemon" 2>/dev/null
is_thawed || fail 'frozen after a clean stop'

start_with 100s
await_freeze 'before SIGKILL'
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
await_thaw SIGKILL

start_with 100s
await_freeze 'before SIGSTOP'
kill -STOP "$daemon"
await_thaw SIGSTOP
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
nobody_was_killed 'the deaths'

# As `docker pause`.
echo 1 >"$root/test-batch/cgroup.freeze"
start_with 8s
pause_ms 15000
is_frozen || fail 'thawed what somebody else froze'
kill -TERM "$daemon"
wait "$daemon" 2>/dev/null
is_frozen || fail 'a clean stop thawed what somebody else froze'
echo 0 >"$root/test-batch/cgroup.freeze"
finish
