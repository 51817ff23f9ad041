#!/bin/bash
# The package on a whole Debian with systemd and its suite's own kernel, which has what user-mode
# Linux lacks, as far as emulation goes: the installation changes no limit, `cgphase status`
# answers, phases are learned from what was recorded here, a service that works in them has its
# limits lowered, a stop and the removal restore them, and purge leaves nothing.
# own_kernel_test.sh FOLDER, run by tests/kernel/psi_guest --image; the package lies in FOLDER.
# shellcheck disable=SC2154  # what the fixtures set
package=$(find "$1" -name 'cgphase_*.deb')
export DEBIAN_FRONTEND=noninteractive
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR/../engines source=../engines/unit_fixture.sh
. "$(dirname "$0")/../engines/unit_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=package_fixture.sh
. "$(dirname "$0")/package_fixture.sh"

cgroups=system.slice/plain.service
# Computes, holds memory, and does nothing, some seconds each. It computes for a time, not for an
# amount, and starts no program for it: an emulated processor would be too slow for the quota, there
# would be nothing to save, and what is throttled is left alone. For the same reason its quota is
# more than one processor, as dd takes the whole of one while it writes.
work=/run/plain
cat >$work <<'WORK'
exec {never}<> <(:)
while :; do
  end=$((SECONDS + 8))
  while [ $SECONDS -lt $end ]; do
    until=$((${EPOCHREALTIME/./} + 40000))
    while [ "${EPOCHREALTIME/./}" -lt $until ]; do :; done
    read -rt 0.16 -u "$never"
  done
  dd if=/dev/zero of=/dev/shm/data bs=1M count=24 2>/dev/null; sleep 5
  rm /dev/shm/data; sleep 5
done
WORK

answers() { cgphase status --json >/tmp/status 2>/dev/null; }

installed() {
  local start
  must apt-get -q -y install "$package" </dev/null >/tmp/apt.log
  start=$(now_ms)
  until_true 10000 answers || fail "no answer within 10 s: $(journalctl -u cgphased -n 20)"
  echo "installed: status answers after $(($(now_ms) - start)) ms"
  grep -q '"mode": *"observe"' /tmp/status || fail "the mode is not observe: $(cat /tmp/status)"
  property_is ActiveState active || fail 'not started'
  pause_ms 5000
  all_original || fail "observing changed a limit: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail 'the installation reloaded systemd'
  [ "$(ss -Hltun)" = "$ports" ] || fail "a port is open: $(ss -Hltun)"
  system
  cgphase status
  diagnosed
}

# Nothing keeps it from working here, and each version is told.
diagnosed() {
  local word
  cgphase doctor >/tmp/doctor || fail 'doctor found something that fails'
  cat /tmp/doctor
  for word in "kernel *Linux $(uname -r)" 'systemd *systemd manages this machine' \
    'programs *cgphased [0-9.]*, libbpf [0-9.]*, SQLite [0-9.]*, systemd [0-9]'; do
    grep -q "^ok  *$word" /tmp/doctor || fail "doctor does not tell '$word'"
  done
}

configure() {  # MODE, with rails for seconds instead of hours
  export CGPHASE_TEST_KEYS=1
  must systemctl set-environment CGPHASE_TEST_KEYS=1
  cat >/etc/cgphase/conf.d/plain.toml <<TOML
mode = "$1"
include = ["/$cgroups"]
$2
[enforce]
cgroups = ["/$cgroups"]
[rails]
enough_samples = 5
enough_runs = 1
cool_down = "1s"
quarantine = "1s"
trial = "1s"
trial_model_steps = 1
trial_tolerance_ratio = 10.0
host_lower_window = "1s"
host_lowers_per_window = 100
cpu_lower_window = "1s"
memory_lower_window = "1s"
memory_headroom_bytes = "8M"
memory_step_ratio = 0.5
dwell = "1s"
settle = "0s"
start_up = "0s"
stand_down = "5min"
quiet_cpu_some_avg10 = 1.0
quiet_memory_io_some_avg10 = 1.0
TOML
  must cgphased --check-config
  must systemctl restart cgphased
  until_true 60000 answers || fail 'no answer within 60 s of a start'
}

trained() {
  configure observe ''
  must cgphase -q record --for 75s -o /tmp/here.csv "/$cgroups"
  all_original || fail 'observing changed a limit'
  must cgphase -q train --clusters 3 --epochs 40 -o /etc/cgphase/here.json /tmp/here.csv \
    2>/tmp/trained  # on the console it would tell of its progress
  echo "observed: $(wc -l </tmp/here.csv) samples, a model made of them"
}

# A quota of more than one processor is lowered when it is less than one, so that it is in force
# where there is one only: less than the period, which stands behind it.
both_lowered() {
  local knob meant in_force
  while IFS='=' read -r knob meant; do
    case $knob in */memory.high | */cpu.max) ;; *) continue ;; esac
    read -r in_force _ <"$root/$knob" && is_below "$in_force" "${meant#* }" || return 1
  done <<<"$original"
}

enforced() {
  configure enforce 'model = "/etc/cgphase/here.json"
policy = "hold"'
  if until_true 240000 both_lowered; then
    echo "enforced: $(snapshot $cgroups | grep -E 'cpu.max=|memory.high=' | tr '\n' ' ')"
  else
    fail "not lowered within 4 min: $(snapshot $cgroups)"
    cgphase list -o wide
    cgphase events
  fi
  until_true 120000 two_phases "/$cgroups" || fail "fewer than two phases: $(cat /tmp/shown)"
  grep -q '^oom_kill 0' "$root/$cgroups/memory.events" || fail 'something was killed'
  cgphase list
  cgphase status | grep 'sampling ok, BPF' || fail "no walk by BPF: $(cgphase status)"
}

restored() {  # BY-WHAT
  until_true "$restore_limit_ms" all_original ||
    fail "not restored by $1: $(diff <(echo "$original") <(snapshot $cgroups))"
  echo "$1: every limit is the original"
}

ended() {
  must systemctl stop cgphased
  restored 'a stop'
  must systemctl start cgphased
  until_true 240000 some_changed || fail 'not lowered again after a start'
  must apt-get -q -y remove cgphase </dev/null >/tmp/apt.log
  restored 'the removal'
  [ ! -e /usr/sbin/cgphased ] || fail 'the program is still there'
  must apt-get -q -y purge cgphase </dev/null >/tmp/apt.log
  nothing_left
  [ "$(units_loaded)" = "$loaded" ] || fail 'systemd was reloaded'
  echo 'purged: nothing is left, systemd was never reloaded'
}

[ -n "$package" ] || { echo "FAILED: no package in $1"; exit 1; }
must systemd-run --quiet --unit plain -p MemoryMax=128M -p MemorySwapMax=0 -p CPUQuota=150% \
  bash $work
original=$(snapshot $cgroups)
loaded=$(units_loaded)
ports=$(ss -Hltun)
installed
trained
enforced
ended
finish
