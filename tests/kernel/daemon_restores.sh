#!/bin/bash
# However the daemon ends, every limit is restored. The cases are 20 SIGKILLs at random moments, a
# hang, a hang of its loop alone, SIGTERM and out of memory. Others are no process left for a
# companion, a companion that ends at once, no thread, full disks, and everything killed at once.
# Also, a second daemon is rejected.
# daemon_restores.sh PROGRAMS [SEED]
# rule: S-03, S-04
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

seed=${2:-${CGPHASE_SEED:-20}}
RANDOM=$seed
echo "seed $seed"
cgroups='test-busy test-idle'
kills=20

check_restored() {  # AFTER-WHAT
  local start
  start=$(now_ms)
  if until_true "$restore_limit_ms" all_original; then
    echo "$1: restored after $(($(now_ms) - start)) ms"
  else
    fail "$1: not restored within $restore_limit_ms ms"
    diff <(echo "$original") <(snapshot $cgroups)
  fi
}

kill_at_random() {  # ROUND; even rounds count from the first change, odd ones from the start
  local delay changed=no
  start_daemon
  if [ $(($1 % 2)) = 0 ]; then
    await_change "round $1"
    delay=$((RANDOM % 1500))
  else
    delay=$((RANDOM % 7000))
  fi
  pause_ms "$delay"
  some_changed && changed=yes && changed_rounds=$((changed_rounds + 1))
  kill -KILL "$daemon" || fail "round $1: the daemon had already ended"
  wait "$daemon" 2>/dev/null
  check_restored "round $1: SIGKILL $delay ms in, limits changed: $changed"
}

hang() {
  start_daemon
  await_change hang
  kill -STOP "$daemon"
  check_restored SIGSTOP
  kill -KILL "$daemon"
  wait "$daemon" 2>/dev/null
  check_restored 'SIGKILL after SIGSTOP'
}

thread_states() {
  awk '$1 == "Name:" { name = $2 } $1 == "State:" { print name, $2 }' "/proc/$daemon/task/"*/status
}

# The daemon's other threads live and could keep its watcher satisfied. A loop that continues lowers
# again.
hang_of_loop() {
  local holder states
  start_daemon
  await_change 'hang of the loop'
  "$bin/hold_thread" "$daemon" >/tmp/held &
  holder=$!
  until_true 5000 grep -q held /tmp/held || fail 'hang of the loop: its thread was not stopped'
  check_restored 'hang of the loop'
  states=$(thread_states)
  [ "$(grep -c ' t$' <<<"$states")" = 1 ] && [ "$(grep -c ' [SRD]$' <<<"$states")" -ge 3 ] ||
    fail "hang of the loop: not exactly one thread is stopped: $states"
  pause_ms 2000
  all_original || fail 'hang of the loop: a limit was lowered meanwhile'
  kill "$holder"
  wait "$holder" 2>/dev/null
  await_change 'after a hang of the loop'
  terminate
}

second_daemon() {
  local message status
  start_daemon
  await_change 'second daemon'
  message=$(timeout 20 "$bin/cgphased" --config /tmp/cgphase.toml --cgroup-root "$root" \
    --state-dir "$state" --runtime-dir "$runtime" --mode enforce 2>&1)
  status=$?
  echo "second daemon: exit $status: $message"
  case $status in
    0 | 124 | 12[5-9] | 1[3-9]?) fail "second daemon: exit $status instead of a refusal" ;;
  esac
  [ "$(grep -c . <<<"$message")" = 1 ] || fail 'second daemon: the refusal is not one line'
  kill -0 "$daemon" || fail 'second daemon: the first one ended'
}

terminate() {
  local status
  some_changed || await_change SIGTERM
  kill -TERM "$daemon"
  wait "$daemon"
  status=$?
  [ "$status" = 0 ] || fail "SIGTERM: exit $status"
  all_original || fail 'SIGTERM: the daemon ended before the limits were restored'
  check_restored SIGTERM
}

# The daemon and its companion run in their own cgroup, where memory and processes can run out.
start_confined() {
  echo "$$" >"$agent/cgroup.procs"
  start_daemon
  echo "$$" >"$agent/../cgroup.procs"
}

companion() { grep -vx "$daemon" "$agent/cgroup.procs"; }
nobody_left() { [ ! -s "$agent/cgroup.procs" ] || [ -z "$(<"$agent/cgroup.procs")" ]; }
oom_kills() { awk '$1 == "oom_kill" { print $2 }' "$agent/memory.events"; }

out_of_memory() {  # 0: the kernel ends the largest process of the cgroup; 1: all of them
  local before status
  rm -rf "$runtime"  # the lease file is charged to the cgroup that creates it
  echo "$1" >"$agent/memory.oom.group"
  start_confined
  await_change 'out of memory'
  before=$(oom_kills)
  echo "out of memory: $(cat "$agent/memory.current") bytes in use"
  echo 7M >"$agent/memory.max"
  [ "$(oom_kills)" -gt "$before" ] || { fail 'the kernel killed no process'; kill -KILL "$daemon"; }
  wait "$daemon"
  status=$?
  [ "$status" = 137 ] || fail "out of memory: exit $status"
  check_restored "out of memory, memory.oom.group $1"
  until_true "$restore_limit_ms" nobody_left || fail 'out of memory: the companion stayed'
  echo max >"$agent/memory.max"
}

# Nothing stays lowered that no process would restore. As soon as a process can start, all
# continues.
no_companion() {
  local told
  start_confined
  await_change 'no companion'
  told=$(grep -c 'no dead-man companion' /tmp/daemon.log)
  echo 0 >"$agent/pids.max"
  kill -KILL "$(companion)"
  check_restored 'no companion'
  pause_ms 2000
  all_original || fail 'no companion: a limit was lowered'
  [ "$(grep -c 'no dead-man companion' /tmp/daemon.log)" = $((told + 1)) ] ||
    fail 'no companion: the log does not report it exactly once'
  echo max >"$agent/pids.max"
  await_change 'a companion again'
  terminate
}

told_no_companion() { grep -q 'companion .*not running' <(cgphase_says status); }
cgphase_says() { "$bin/cgphase" --socket "$runtime/read.sock" "$@" 2>/dev/null; }

# Asks often: with a companion that ends at once, no container may be enforced even for a moment.
enforced_for_a_moment() {  # SECONDS
  local end=$(($(now_ms) + $1 * 1000))
  while [ "$(now_ms)" -lt "$end" ]; do
    cgphase_says list -o csv | grep -q ',enforce,' && return
    pause_ms 100
  done
  return 1
}

# A companion that ends at once protects nothing, so nothing is lowered.
useless_companion() {
  local programs=/tmp/programs before started
  mkdir "$programs"
  cp "$bin/cgphased" "$programs"
  printf '#!/bin/sh\nexit 0\n' >"$programs/cgphase-restore"
  chmod 755 "$programs/cgphase-restore"
  before=$(grep -c 'companion ended; starting another' /tmp/daemon.log)
  bin=$programs start_daemon
  until_true 20000 told_no_companion || fail "useless companion: $(cgphase_says status)"
  enforced_for_a_moment 30 && fail "useless companion: enforced: $(cgphase_says list)"
  all_original || fail 'useless companion: a limit was lowered'
  started=$(($(grep -c 'companion ended; starting another' /tmp/daemon.log) - before))
  if [ "$started" -lt 1 ] || [ "$started" -gt 20 ]; then fail "useless companion: $started"; fi
  cp "$bin/cgphase-restore" "$programs/new"
  mv "$programs/new" "$programs/cgphase-restore"
  await_change 'a companion that stays'
  enforced_for_a_moment 10 || fail 'a companion that stays: list does not show enforce'
  terminate
  rm -r "$programs"
}

# Room for the daemon, its companion and ROOM - 2 threads: the daemon reports that and ends, and
# nothing is lowered.
no_thread() {  # ROOM
  local message status
  echo "$1" >"$agent/pids.max"
  # shellcheck disable=SC2016
  message=$(timeout 20 bash -c 'echo "$BASHPID" >"$0/cgroup.procs"; exec "$@"' "$agent" \
    "$bin/cgphased" --config /tmp/cgphase.toml --cgroup-root "$root" --state-dir "$state" \
    --runtime-dir "$runtime" 2>&1)
  status=$?
  echo "no thread, room for $1: exit $status: $message"
  [ "$status" = 1 ] || fail "no thread, room for $1: exit $status"
  [ "$(grep -c 'starting the thread' <<<"$message")" = 1 ] ||
    fail 'no thread: the message does not report it exactly once'
  check_restored 'no thread'
  until_true "$restore_limit_ms" nobody_left || fail 'no thread: the companion stayed'
  echo max >"$agent/pids.max"
}

no_history() {
  "$bin/cgphase" --socket "$runtime/read.sock" status 2>/dev/null >/tmp/status
  grep -q 'history is .*starting the thread cgphase-store' /tmp/status
}

# Without a thread for the history everything else works, and `status` reports it.
no_history_thread() {
  echo 5 >"$agent/pids.max"
  start_confined
  until_true 20000 no_history || fail "no thread for the history: $(cat /tmp/status)"
  await_change 'no thread for the history'
  terminate
  echo max >"$agent/pids.max"
}

# The whole agent is killed, below its own root, and meanwhile a new cgroup takes a container's
# name. The next restore, without any option, writes only to the cgroup that was changed.
all_killed() {
  local cgroups='below/test-stays below/test-goes' goes load ours
  mkdir "$root/below"
  echo '+cpu +memory' >"$root/below/cgroup.subtree_control"
  make_container below/test-stays '150000 100000' 134217728 0
  make_container below/test-goes '150000 100000' 134217728 0
  load=$!
  goes=$root/below/test-goes
  local original
  original=$(snapshot $cgroups)
  root=$root/below start_confined
  until_true 60000 both_lowered || fail 'all killed: not both containers were lowered'
  echo 1 >"$agent/cgroup.kill"
  wait "$daemon"
  both_lowered || fail 'all killed: a process was left that restored'
  ours=$(<"$goes/memory.high")
  kill -KILL "$load"
  wait "$load" 2>/dev/null
  # The kernel may need a moment after the last process was waited for.
  until_true 5000 rmdir "$goes" 2>/dev/null
  mkdir "$goes" || fail 'all killed: the cgroup could not be replaced'
  echo "$ours" >"$goes/memory.high"
  "$bin/cgphase-restore" --runtime-dir "$runtime" || fail 'all killed: cgphase-restore failed'
  [ "$(<"$goes/memory.high")" = "$ours" ] ||
    fail 'all killed: a new cgroup at the same path was written'
  cgroups=below/test-stays
  [ "$(snapshot $cgroups)" = "$(grep test-stays <<<"$original")" ] ||
    fail 'all killed: cgphase-restore did not find the cgroup'
}

both_lowered() {
  [ "$(<"$root/below/test-stays/memory.high")" != max ] &&
    [ "$(<"$root/below/test-goes/memory.high")" != max ]
}

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@"; }
answers() { cli -q status >/dev/null 2>&1; }
history_suffers() { cli status | grep -q 'the history is incomplete'; }
fill() { dd if=/dev/zero of="$1/fill" bs=4096 conv=notrunc oflag=append status=none 2>/dev/null; }

# Fills the history's file system and that of the leases.
full_disks() {
  local state=/scratch/s runtime=/tmp/small/r message status
  mkdir /tmp/small
  mount -t tmpfs -o size=6M none /tmp/small
  start_daemon
  until_true 20000 answers || fail 'full disks: the daemon does not answer'
  fill /scratch
  fill /tmp/small
  await_change 'full disks'
  until_true 60000 history_suffers || fail 'full disks: status does not report the history'
  kill -KILL "$daemon"
  wait "$daemon" 2>/dev/null
  check_restored 'full disks'
  fill /tmp/small
  start_daemon
  await_change 'full disks, started again'
  terminate
  [ ! -e /tmp/small/r/leases ] || fail 'full disks: a clean stop left its lease file'
  fill /tmp/small
  message=$(timeout 20 "$bin/cgphased" --config /tmp/cgphase.toml --cgroup-root "$root" \
    --state-dir "$state" --runtime-dir "$runtime" 2>&1)
  status=$?
  echo "no room for leases: exit $status: $message"
  [ "$status" = 1 ] || fail "no room for leases: exit $status"
  [ "$(grep -c . <<<"$message")" = 1 ] || fail 'no room for leases: the message is not one line'
  [[ $message == */tmp/small/r/leases* ]] ||
    fail 'no room for leases: the message does not name the file'
  all_original || fail 'no room for leases: a limit changed'
  rm /scratch/fill
  umount /tmp/small
}

# More than the guest's one CPU. On a busy host the guest's kernel charges CPU time late and in one
# piece. A container that is throttled by it would never be lowered.
make_container test-busy '200000 100000' 209715200 1
make_container test-idle '150000 100000' 134217728 0
# The weights of classes come back like limits.
weights() {
  cp /tmp/cgphase.toml /tmp/without_classes.toml
  sed -i '/^include/a containers = ["/test-busy class=batch", "/test-idle class=critical"]' \
    /tmp/cgphase.toml
  start_daemon
  until_true 60000 weights_are 11 999 ||
    fail "weights: $(cat "$root"/test-*/cpu.weight): $(tail -n 3 /tmp/daemon.log)"
  kill -KILL "$daemon"
  wait "$daemon" 2>/dev/null
  check_restored 'weights'
  start_daemon
  until_true 60000 weights_are 11 999 || fail "weights: not set by the next daemon"
  cp /tmp/without_classes.toml /tmp/cgphase.toml
  kill -HUP "$daemon"
  until_true 20000 weights_are 100 100 || fail "weights: stay after their classes are gone"
  terminate
}
weights_are() {
  [ "$(<"$root/test-busy/cpu.weight")" = "$1" ] && [ "$(<"$root/test-idle/cpu.weight")" = "$2" ]
}

write_config '/test*'
original=$(snapshot $cgroups)
changed_rounds=0
for ((round = 1; round <= kills; round++)); do kill_at_random "$round"; done
[ "$changed_rounds" -ge $((kills * 2 / 5)) ] ||
  fail "limits were changed in only $changed_rounds of $kills kills"
hang
hang_of_loop
second_daemon
terminate
weights
agent=$root/agent
mkdir "$agent"
out_of_memory 0
out_of_memory 1
no_companion
useless_companion
for room in 2 3 4; do no_thread "$room"; done
no_history_thread
full_disks
all_killed
finish
