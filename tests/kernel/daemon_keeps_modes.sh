#!/bin/bash
# `mode enforce NAME` survives kill -9, a reload, a restart of the container and a full stop. With
# `--until-restart` it ends with the daemon, and the mode below it applies again. A damaged record
# enforces nothing.
# daemon_keeps_modes.sh PROGRAMS, in a guest.
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

cgroups='test-named test-other'

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@"; }
answers() { cli -q status >/dev/null 2>&1; }
mode_of() { cli show "$1" --json | tr -d ' \n' | grep -m 1 -o '"mode":"[a-z]*"' | head -n 1; }
mode_is() { [ "$(mode_of "$1")" = "\"mode\":\"$2\"" ]; }

start() {
  start_daemon
  until_true 20000 answers || fail "no daemon answers: $(tail -n 5 /tmp/daemon.log)"
}

crash() {
  kill -KILL "$daemon"
  wait "$daemon" 2>/dev/null
  until_true "$restore_limit_ms" all_original || fail "not restored after SIGKILL: $(difference)"
}

lowered() { [ "$(snapshot "$1")" != "$(grep "^$1/" <<<"$original")" ]; }

keeps() {  # CONTAINER MODE AFTER-WHAT
  until_true 20000 mode_is "$1" "$2" || fail "$3: $1 is $(mode_of "$1"), not $2"
  echo "$3: $1 is $2"
}

must_cli() { cli "$@" >/tmp/said 2>&1 || fail "$*: exit $?: $(cat /tmp/said)"; }

# A new cgroup of the same name, as when an engine restarts a container.
restart_container() {
  kill -KILL "$load"
  wait "$load" 2>/dev/null
  until_true 10000 rmdir "$root/test-named" 2>/dev/null || fail 'the cgroup cannot be removed'
  make_container test-named '150000 100000' $((256 << 20)) 0
  load=$!
}

make_container test-named '150000 100000' $((256 << 20)) 0
load=$!
make_container test-other '150000 100000' $((256 << 20)) 0
original=$(snapshot $cgroups)
write_config '/test-*' observe
sed -i '/^\[enforce\]/,/^cgroups/d' /tmp/cgphase.toml
start
keeps test-named observe 'at first'
must_cli mode enforce test-named
grep -q '^test-named: enforce$' /tmp/said || fail "mode enforce says: $(cat /tmp/said)"
grep -q '^undo: cgphase mode default test-named$' /tmp/said || fail "no undo: $(cat /tmp/said)"
must_cli mode enforce test-other --until-restart
keeps test-named enforce 'after the command'
keeps test-other enforce 'after the command'
await_change 'mode enforce'

crash
start
keeps test-named enforce 'after SIGKILL'
keeps test-other observe 'until the restart, after SIGKILL'
until_true 60000 lowered test-named ||
  fail "after SIGKILL test-named is not lowered: $(cli events -n 9)"
lowered test-other && fail 'test-other is lowered, but was enforced only until the restart'

kill -HUP "$daemon"
until_true 10000 grep -q 'configuration reloaded' /tmp/daemon.log ||
  fail 'the log does not report the reload'
keeps test-named enforce 'after a reload'

restart_container
keeps test-named enforce 'after a restart of the container'

must_cli mode enforce
must_cli mode observe
until_true 5000 all_original || fail "mode observe of the host does not restore: $(difference)"
keeps test-named observe 'under a host at observe'
must_cli mode default
keeps test-named enforce 'after mode default of the host'

kill -TERM "$daemon"
wait "$daemon" || fail 'the daemon did not exit with 0'
start
keeps test-named enforce 'after a stop'
cli config show --origin | grep -q 'mode of cgroup:test-named *enforce *set by `cgphase mode`' ||
  fail "config show does not report the origin: $(cli config show --origin | grep mode)"

crash
echo '{' >"$state/holds.json"
start
keeps test-named observe 'with a damaged record'
cli status | grep -q 'was damaged' ||
  fail "status does not report the damaged record: $(cli status)"
must_cli mode default
keeps test-named observe 'after mode default with a damaged record'
kill -TERM "$daemon"
wait "$daemon" || fail 'the daemon did not exit with 0'
finish
