#!/bin/bash
# The history file is corrupt, or from a newer cgphase, or open in another process. The daemon
# starts anyway, lowers and restores limits, `status` reports the problem, and the file is not
# changed. The next daemon closes the trials that a killed daemon left open in its journal.
# daemon_bad_history.sh PROGRAMS
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

cgroups=test-idle
history=$state/history.db

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@"; }
answers() { cli -q status >/dev/null 2>&1; }
says() { cli status | grep -q "$1"; }
in_file() { [ "$(cli events test-idle -o csv --no-legend 2>/dev/null | wc -l)" -gt 0 ]; }

starts() {  # WHERE SENTENCE
  start_daemon
  until_true 20000 answers || fail "$1: the daemon does not answer"
  says "$2" || fail "$1: status does not report '$2': $(cli status)"
  await_change "$1"
}

stops() {  # WHERE
  kill -TERM "$daemon"
  wait "$daemon" || fail "$1: the daemon did not exit with 0"
  until_true "$restore_limit_ms" all_original ||
    fail "$1: not all limits are restored: $(snapshot $cgroups)"
}

well() {
  starts well '^store .*, ok$'
  until_true 20000 in_file || fail 'well: cgphase events prints no event'
  stops well
}

# After the first lowering the trials follow each other, so that one is always open.
killed() {
  local since=$EPOCHSECONDS
  starts killed '^store .*, ok$'
  until_true 20000 open_in_journal || fail "killed: no trial is open: $(cli events -n 5)"
  kill -KILL "$daemon"
  wait "$daemon" 2>/dev/null
  until_true "$restore_limit_ms" all_original || fail 'killed: not all limits are restored'
  open_in_journal --state-dir "$state" || fail 'killed: no trial was open, so nothing is proved'
  "$bin/cgphased" --config /tmp/cgphase.toml --mode observe --cgroup-root "$root" \
    --state-dir "$state" --runtime-dir "$runtime" >>/tmp/daemon.log 2>&1 &
  daemon=$!
  until_true 20000 answers ||
    fail "killed: the next daemon does not answer: $(tail -n 3 /tmp/daemon.log)"
  open_in_journal && fail "killed: the trial is still open: $(cli explain test-idle)"
  cli events test-idle --since "@$since" | grep -q 'the daemon or the container ended first' ||
    fail "killed: no event ends the trial: $(cli events -n 5)"
  stops killed
}
open_in_journal() {
  cli explain test-idle "$@" | grep -q 'not answered yet\|its trial is not over'
}

corrupt() {
  dd if=/dev/urandom of="$history" bs=4096 count=4 conv=notrunc status=none
  cp "$history" /tmp/corrupt
  starts corrupt "^lost .*kept as $history.corrupt-1"
  cmp "$history.corrupt-1" /tmp/corrupt || fail 'corrupt: the quarantined file has changed'
  until_true 20000 in_file || fail 'corrupt: the new history has no event'
  stops corrupt
}

# The schema number is in the SQLite header (user_version, 4 bytes at offset 60).
newer() {
  [ ! -e "$history-wal" ] || fail 'newer: a -wal is left, so the file alone proves nothing'
  cp "$history" /tmp/ours
  printf '\0\0\0\143' | dd of="$history" bs=1 seek=60 conv=notrunc status=none
  cp "$history" /tmp/newer
  starts newer 'schema 99 is newer than'
  cli history test-idle >/tmp/said 2>&1 &&
    fail "newer: the daemon answers from the history: $(cat /tmp/said)"
  stops newer
  cmp "$history" /tmp/newer || fail 'newer: the file has changed'
  cp /tmp/ours "$history"
}

# Another process has the file open when the daemon starts. The daemon opens it when that process
# ends.
store_is_well() { cli status 2>/dev/null | grep -q '^store .*, ok$'; }
held() {
  local holder
  /usr/bin/python3 -c "import sqlite3, time
held = sqlite3.connect('$history')
held.execute('BEGIN EXCLUSIVE')
open('/tmp/held', 'w').close()
time.sleep(1000)" &
  holder=$!
  until_true 10000 test -e /tmp/held ||
    fail 'held: no other process has the file open, so nothing is proved'
  starts held 'in use by another process'
  kill -KILL "$holder"
  wait "$holder" 2>/dev/null
  until_true 20000 store_is_well ||
    fail "released: status does not report the store as ok: $(cli status)"
  until_true 20000 in_file || fail 'released: the earlier history is gone'
  stops 'released'
}

make_container test-idle '150000 100000' 134217728 1
original=$(snapshot $cgroups)
write_config '/test*'
well
killed
corrupt
newer
held
finish
