#!/bin/bash
# The budget of the host, live: a quota and a memory.max rise above the original because their
# owner agreed, come back when the daemon dies, and never below what is in use; and a container
# without a limit cannot take the memory of the others.
# shellcheck source=tests/kernel/daemon_fixture.sh
source "$(dirname "$0")/daemon_fixture.sh"

mib=$((1 << 20))
limit() { local found; read -r found <"$root/$1/$2" && echo "${found%% *}"; }
oom_kills() { awk '$1 == "oom_kill" { print $2 }' "$root/$1/memory.events"; }

# A program in the container NAME that holds as many MiB as the file /tmp/NAME says. It gets there
# by STEP MiB each 200 ms.
hold_memory() {  # NAME STEP
  echo 20 >"/tmp/$1"
  (
    echo "$BASHPID" >"$root/$1/cgroup.procs"
    exec python3 - "/tmp/$1" "$2" <<'PY'
import mmap
import sys
import time

path, step = sys.argv[1], int(sys.argv[2])
held = []
while True:
    with open(path, encoding="ascii") as file:
        wanted = int(file.read() or 0)
    for _ in range(step):
        if len(held) < wanted:
            # Touching each page would cost a guest much time.
            held.append(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS |
                                  mmap.MAP_POPULATE))
    while len(held) > wanted:
        held.pop().close()
    time.sleep(0.2)
PY
  ) &
}

start_with() {  # BUDGET
  write_config '/test*'
  sed -i "/^include/a containers = [\"/test-box cpu.max=0.8 memory.max=400M\"]" /tmp/cgphase.toml
  printf '[budget]\n%s\n' "$1" >>/tmp/cgphase.toml
  start_daemon
}
quota_is_raised() { [ "$(limit test-box cpu.max)" -gt 35000 ]; }
quota_is_original() { [ "$(<"$root/test-box/cpu.max")" = '30000 100000' ]; }
memory_is_raised() { [ "$(limit test-box memory.max)" -gt $((160 * mib)) ]; }
memory_is_original() { [ "$(limit test-box memory.max)" = $((96 * mib)) ]; }
holds() { [ "$(<"$root/$1/memory.current")" -gt $(($2 * mib)) ]; }
is_guarded() { [ "$(limit test-open memory.max)" != max ]; }
is_open() { [ "$(limit test-open memory.max)" = max ]; }
was_killed() { [ "$(oom_kills test-open)" -gt 0 ]; }
kill_daemon() { kill -KILL "$daemon"; wait "$daemon" 2>/dev/null; }

mkdir "$root/test-open" || exit 1
make_container test-box '30000 100000' $((96 * mib)) 10
hold_memory test-box 2
hold_memory test-open 8

start_with 'unlimited = "guard"'
until_true 60000 quota_is_raised || fail "quota not raised: $(<"$root/test-box/cpu.max")"
explained=$("$bin/cgphase" --socket "$runtime/read.sock" events 2>&1)
[[ $explained = *'because of the host'*'budget'* ]] || fail "events do not say why: $explained"

echo 160 >/tmp/test-box
until_true 60000 holds test-box 160 || fail 'the container does not get what its owner agreed to'
memory_is_raised || fail "memory.max not raised: $(limit test-box memory.max)"
[ "$(oom_kills test-box)" = 0 ] || fail 'killed although the host had room'

# Nobody but the leaking container is killed.
until_true 120000 is_guarded || fail 'the container without a limit is not guarded'
echo 100000 >/tmp/test-open
until_true 240000 was_killed ||
  fail "the leak was not stopped: $(limit test-open memory.current)"
[ "$(oom_kills test-box)" = 0 ] || fail 'the leak killed a neighbour'

kill_daemon
until_true "$restore_limit_ms" quota_is_original || fail 'the quota did not come back'
until_true "$restore_limit_ms" is_open || fail 'the guard stayed'
memory_is_raised || fail 'memory.max fell below what is in use'
[ "$(oom_kills test-box)" = 0 ] || fail 'the restore killed'
echo 20 >/tmp/test-box
sleep 2
"$bin/cgphase-restore" --runtime-dir "$runtime" || fail "cgphase-restore ended with $?"
memory_is_original || fail "memory.max did not come back: $(limit test-box memory.max)"

# What is no longer needed comes back while the daemon runs.
start_with 'unlimited = "observe"'
echo 160 >/tmp/test-box
until_true 60000 holds test-box 160 || fail 'no second time'
echo 20 >/tmp/test-box
until_true 180000 memory_is_original || fail "memory.max stays: $(limit test-box memory.max)"
[ "$(oom_kills test-box)" = 0 ] || fail 'killed on the way back'
is_open || fail 'a guard that nobody asked for'
finish
