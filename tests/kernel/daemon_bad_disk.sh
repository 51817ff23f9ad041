#!/bin/bash
# The disk of the history fills up, later it becomes read-only. Limits are lowered and restored as
# before. `status` reports the reason until the disk works again. Samples are dropped and counted.
# Afterwards all decisions are in the file. daemon_bad_disk.sh PROGRAMS
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

state=/scratch/s
cgroups=''
until=''

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@"; }
answers() { cli -q status >/dev/null 2>&1; }
well() {
  cli status --json | grep -q '"state": *"ok"' && cli status >/tmp/status &&
    ! grep -q '^degraded' /tmp/status
}
suffers() { cli status | grep -q 'the history is incomplete'; }
suffers_not() {
  cli status >/tmp/status && ! grep -q 'the history is incomplete' /tmp/status
}
suffers_for() { cli status | grep -q "^degraded *the history is incomplete: .*$1"; }
# The value may still fall, because a lowered limit may be lowered again.
lowered() { [ "$(<"$root/$1/memory.high")" != max ]; }
all_lowered() {
  local name
  for name in $cgroups; do lowered "$name" || return; done
}

make_idle() {
  mkdir "$root/$1" || exit 1
  echo '150000 100000' >"$root/$1/cpu.max"
  echo 134217728 >"$root/$1/memory.max"
  (echo "$BASHPID" >"$root/$1/cgroup.procs" && exec sleep 1000) &
  cgroups+=" $1"
  original+=${original:+$'\n'}$(snapshot "$1")  # the others may be lowered already
}

starts() {
  start_daemon
  until_true 20000 answers || fail 'the daemon does not answer'
}

json_reports() { cli status --json | grep -q "\"state\": *\"[^\"]*$1"; }
reported() {  # WHAT SENTENCE: in text and in JSON
  until_true 60000 suffers_for "$2" || fail "$1: status does not report '$2': $(cli status)"
  json_reports "$2" ||
    fail "$1: the JSON does not report '$2': $(cli status --json | grep '"state"')"
}

# CONTAINER is new, so all decisions about it are from the time of the bad disk.
goes_on() {  # WHAT CONTAINER
  cli mode observe >/tmp/said 2>&1 || fail "$1: mode observe: $(cat /tmp/said)"
  until_true 5000 all_original || fail "$1: mode observe did not restore"
  make_idle "$2"
  cli mode enforce >/tmp/said 2>&1 || fail "$1: mode enforce: $(cat /tmp/said)"
  until_true 150000 all_lowered || fail "$1: not all containers are lowered: $(cli list -o wide)"
  # A read-only disk closes the file, so no history answers.
  [ "$1" = read-only ] || until_true 20000 was_written "$2" ||
    fail "$1: the journal does not answer: $(cli events)"
  suffers || fail "$1: the disk was not bad all the time, so nothing is proved"
  until=$((EPOCHSECONDS + 1))  # after every decision of this second
}
was_written() { cli events "$1" | grep -q 'it was written'; }

heals() {  # WHAT
  until_true 60000 suffers_not || fail "$1: status still reports the disk: $(cli status)"
  until_true 20000 well || fail "$1: status is still degraded: $(cli status)"
}

decided_by() {  # CONTAINER TIME
  cli explain "$1" --at "$2" --json >/tmp/explained
  grep -q '"decision_id": *[0-9]' /tmp/explained ||
    fail "decisions about $1 are missing: $(cat /tmp/explained)"
}

flushed() {
  [ "$(cli history test-idle --until $((EPOCHSECONDS - 32)) -n 5 -o csv | grep -c '^[0-9]')" -ge 2 ]
}

# Each sample of that time is in the history or counted as dropped. The interval is one second; half
# of the ticks may be late.
accounted_for() {  # SINCE UNTIL
  local dropped rows
  dropped=$(cli status --json | sed -n 's/.*"dropped_samples": *\([0-9]*\).*/\1/p')
  rows=$(cli history test-idle --since "$1" --until "$2" -n 1000 -o csv | grep -c '^[0-9]')
  echo "$rows samples of test-idle in $(($2 - $1)) s without space, $dropped dropped"
  [ "$((rows + dropped))" -ge "$((($2 - $1) / 2))" ] ||
    fail 'samples are neither in the history nor counted as dropped'
}

# To the last byte, including ext4's reserve for root.
fill() {
  dd if=/dev/zero of=/scratch/fill bs=1M status=none 2>/dev/null
  dd if=/dev/zero of=/scratch/fill bs=512 conv=notrunc oflag=append status=none 2>/dev/null
}

# The daemon is killed once the disk works again, so the file has only what was written before.
full() {
  local since
  until_true 60000 well || fail "the daemon is degraded at the start: $(cli status)"
  until_true 60000 all_lowered || fail "not all containers are lowered: $(cli list -o wide)"
  # What was not flushed yet may be dropped with the rest.
  until_true 120000 flushed || fail 'no sample is older than a flush interval'
  fill
  since=$EPOCHSECONDS
  reported full 'less than 8.0 MiB\|SQLITE_FULL'
  goes_on full test-full
  [ "$(cli history test-idle -n 5 -o csv | grep -c .)" -ge 2 ] ||
    fail "the history does not answer: $(cli history test-idle -n 5 2>&1)"
  rm /scratch/fill
  heals full
  accounted_for "$since" "$until"
  decided_by test-full "$until"
  kill -KILL "$daemon"
  wait "$daemon" 2>/dev/null
  until_true "$restore_limit_ms" all_original || fail 'full: not all limits are restored at the end'
}

# Like an emergency: an administrator's remount is refused while the daemon has its file open.
# Linux 6.1 accepts writes to an open file of such an ext4 for a while. Once it refuses, the daemon
# closes the file, and the history does not answer until the disk works again.
read_only() {
  starts
  decided_by test-full "$until"
  until_true 60000 all_lowered || fail "not all containers are lowered: $(cli list -o wide)"
  echo u >/proc/sysrq-trigger
  until_true 10000 refuses || fail 'the disk cannot be made read-only'
  reported read-only 'is read-only\|disk I/O error\|not writable'
  goes_on read-only test-read-only
  mount -o remount,rw /scratch || fail 'the disk stays read-only'
  heals read-only
  decided_by test-read-only "$until"
}
refuses() { ! touch /scratch/touched 2>/dev/null; }

make_idle test-idle
write_config '/test*'
cat >>/tmp/cgphase.toml <<'END'
[store]
cap = "16M"
min_free = "8M"
END
starts
full
read_only
kill -TERM "$daemon"
wait "$daemon" || fail 'the daemon did not exit with 0'
until_true "$restore_limit_ms" all_original || fail 'not all limits are restored at the end'
finish
