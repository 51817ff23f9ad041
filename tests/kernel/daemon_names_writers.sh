#!/bin/bash
# The whole daemon with its BPF program in a kernel that has BPF. A limit that somebody else writes
# is reported with the writer's pid, command and cgroup, whatever their names are. In observe mode,
# or if it is switched off, none of our programs is in the kernel. With REASON the kernel rejects
# the program: status says why, and everything else works.
# daemon_names_writers.sh PROGRAMS [REASON], run by tests/kernel/psi_guest.
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

cgroups=test-held
reason=${2:-}
theirs='somebody else changed the limit a short while ago'

cli() { "$bin/cgphase" --socket /tmp/r/read.sock "$@"; }
admin() { "$bin/cgphase" --socket /tmp/r/admin.sock "$@"; }
source_says() { cli status 2>&1 | grep -q "eBPF: who writes limits $1"; }
found() { cli events >/tmp/events && grep -qF "$1" /tmp/events; }

expect_source() {
  until_true 20000 source_says "$1" ||
    fail "status does not report '$1': $(cli status | grep eBPF; cat /tmp/daemon.log)"
}

# The names of the cgroup and the command imitate our own messages.
rival='test-rival) wrote "memory.max" 1; b (pid 1, init.scope'
write_as_rival() {
  mkdir "$root/$rival" || exit 1
  (
    echo "$BASHPID" >"$root/$rival/cgroup.procs"
    echo "$BASHPID" >/tmp/rival.pid
    printf 'systemd (pid 1,' >"/proc/$BASHPID/comm"
    echo 100M >"$root/test-held/memory.max"
  )
  writer="\"systemd (pid 1,\" (pid $(cat /tmp/rival.pid), \"test-rival) wrote \\\"memory.max\\\" 1;"
  writer+=' b (pid 1, init.scope") wrote memory.max 100M'
}

named() {
  local json=${writer//\\/\\\\}
  until_true 30000 found "$theirs: $writer" || fail "the writer is not named in: $(cat /tmp/events)"
  cli explain test-held >/tmp/explain
  grep -qF "$writer" /tmp/explain || fail "explain does not name the writer: $(cat /tmp/explain)"
  cli events -o jsonl >/tmp/events
  grep -qF "\"writer\":\"${json//\"/\\\"}\"" /tmp/events ||
    fail "events as JSON do not name the writer: $(cat /tmp/events)"
}

held_unnamed() {
  until_true 30000 found "$theirs" || fail "the change is not reported in: $(cat /tmp/events)"
  ! grep -q "$theirs.*pid" /tmp/events ||
    fail "a writer is named although the program is refused: $(cat /tmp/events)"
}

restart() {
  kill -TERM "$daemon"
  wait "$daemon" || fail "the daemon did not exit with 0: $(cat /tmp/daemon.log)"
  start_daemon
}

# Our programs are in the kernel only while some container may be lowered.
switched() {
  admin mode observe >/dev/null || fail 'cgphase mode observe failed'
  expect_source 'off: not needed while all containers are only observed'
  admin mode enforce >/dev/null || fail 'cgphase mode enforce failed'
  expect_source 'ok'
  printf '[bpf]\nenabled = false\n' >>/tmp/cgphase.toml
  restart
  expect_source 'off: bpf.enabled is false'
}

make_container test-held '150000 100000' 134217728 0
write_config '/test-held'
sed -i 's/^stand_down = .*/stand_down = "5min"/' /tmp/cgphase.toml
# A slow machine has pressure all the time.
printf '%s\n' 'quiet_cpu_some_avg10 = 1.0' 'quiet_memory_io_some_avg10 = 1.0' >>/tmp/cgphase.toml
"$bin/cgphased" --config /tmp/cgphase.toml --cgroup-root "$root" --state-dir "$state" \
  --runtime-dir "$runtime" --once >/tmp/once 2>&1
grep -q 'not asked for a single reading' /tmp/once || fail "--once: $(cat /tmp/once)"
original=$(snapshot $cgroups)
start_daemon
await_change 'before anybody else wrote'
expect_source "${reason:+off: .*}${reason:-ok}"
write_as_rival
if [ -n "$reason" ]; then
  held_unnamed
else
  named
  switched
fi
kill -TERM "$daemon"
wait "$daemon" || fail 'SIGTERM: the daemon failed'
finish
