#!/bin/bash
# The fast path's signals reach the daemon at once. The interval is ten seconds, but somebody else's
# limit is judged within three. The kill switch restores. When processes end, the original limits
# are back. status names the fast path's sources and says what is missing.
# daemon_notices.sh PROGRAMS
# rule: S-01, S-08
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

cgroups='test-idle test-ending'
notice_ms=3000

cli() { "$bin/cgphase" --socket /tmp/r/read.sock "$@"; }
knows_limit() { cli show test-idle --json | grep -q "\"memory_max_bytes\": *$1\\b"; }
memory_is() { [ "$(cat "$root/$1/memory.high")" = "$2" ]; }
lowered() { ! memory_is test-idle max && ! memory_is test-ending max; }

# Several writes, because a regular reading may happen to follow one of them at once.
foreign_writes() {
  local mib
  for mib in 121 122 123 124; do
    echo "${mib}M" >"$root/test-idle/memory.max"
    until_true "$notice_ms" knows_limit $((mib << 20)) ||
      fail "a limit of $mib MiB by somebody else: not read within $notice_ms ms"
  done
}

sources() {
  cli status | grep -q 'fast path: inotify' || fail 'status does not name inotify'
  cli status | grep -q 'fast path: pressure triggers.*no PSI' ||
    fail 'status does not say why there are no pressure triggers'
  cli status | grep -q 'eBPF: who writes limits off.*\(CONFIG_DEBUG_INFO_BTF\|BPF program\)' ||
    fail 'status does not say why writers of limits cannot be named'
}

# The main loop reacts without a reading in between. The test begins right after a reading.
readings() { cli history test-idle -o jsonl | grep -c .; }
another_reading() { [ "$(readings)" -gt "$1" ]; }
kill_switch() {
  local before
  until_true 30000 another_reading "$(readings)" || fail 'no reading within 30 s'
  before=$(readings)
  touch /tmp/disabled
  until_true "$notice_ms" all_original ||
    fail "the kill switch did not restore: $(snapshot $cgroups)"
  [ "$(readings)" = "$before" ] || fail 'the kill switch took effect only after a reading'
  rm /tmp/disabled
  until_true 150000 lowered || fail 'without the kill switch memory was not lowered again'
}

make_container test-idle '150000 100000' 134217728 0
make_container test-ending '150000 100000' 134217728 0
load=$!
write_config '/test*'
sed -i 's/^interval = .*/interval = "10s"/' /tmp/cgphase.toml
sed -i '1i kill_switch = "/tmp/disabled"' /tmp/cgphase.toml
original=$(snapshot $cgroups)
start_daemon
until_true 150000 lowered || { fail 'memory was not lowered within 150 s'; finish; }
kill_switch
kill -KILL "$load"
wait "$load" 2>/dev/null
until_true "$notice_ms" memory_is test-ending max ||
  fail "after the last process ended, memory.high is still $(cat "$root/test-ending/memory.high")"
foreign_writes
sources
kill -TERM "$daemon"
wait "$daemon" || fail 'SIGTERM: the daemon failed'
finish
