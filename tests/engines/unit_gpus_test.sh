#!/bin/bash
# The unit on a host with an NVIDIA driver, which here is a fake that needs its device. As
# installed, the unit sees no device, and status says so. With gpu.conf the library is loaded, all
# other hardening stays, and GPUs are reported with the container that uses them. unit_gpus_test.sh
# PROGRAMS LIBRARY, run by scripts/guest --image.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=unit_fixture.sh
. "$(dirname "$0")/unit_fixture.sh"

library=$2
units=/etc/systemd/system/cgphased.service.d
uuid=GPU-8f1e9a3c-0b52-4c1e-a7d3-5d2f6e9b1c04

shows() {  # PATTERN COMMAND...
  local pattern=$1
  shift
  cgphase "$@" >/tmp/shown 2>&1 && grep -qE "$pattern" /tmp/shown
}
expect() {  # WHAT PATTERN COMMAND...
  local what=$1
  shift
  until_true 90000 shows "$@" && echo "$what: $(grep -m 1 -E "$1" /tmp/shown)" && return
  fail "$what: $(cat /tmp/shown; journalctl -u cgphased -n 5)"
}

# The library is installed like a real driver and found by its name. The device number is NVIDIA's,
# and no device is behind it.
install_driver() {
  cp "$library" "/usr/lib/$(uname -m)-linux-gnu/libnvidia-ml.so.1"
  must mknod /dev/nvidiactl c 195 255
  mkdir -p "$units" /etc/cgphase
  printf '[Service]\nEnvironment=FAKE_NVML=/etc/nvml\n' >"$units/imitation.conf"
  printf '%s\n' 'needs /dev/nvidiactl' "device $uuid 8589934592 4294967296 90 50" \
    "process $uuid $(property MainPID plain) 2147483648 compute 0 0" >/etc/nvml
  printf 'include = ["/system.slice/plain.service"]\n' >/etc/cgphase/cgphase.toml
}

restart() {
  must systemctl daemon-reload
  must systemctl restart cgphased
}

# The library and a visible device are not enough: systemd's device rules must allow it too.
without_rules() {
  printf '[Service]\nPrivateDevices=no\n' >"$units/gpu.conf"
  restart
  expect 'a device that is visible and not allowed' \
    'GPU telemetry off: NVML: .*Driver Not Loaded \(9\); no other GPU' status
}

install_programs
must systemd-run --quiet --unit plain -p MemoryMax=64M -p CPUQuota=50% sleep 1000
install_driver
restart
expect 'without gpu.conf' \
  'GPU telemetry off: NVML: .*Driver Not Loaded \(9\); the NVIDIA devices .* are hidden' status
without_rules
# At boot the driver may load after the unit has started. The unit is not restarted for it.
rm /dev/nvidiactl
install -D -m 644 "$tree/systemd/gpu.conf" "$units/gpu.conf"
restart
expect 'no driver yet' 'GPU telemetry off' status
must mknod /dev/nvidiactl c 195 255
expect 'with gpu.conf' 'GPU telemetry ok, 1 GPU \(Fake GPU\), 1 process' status
expect 'the GPU' "$uuid Fake GPU: 90 % busy, 4.0 GiB of 8.0 GiB" status
expect 'its container' "2.0 GiB, on $uuid" show plain.service
for hardening in MemoryDenyWriteExecute PrivateNetwork NoNewPrivileges; do
  property_is "$hardening" yes || fail "gpu.conf disables $hardening"
done
# The exposure is 1.9 without gpu.conf, which allows a device.
systemd-analyze security --no-pager --threshold=21 cgphased.service >/tmp/security ||
  fail "the unit is too exposed: $(tail -n 1 /tmp/security)"
finish
