#!/bin/bash
# The package on a whole Debian with systemd and its suite's own kernel, which is emulated and has
# what user-mode Linux lacks. The installation changes no limit, and `cgphase status` answers.
# Phases are learned from a recording, and a service with these phases has its limits lowered. A
# stop and the removal restore them, and purge leaves nothing.
# own_kernel_test.sh FOLDER, run by tests/kernel/psi_guest --image; the package is in FOLDER.
# shellcheck disable=SC2154  # set by the fixtures
package=$(find "$1" -maxdepth 1 -name 'cgphase_*.deb')
export DEBIAN_FRONTEND=noninteractive
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR/../engines source=../engines/unit_fixture.sh
. "$(dirname "$0")/../engines/unit_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=package_fixture.sh
. "$(dirname "$0")/package_fixture.sh"

cgroups=system.slice/plain.service
# Computes, uses memory, and is idle, some seconds each. It computes for a time and not for an
# amount, and starts no program for that. Otherwise an emulated processor would be too slow for the
# quota: nothing could be saved, and a throttled container is not lowered. For the same reason its
# quota is more than one processor, because dd uses a whole one while it writes.
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
  until_true 10000 answers ||
    fail "cgphase status does not answer within 10 s: $(journalctl -u cgphased -n 20)"
  echo "installed: status answers after $(($(now_ms) - start)) ms"
  grep -q '"mode": *"observe"' /tmp/status || fail "the mode is not observe: $(cat /tmp/status)"
  property_is ActiveState active || fail 'the unit is not active'
  pause_ms 5000
  all_original || fail "observing changed a limit: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail 'the installation reloaded systemd'
  [ "$(ss -Hltun)" = "$ports" ] || fail "a port is open: $(ss -Hltun)"
  system
  cgphase status
  diagnosed
}

# doctor finds no problem here and reports each version.
diagnosed() {
  local word
  cgphase doctor >/tmp/doctor || fail 'doctor reported a failure'
  cat /tmp/doctor
  for word in "kernel *Linux $(uname -r)" 'systemd *systemd manages this machine' \
    'programs *cgphased [0-9.]*, libbpf [0-9.]*, SQLite [0-9.]*, systemd [0-9]'; do
    grep -q "^ok  *$word" /tmp/doctor || fail "doctor does not report '$word'"
  done
}

configure() {  # MODE, with safety rules of seconds instead of hours
  export CGPHASE_TEST_KEYS=1
  must systemctl set-environment CGPHASE_TEST_KEYS=1
  cat >/etc/cgphase/conf.d/plain.toml <<TOML
mode = "$1"
include = ["/$cgroups"]
$2
[enforce]
cpu = "both"
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
  until_true 60000 answers || fail 'cgphase status does not answer within 60 s of a start'
}

trained() {
  configure observe ''
  must cgphase -q record --for 75s -o /tmp/here.csv "/$cgroups"
  all_original || fail 'observing changed a limit'
  must cgphase -q train --clusters 3 --epochs 40 -o /etc/cgphase/here.json /tmp/here.csv \
    2>/tmp/trained  # else its progress would be on the console
  echo "observed: $(wc -l </tmp/here.csv) samples, a model trained on them"
}

# Whether both limits are lowered. A quota of more than one processor counts as lowered only below
# one, so that it takes effect on one processor. So it is compared with the period, the second
# number.
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
  grep -q '^oom_kill 0' "$root/$cgroups/memory.events" || fail 'a process was killed'
  cgphase list
  cgphase status | grep 'sampling ok, BPF' ||
    fail "status does not report sampling by BPF: $(cgphase status)"
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
  [ ! -e /usr/sbin/cgphased ] || fail '/usr/sbin/cgphased still exists'
  must apt-get -q -y purge cgphase </dev/null >/tmp/apt.log
  nothing_left
  [ "$(units_loaded)" = "$loaded" ] || fail 'systemd was reloaded'
  echo 'purged: nothing is left, systemd was never reloaded'
}

[ -n "$package" ] || { echo "FAILED: no cgphase_*.deb in $1; run scripts/package"; exit 1; }
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
