#!/bin/bash
# `cgphase doctor` on a kernel that was booted without PSI and the memory controller and is locked
# down. The daemon must behave as doctor says.
# doctor_degraded.sh PROGRAMS, in a guest of psi_guest with --append "psi=0 cgroup_disable=memory
# lockdown=confidentiality".
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

output=$("$bin/cgphase" doctor)
[ $? = 1 ] || fail 'doctor reported no failure'
says() { [[ $output == *"$1"* ]] || fail "doctor does not say '$1': $output"; }

says 'the memory controller is switched off: containers are only observed'
says '-> boot with cgroup_enable=memory'
says 'no pressure stall information: refaults'
says '-> boot with psi=1'
says 'the kernel is locked down (confidentiality): '
says 'kernel type information for eBPF'  # Debian's kernel has it
says 'the bpf system call'
[[ $output != *'no memory controller in cgroup v2'* ]] ||
  fail "doctor reports the controller twice: $output"

echo '+cpu -io' >"$root/cgroup.subtree_control"
mkdir "$root/test"
output=$("$bin/cgphase" doctor)
says 'cpu.max is there'
says 'the root cgroup does not enable the io controller: '
says '-> echo +io >'
says 'systemd does not manage this machine: '
says "$("$bin/cgphased" --version | head -n 1), libbpf "
[[ $output != *'memory.reclaim'* ]] ||
  fail "doctor reports memory.reclaim although memory is off: $output"

message=$("$bin/cgphased" --cgroup-root "$root" --state-dir /tmp/s --runtime-dir /tmp/r \
  --model "$tree/model/default_model.json" --mode enforce 2>&1)
[ $? = 6 ] || fail "the daemon did not exit with 6: $message"
[[ $message == *memory* ]] || fail "the daemon does not name the controller: $message"
finish
