#!/bin/bash
# A program that starts in a lowered container finds the same limits as in a twin that is not
# managed. It is a small program, and a Java machine that sizes itself by the limits. Limits that a
# running Java machine rereads are not lowered. The test runs with program starts reported by BPF,
# and without (user-mode Linux). Without JAVA only the small program is tested.
# daemon_programs.sh PROGRAMS [JAVA]
# rule: MEM-07
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"
java=${2:-}
limits=('60000 100000' 268435456)
cgroups="test-steps ${java:+test-java}"

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@"; }
lowered() {  # by memory.high, which had no limit before
  local now
  read -r now <"$root/$1/memory.high" && [ "$now" != max ]
}
quota_lowered() {
  local now
  read -r now _ <"$root/$1/cpu.max" && [ "$now" -lt 60000 ]
}
both_lowered() { lowered test-steps && quota_lowered test-steps; }

# Prints the output of COMMAND run in a cgroup.
run_in() {  # CGROUP COMMAND...
  local cgroup=$1
  shift
  (echo "$BASHPID" >"$root/$cgroup/cgroup.procs" && exec "$@") 2>&1
}

# A file that the container has not run before. Without BPF the daemon detects program starts by
# that. The delay of one second is enough for a check four times a second.
cp "$(type -P bash)" /tmp/small || exit 1
small=(/tmp/small -c 'read -rt 1 <> <(:)
  for limit in cpu.max memory.high memory.max; do echo "$(<"$0/$limit")"; done')
sizes=("$java" -XshowSettings:all -version)
# Keeps the lines about limits and the machine's own sizes.
sized() { grep -E 'CPU|Memory Limit|Heap' ; }

same_as_twin() {  # WHAT COMMAND...
  local what=$1 found expected
  shift
  until_true 120000 both_lowered ||
    fail "$what: the limits are not both lowered: $(snapshot test-steps)"
  expected=$("$@" twin)
  found=$("$@" test-steps)
  [ -n "$found" ] || fail "$what printed nothing"
  [ "$found" = "$expected" ] || fail "$what found"$'\n'"$found"$'\n'"its twin found"$'\n'"$expected"
  echo "$what in a lowered container finds the same as its twin: ${found//$'\n'/, }"
}
small_in() { run_in "$1" "${small[@]}" "$root/$1"; }
java_in() { run_in "$1" "${sizes[@]}" | sized; }

# Either limits were restored, or a lowering that was on its way became void.
reported() {
  cli events test-steps | grep -qE 'a new program started|a program started before it was written'
}
keeps_quota() {
  until_true 120000 lowered test-java ||
    fail "the memory of a Java machine is not lowered: $(cli explain test-java)"
  ! quota_lowered test-java || fail 'the quota of a Java machine was lowered although it rereads it'
  cli list -o wide | grep -q 'test-java.*cpu reads_limits' ||
    fail "list does not say why its quota stays: $(cli list -o wide)"
  echo 'a running Java machine: its memory is lowered, its quota stays and list says why'
}

for name in $cgroups twin; do make_container "$name" "${limits[@]}" 0; done
[ -z "$java" ] ||
  run_in test-java "$java" -Xint -m java.rmi/sun.rmi.registry.RegistryImpl 1099 >/tmp/java.log &
original=$(snapshot $cgroups)
write_config '/test*'
# An emulated processor always has pressure. That would block lowerings and is not the subject here.
sed -i 's/^start_up = .*/start_up = "10s"\
quiet_memory_io_some_avg10 = 1.0\
quiet_cpu_some_avg10 = 1.0/' /tmp/cgphase.toml
start_daemon
same_as_twin 'a small program' small_in
until_true 10000 reported ||
  fail "events do not say why the limits were restored: $(cli events test-steps)"
if [ -n "$java" ]; then
  same_as_twin 'a Java machine' java_in
  keeps_quota
fi
kill -TERM "$daemon"
wait "$daemon" || fail 'the daemon did not exit with 0'
all_original || fail "not all limits are restored after the stop: $(difference)"
finish
