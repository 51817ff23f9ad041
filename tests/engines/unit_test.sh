#!/bin/bash
# The unit under a real systemd. READY and STATUS arrive, a start without configuration changes
# nothing, and reload and stop work. However the daemon ends (killed alone or with its companion,
# out of memory, hung until the watchdog, rejected configuration), every limit is restored.
# systemd's journal has its actions with their fields and catalog.
# unit_test.sh PROGRAMS, run by scripts/guest --image.
# rule: S-01, S-04
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=unit_fixture.sh
. "$(dirname "$0")/unit_fixture.sh"

cgroups=system.slice/plain.service
original=''

main_is_other() { [ "$(property MainPID)" != "$1" ] && property_is ActiveState active; }

status_text() { [[ $(property StatusText) == "$1"* ]]; }

without_configuration() {
  must systemctl start cgphased
  property_is ActiveState active || fail 'not active after the start'
  until_true 20000 status_text 'observe, ' || fail "STATUS is '$(property StatusText)'"
  until_true 20000 cgphase -q status >/dev/null || fail 'cgphase status does not answer'
  pause_ms 5000
  all_original || fail 'a start without configuration changed a limit'
  must systemctl stop cgphased
  echo 'without configuration: active, status reported, nothing changed'
}

check_restored() {
  local start
  start=$(now_ms)
  until_true "$restore_limit_ms" all_original || fail "$1: not restored"
  echo "$1: restored after $(($(now_ms) - start)) ms"
}

killed() {
  local before
  await 'before SIGKILL'
  before=$(property MainPID)
  kill -KILL "$before"
  check_restored SIGKILL
  until_true 30000 main_is_other "$before" || fail 'not restarted after SIGKILL'
}

# The companion is killed too. Only ExecStopPost is left, as long as no other daemon starts.
all_killed() {
  local before drop_in=/run/systemd/system/cgphased.service.d
  mkdir -p $drop_in
  printf '[Service]\nRestartSec=10min\n' >$drop_in/late.conf
  must systemctl daemon-reload
  must systemd-run --quiet --wait true  # systemd 257 writes limits at the next start of a unit
  await 'before SIGKILL to all'
  before=$(property MainPID)
  must systemctl reset-failed cgphased  # the test restarts it more often than the unit allows
  systemctl kill --signal=KILL cgphased
  check_restored 'SIGKILL to daemon and companion'
  until_true 5000 property_is SubState auto-restart ||
    fail "restored by another daemon: $(property SubState)"
  rm -r $drop_in
  must systemctl daemon-reload
  must systemctl start cgphased
  main_is_other "$before" || fail 'not restarted after SIGKILL to all'
}

# So little memory that the daemon does not fit, but the programs that restore after it do.
too_little() {
  awk '$1 == "anon" { sum += $2 / 2 } $1 == "shmem" || $1 == "kernel" { sum += $2 }
    END { printf "%d", sum }' /sys/fs/cgroup/cgphase.slice/cgphased.service/memory.stat
}

# The kernel kills the daemon, and systemd then ends the rest of the unit (OOMPolicy=stop).
out_of_memory() {
  local before
  await 'before out of memory'
  before=$(property MainPID)
  must systemctl reset-failed cgphased
  systemctl set-property --runtime cgphased MemoryMax="$(too_little)"
  check_restored 'out of memory'
  until_true 20000 was_out_of_memory || fail 'the kernel killed no process'
  must systemctl set-property --runtime cgphased MemoryMax=infinity
  until_true 30000 main_is_other "$before" || fail 'not restarted after out of memory'
}

was_out_of_memory() { journalctl -u cgphased | grep -q "Failed with result 'oom-kill'"; }

hung() {
  local before
  await 'before SIGSTOP'
  before=$(property MainPID)
  kill -STOP "$before"
  check_restored SIGSTOP
  until_true 60000 main_is_other "$before" || fail 'the watchdog did not restart it'
  echo 'the watchdog restarted it'
}

reloaded() {
  local before
  await 'before reload'
  before=$(property MainPID)
  mkdir -p /etc/cgphase/conf.d
  echo 'mode = 3' >/etc/cgphase/conf.d/wrong.toml
  systemctl reload cgphased 2>/tmp/reload && fail 'a reload with a wrong configuration succeeded'
  until_true 20000 told_wrong ||
    fail "the journal does not report the error: $(journalctl -u cgphased -n 9)"
  rm /etc/cgphase/conf.d/wrong.toml
  property_is MainPID "$before" || fail 'a wrong configuration ended the daemon'
  property_is ActiveState active || fail "after a failed reload: $(property ActiveState)"
  status_text 'enforce, ' || fail "a failed reload changed the mode: $(property StatusText)"
  await 'after a failed reload'
  sed -i 's/^mode = .*/mode = "observe"/' /etc/cgphase/cgphase.toml
  must systemctl reload cgphased
  check_restored 'reload to observe'
  until_true 20000 status_text 'observe, ' || fail "STATUS is '$(property StatusText)'"
  sed -i 's/^mode = .*/mode = "enforce"/' /etc/cgphase/cgphase.toml
  must systemctl reload cgphased
}

# The file that a drop-in names is checked, not the default file.
reloaded_with_option() {
  local drop_in=/run/systemd/system/cgphased.service.d
  mkdir -p $drop_in /etc/cgphase-other
  cp /etc/cgphase/cgphase.toml /etc/cgphase-other/other.toml
  printf '[Service]\nExecStart=\nExecStart=/usr/sbin/cgphased --config %s\n' \
    /etc/cgphase-other/other.toml >$drop_in/other.conf
  must systemctl daemon-reload
  must systemctl restart cgphased
  cp /etc/cgphase/cgphase.toml /tmp/good.toml
  echo 'mode = 3' >/etc/cgphase/cgphase.toml
  must systemctl reload cgphased
  cp /etc/cgphase/cgphase.toml /etc/cgphase-other/other.toml
  systemctl reload cgphased 2>/tmp/reload && fail 'the file of a drop-in is not checked'
  cp /tmp/good.toml /etc/cgphase/cgphase.toml
  rm -r $drop_in /etc/cgphase-other
  must systemctl daemon-reload
  must systemctl restart cgphased
  echo 'a reload checks the configuration that the daemon was started with'
}

told_wrong() { journalctl -u cgphased -n 50 | grep -q 'conf.d/wrong.toml:1'; }

stopped() {
  await 'before stop'
  must systemctl stop cgphased
  all_original || fail 'systemctl stop returned before all limits were restored'
  property_is Result success || fail "the result of the stop is $(property Result)"
  echo 'systemctl stop: all limits were restored when it returned'
}

refused() {
  echo 'mode = 3' >/etc/cgphase/cgphase.toml
  systemctl start cgphased 2>/dev/null && fail 'a start with a wrong configuration succeeded'
  property_is ExecMainStatus 6 || fail "exit $(property ExecMainStatus) instead of 6"
  pause_ms 4000
  property_is ActiveState failed || fail 'the unit is restarted with a wrong configuration'
  journalctl -u cgphased -n 50 >/tmp/journal
  grep -q '/etc/cgphase/cgphase.toml:1' /tmp/journal ||
    fail "the journal does not name file and line: $(tail -n 9 /tmp/journal)"
  echo 'a wrong configuration: exit 6, not restarted'
}

# Bytes that a terminal would interpret, a quote, and a byte that is not text. In the journal they
# are escaped, and JSON doubles the backslashes.
hostile=$'evil\e[2J"\xff'
hostile_told='/evil\\x1b[2J\"\\xff'

# Prints the entries of one message since the last start as JSON lines that contain all parts.
# MESSAGE is its name in agent/logging/log_entry.cpp.
entries() {  # MESSAGE PART...
  local id found part
  id=$(sed -n "s/.*Message::$1, \"\([0-9a-f]*\)\".*/\1/p" "$tree/agent/logging/log_entry.cpp")
  [ -n "$id" ] || fail "no message $1"
  found=$(journalctl -q -o json _SYSTEMD_INVOCATION_ID="$invocation" MESSAGE_ID="$id")
  for part in "${@:2}"; do found=$(grep -F "$part" <<<"$found"); done
  [ -n "$found" ] && echo "$found"
}

has() {  # MESSAGE PART...
  entries "$@" >/dev/null || fail "no $1 with ${*:2}: $(entries "$1")"
}

both_lowered() {
  [ "$(<"$root/system.slice/plain.service/memory.high")" != max ] &&
    [ "$(<"$root/$hostile/memory.high")" != max ]
}
told_in_journal() {
  local change=('"DECISION_ID":"' '"PHASE":"' '"REASON":"' '"CONTAINER_ID":"' '"PRIORITY":"5"'
    '"SYSLOG_IDENTIFIER":"cgphased"')
  local plain=('"CGROUP_PATH":"/system.slice/plain.service"' '"KNOB":"memory.high"' "${change[@]}")
  local evil=("\"CGROUP_PATH\":\"$hostile_told\"" "${change[@]}")
  local invocation
  make_container "$hostile" 'max 100000' 67108864 0
  sed -i 's|"/system.slice/plain.service"|&, "/evil*"|' /etc/cgphase/cgphase.toml
  must systemctl start cgphased
  invocation=$(property InvocationID)
  until_true 60000 entries limit_lowered "${plain[@]}" '"OLD":"max"' >/dev/null ||
    fail "no lowered memory.high in the journal: $(entries limit_lowered)"
  until_true 60000 entries limit_lowered "${evil[@]}" >/dev/null ||
    fail "no hostile name in the journal: $(entries limit_lowered)"
  has started '"MODE":"enforce"' '"PRIORITY":"6"'
  until_true 60000 both_lowered || fail "a limit was raised meanwhile: $(entries limit_raised)"
  must systemctl stop cgphased
  has limit_restored "${plain[@]}" '"NEW":"max"' '"REASON":"restored"'
  has limit_restored "${evil[@]}" '"REASON":"restored"'
  has stopped '"MESSAGE":"stopped: '
  journalctl -x _SYSTEMD_INVOCATION_ID="$invocation" KNOB=memory.high >/tmp/explained
  grep -q 'Subject: plain.service: memory.high was lowered to [0-9]' /tmp/explained ||
    fail "journalctl -x does not explain: $(tail -n 20 /tmp/explained)"
  grep -q 'The limit memory.high of cgroup /system.slice/plain.service was max' \
    /tmp/explained || fail "the catalog lacks fields: $(tail -n 20 /tmp/explained)"
  grep -q 'Subject: plain.service: memory.high was put back to max' /tmp/explained ||
    fail "no restore is explained: $(tail -n 20 /tmp/explained)"
  journalctl -u cgphased -o cat --all >/tmp/explained
  ! LC_ALL=C grep -q $'[\e\xff]' /tmp/explained ||
    fail 'raw bytes of a name in the journal'
  echo 'the journal has all lowerings and restores, with fields and catalog'
}

install_programs
must systemd-run --quiet --unit plain -p MemoryMax=64M -p CPUQuota=50% sleep 1000
original=$(snapshot $cgroups)
without_configuration
enforce
killed
all_killed
out_of_memory
hung
reloaded
reloaded_with_option
stopped
told_in_journal
refused
finish
