#!/bin/bash
# The whole daemon with its BPF program in a kernel that has BPF: somebody else's limit is told with
# the writer's pid, command and cgroup, whatever those call themselves; where all is observed, or
# it is switched off, nothing of ours is in the kernel. Or, with REASON, in a kernel that refuses
# the program: status says why, and all else is as it was.
# daemon_names_writers.sh PROGRAMS [REASON], run by tests/kernel/psi_guest.
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

cgroups=test-held
reason=${2:-}
theirs='somebody else changed the limit a short while ago'

cli() { "$bin/cgphase" --socket /tmp/r/read.sock "$@"; }
admin() { "$bin/cgphase" --socket /tmp/r/admin.sock "$@"; }
source_says() { cli status 2>&1 | grep -q "eBPF: who writes limits $1"; }
told() { cli events >/tmp/events && grep -qF "$1" /tmp/events; }

expect_source() {
  until_true 20000 source_says "$1" ||
    fail "status does not say '$1' but: $(cli status | grep eBPF; cat /tmp/daemon.log)"
}

# From a cgroup and by a name that both look like words of ours.
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
  until_true 30000 told "$theirs: $writer" || fail "not named in: $(cat /tmp/events)"
  cli explain test-held >/tmp/explain
  grep -qF "$writer" /tmp/explain || fail "explain does not say so: $(cat /tmp/explain)"
  cli events -o jsonl >/tmp/events
  grep -qF "\"writer\":\"${json//\"/\\\"}\"" /tmp/events ||
    fail "events as JSON do not name the writer: $(cat /tmp/events)"
}

held_unnamed() {
  until_true 30000 told "$theirs" || fail "not told in: $(cat /tmp/events)"
  ! grep -q "$theirs.*pid" /tmp/events || fail "who can have named it? $(cat /tmp/events)"
}

restart() {
  kill -TERM "$daemon"
  wait "$daemon" || fail "the daemon did not stop well: $(cat /tmp/daemon.log)"
  start_daemon
}

# Only while something may be lowered is anything of ours in the kernel.
switched() {
  admin mode observe >/dev/null || fail 'mode observe is refused'
  expect_source 'off: not needed where all is only observed'
  admin mode enforce >/dev/null || fail 'mode enforce is refused'
  expect_source 'ok'
  printf '[bpf]\nenabled = false\n' >>/tmp/cgphase.toml
  restart
  expect_source 'off: bpf.enabled is false'
}

make_container test-held '150000 100000' 134217728 0
write_config '/test-held'
sed -i 's/^stand_down = .*/stand_down = "5min"/' /tmp/cgphase.toml
# A slow machine stalls at everything.
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
