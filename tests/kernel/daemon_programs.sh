#!/bin/bash
# A program that starts in a lowered container finds the limits that its twin finds in one of the
# same limits that nobody manages: a small program, and a Java machine that sizes itself by them.
# What a Java machine reads again while it runs stays as it is. Where BPF tells of programs, and
# where it does not (user-mode Linux); without JAVA the small one alone.
# daemon_programs.sh PROGRAMS [JAVA]
# rule: MEM-07
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"
java=${2:-}
limits=('60000 100000' 268435456)
cgroups="test-steps ${java:+test-java}"

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@"; }
lowered() {  # CGROUP; of its memory.high, which nobody had set
  local now
  read -r now <"$root/$1/memory.high" && [ "$now" != max ]
}
quota_lowered() {
  local now
  read -r now _ <"$root/$1/cpu.max" && [ "$now" -lt 60000 ]
}
both_lowered() { lowered test-steps && quota_lowered test-steps; }

# What COMMAND says when it runs in a cgroup.
run_in() {  # CGROUP COMMAND...
  local cgroup=$1
  shift
  (echo "$BASHPID" >"$root/$cgroup/cgroup.procs" && exec "$@") 2>&1
}

# A file that the container has not run before: by these it is seen who starts where BPF tells
# nothing. It gives one who looks four times a second the time for it.
cp "$(type -P bash)" /tmp/small || exit 1
small=(/tmp/small -c 'read -rt 1 <> <(:)
  for limit in cpu.max memory.high memory.max; do echo "$(<"$0/$limit")"; done')
sizes=("$java" -XshowSettings:all -version)
# What it says of the limits and of itself, of all that it tells.
sized() { grep -E 'CPU|Memory Limit|Heap' ; }

same_as_twin() {  # WHAT COMMAND...
  local what=$1 found expected
  shift
  until_true 120000 both_lowered ||
    fail "$what: not both limits are lowered: $(snapshot test-steps)"
  expected=$("$@" twin)
  found=$("$@" test-steps)
  [ -n "$found" ] || fail "$what: it says nothing"
  [ "$found" = "$expected" ] || fail "$what: found"$'\n'"$found"$'\n'"its twin"$'\n'"$expected"
  echo "$what in a lowered container finds what its twin does: ${found//$'\n'/, }"
}
small_in() { run_in "$1" "${small[@]}" "$root/$1"; }
java_in() { run_in "$1" "${sizes[@]}" | sized; }

# What was put back; or what was on its way down, and is void.
told() {
  cli events test-steps | grep -qE 'a new program started|a program started before it was written'
}
keeps_quota() {
  until_true 120000 lowered test-java ||
    fail "the memory of a Java machine is not lowered: $(cli explain test-java)"
  ! quota_lowered test-java || fail 'the quota of a Java machine was lowered, which reads it again'
  cli list -o wide | grep -q 'test-java.*cpu reads_limits' ||
    fail "why its quota stays is not told: $(cli list -o wide)"
  echo 'a Java machine that runs: its memory comes down, its quota stays and list says why'
}

for name in $cgroups twin; do make_container "$name" "${limits[@]}" 0; done
[ -z "$java" ] ||
  run_in test-java "$java" -Xint -m java.rmi/sun.rmi.registry.RegistryImpl 1099 >/tmp/java.log &
original=$(snapshot $cgroups)
write_config '/test*'
# An emulated processor is never quiet: that holds lowerings elsewhere, and is not asked for here.
sed -i 's/^start_up = .*/start_up = "10s"\
quiet_memory_io_some_avg10 = 1.0\
quiet_cpu_some_avg10 = 1.0/' /tmp/cgphase.toml
start_daemon
same_as_twin 'a small program' small_in
until_true 10000 told || fail "what put the limits back is not told: $(cli events test-steps)"
if [ -n "$java" ]; then
  same_as_twin 'a Java machine' java_in
  keeps_quota
fi
kill -TERM "$daemon"
wait "$daemon" || fail 'the daemon did not stop well'
all_original || fail "not all is original after the stop: $(difference)"
finish
