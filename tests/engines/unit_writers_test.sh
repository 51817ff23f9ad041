#!/bin/bash
# The installed unit in a kernel that has BPF. The writer of a limit is reported with its unit, so
# the unit's capabilities are sufficient. Without them status says what is missing, and limits are
# still lowered. unit_writers_test.sh PROGRAMS, run by tests/kernel/psi_guest --image.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=unit_fixture.sh
. "$(dirname "$0")/unit_fixture.sh"

cgroups=system.slice/plain.service
file=$root/$cgroups/memory.max
theirs='somebody else changed the limit a short while ago'

found() { cgphase events >/tmp/events && grep -qF "$1" /tmp/events; }
source_says() { cgphase status | grep -q "eBPF: who writes limits $1"; }
expect_source() {
  until_true 20000 source_says "$1" ||
    fail "status does not say '$1': $(cgphase status; journalctl -u cgphased -n 20)"
}

named() {
  local writer
  must systemd-run --quiet --unit rival sh -c "echo 48M >$file; exec sleep 1000"
  writer="sh (pid $(property MainPID rival), rival.service) wrote memory.max 48M"
  until_true 30000 found "$theirs: $writer" || fail "'$writer' is missing in: $(cat /tmp/events)"
  cgphase explain plain.service | grep -qF "$writer" ||
    fail "explain does not say '$writer': $(cgphase explain plain.service)"
  echo "reported: $writer"
}

without_capabilities() {
  must systemctl stop cgphased rival
  mkdir -p /run/systemd/system/cgphased.service.d
  printf '[Service]\nCapabilityBoundingSet=~CAP_BPF CAP_PERFMON CAP_SYS_ADMIN\n' \
    >/run/systemd/system/cgphased.service.d/less.conf
  must systemctl daemon-reload
  original=$(snapshot $cgroups)
  must systemctl start cgphased
  await 'without capabilities'
  expect_source 'off: .*EPERM.* CAP_BPF'
  echo 'without capabilities: lowered, and status says what is missing'
}

install_programs
must systemd-run --quiet --unit plain -p MemoryMax=64M -p CPUQuota=50% sleep 1000
original=$(snapshot $cgroups)
mkdir -p /etc/cgphase/conf.d
# A slow machine has pressure all the time.
printf '%s\n' '[rails]' 'stand_down = "5min"' 'quiet_cpu_some_avg10 = 1.0' \
  'quiet_memory_io_some_avg10 = 1.0' >/etc/cgphase/conf.d/quiet.toml
enforce
await 'before anybody else wrote'
expect_source ok
named
without_capabilities
finish
