#!/bin/bash
# The way in which a kernel of the matrix counts each signal of docs/internals/ebpf.md. The cases
# are all permissions, missing capabilities, no type information, and lockdown. If something is
# refused, the daemon still runs and reads everything else. `status` has one line per signal and
# says what is missing.
# daemon_counting_ways.sh PROGRAMS KERNEL, run by tests/kernel/psi_guest.
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

kernel=$2
state=/tmp/s/1
signals=('network' 'run queue' 'block devices' 'TCP retransmits' 'who writes limits')
written_bytes=262144

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@"; }
line_of() { sed -n "s/^.*eBPF: $1 //p" /tmp/status; }
asked() {
  cli status >/tmp/status 2>&1 && [ -n "$(line_of network)" ] &&
    ! grep -Eq 'not started yet|not needed' /tmp/status
}

# The lines of status for each signal: `everything`, then the functions that change some of them.
expected=()
programs=('network' 'run_queue' 'block devices' 'TCP retransmits' 'limit_writes')
denied='Operation not permitted (EPERM)' invalid='Invalid argument (EINVAL)'
first_way='ok, tp_btf'
# 5.10 lacks task storage.
[ "$kernel" != 5.10 ] || first_way='ok, raw_tp'
# How containers are sampled: walks copy the kernel's memory and need an iterator over cgroups.
files='files, because no BPF program can walk over cgroups here: '
case $kernel in
  5.10) walk=$files ;;
  6.1) walk='BPF iterator' ;;
  *) walk='BPF css iterator' ;;
esac
everything() {
  expected=('ok, cgroup_skb' "$first_way" 'ok, tp_btf' 'ok, tp_btf' 'ok')
  sampling=$walk
}

refused_packets() {  # STEP CAPABILITIES
  expected[0]="off: $1 the BPF program network: $denied; this process lacks $2"
}
refused_tracing() {  # REASON
  local i
  for i in 1 2 3; do
    expected[i]="off: tp_btf and raw_tp: loading the BPF program ${programs[i]}: $denied; $1"
  done
  expected[4]="off: loading the BPF program limit_writes: $denied; $1"
  sampling=$files
}
without_types() {
  local i
  for i in 2 3 4; do
    expected[i]='off: this kernel has no type information (CONFIG_DEBUG_INFO_BTF)'
  done
  expected[1]='ok, tracepoint'
  sampling=$files
}
# Messages for both ways on 5.10, which cannot use the first.
refused_second_way() {  # WHY
  [ "$kernel" = 5.10 ] || return
  local tried='loading the BPF program run_queue'
  expected[1]="off: tp_btf: $tried: $invalid; raw_tp: $tried: $1"
}
locked_down() {
  local why="$invalid; the kernel is locked down (confidentiality) and lets no BPF program read"
  why+=' it; without lockdown=confidentiality on its command line it would'
  expected[4]="off: loading the BPF program limit_writes: $why"
  sampling=$files
  refused_second_way "$why"
}

# The fields of the last sample, by the column names of the trace.
declare -A sample
read_sample() {
  local names values i
  cli record -o /tmp/record.csv >/tmp/recorded 2>&1 || return
  names=$(sed -n '1p' /tmp/record.csv)
  values=$(sed -n '$p' /tmp/record.csv)
  IFS=, read -ra names <<<"$names"
  IFS=, read -ra values <<<"$values,"
  for i in "${!names[@]}"; do sample[${names[i]}]=${values[i]:-}; done
}

# A source that works is counted. One that does not work is absent, never zero.
counted() {
  read_sample && [ "${sample[cpu.usage.usec]:-0}" -gt 0 ] || return
  local i
  local -a fields=(net.tx.bytes run_queue.waits block.bytes net.tcp.retransmits)
  local -a least=(0 1 "$written_bytes" 0)
  for i in "${!fields[@]}"; do
    case $(line_of "${signals[i]}") in
      ok*) [ "${sample[${fields[i]}]:--1}" -ge "${least[i]}" ] || return ;;
      *) [ -z "${sample[${fields[i]}]}" ] || return ;;
    esac
  done
}

write_to_disk() {
  (
    echo "$BASHPID" >"$root/test-held/cgroup.procs"
    printf "%${written_bytes}s" '' >/tmp/written
    exec sync /tmp/written
  )
}

# case_of NAME COMMAND...: starts the daemon through COMMAND and compares status with $expected.
run=0
case_of() {
  local name=$1 i line
  shift
  state=/tmp/s/$((++run))
  mkdir -p "$state"
  : >/tmp/status
  "$@" "$bin/cgphased" --config /tmp/cgphase.toml --cgroup-root "$root" --state-dir "$state" \
    --runtime-dir "$runtime" --policy hold >/tmp/daemon.log 2>&1 &
  daemon=$!
  until_true 30000 asked || fail "$name: no answer: $(cat /tmp/status /tmp/daemon.log)"
  for i in "${!signals[@]}"; do
    line=$(line_of "${signals[i]}")
    echo "$kernel, $name: ${signals[i]} $line"
    [ "$line" = "${expected[i]}" ] || fail "$name: ${signals[i]} should be: ${expected[i]}"
  done
  echo "$kernel, $name: $(grep -o 'sampling ok.*' /tmp/status)"
  grep -q "sampling ok, $sampling" /tmp/status || fail "$name: sampling should be: $sampling"
  write_to_disk
  until_true 10000 counted ||
    fail "$name: the record does not match the sources: $(cat /tmp/recorded /tmp/record.csv)"
  kill -TERM "$daemon"
  wait "$daemon" || fail "$name: the daemon did not exit with 0: $(cat /tmp/daemon.log)"
  ! grep -E 'error|critical' /tmp/daemon.log || fail "$name: the daemon logged an error"
}

# Without CAP_DAC_OVERRIDE the daemon would assume that it may write no limit.
with() { exec setpriv --bounding-set="-all,+dac_override$1" "${@:2}"; }  # CAPABILITIES COMMAND...
without_lockable_memory() { ulimit -l 0 && exec "$@"; }

lacking_capabilities() {
  everything
  case_of 'no more than it takes' with ,+bpf,+perfmon,+net_admin
  refused_packets attaching CAP_NET_ADMIN
  case_of 'no CAP_NET_ADMIN' with ,+bpf,+perfmon
  everything
  refused_tracing 'this process lacks CAP_PERFMON'
  refused_second_way "$denied; this process lacks CAP_PERFMON"
  case_of 'no CAP_PERFMON' with ,+bpf,+net_admin
  refused_packets loading CAP_BPF
  refused_tracing 'this process lacks CAP_BPF'
  case_of 'no CAP_BPF' with ,+perfmon,+net_admin
  refused_packets loading 'CAP_BPF and CAP_NET_ADMIN'
  refused_tracing 'this process lacks CAP_BPF and CAP_PERFMON'
  case_of 'no capability' with ''
}

lacking_memory() {
  everything
  if [ "$kernel" = 5.10 ]; then
    local why='it takes CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN in the machine'"'"'s own user'
    why+=' namespace, and a kernel that lets its functions be traced; before Linux 5.11 also more'
    why+=' memory that may be locked than 0 B (LimitMEMLOCK=infinity)'
    refused_tracing "$why"
    expected[0]="off: loading the BPF program network: $denied; $why"
  fi
  case_of 'no lockable memory' without_lockable_memory \
    setpriv --bounding-set=-all,+dac_override,+bpf,+perfmon,+net_admin
}

lacking_types() {
  mount -t tmpfs tmpfs /sys/kernel/btf
  mount -t tracefs tracefs /sys/kernel/tracing
  everything
  without_types
  case_of 'no type information'
  refused_packets attaching CAP_NET_ADMIN
  # Debian's kernel.perf_event_paranoid is 3.
  expected[1]='off: this kernel has no type information (CONFIG_DEBUG_INFO_BTF); tracepoint:'
  expected[1]+=' attaching the BPF program run_queue_classic: Permission denied (EACCES);'
  expected[1]+=' tracepoints take CAP_SYS_ADMIN, or a kernel.perf_event_paranoid of 2 at most'
  case_of 'no type information, no CAP_NET_ADMIN' with ,+bpf,+perfmon
  umount /sys/kernel/btf /sys/kernel/tracing
}

# Lockdown cannot be undone, so this case is the last.
in_lockdown() {
  echo confidentiality >/sys/kernel/security/lockdown || fail 'no lockdown'
  everything
  locked_down
  case_of 'locked down'
  refused_packets attaching CAP_NET_ADMIN
  case_of 'locked down, no CAP_NET_ADMIN' with ,+bpf,+perfmon
}

make_container test-held '150000 100000' 134217728 3
write_config '/test-held' advise
# On an emulated processor the programs cost many times what they cost on real hardware.
printf '[bpf]\nbudget = 1.0\n' >>/tmp/cgphase.toml
ulimit -l unlimited  # as in cgphased.service
everything
case_of everything
lacking_capabilities
lacking_memory
lacking_types
in_lockdown
finish
