#!/bin/bash
# The nightly training in its hardened unit of a real systemd. It gets the history from the daemon,
# trains, compares and reports the result. Its permissions and its cost are bounded. A model that it
# installs is used at once, and no limit changes.
# unit_trains_test.sh PROGRAMS, run by scripts/guest --image.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=unit_fixture.sh
. "$(dirname "$0")/unit_fixture.sh"

cgroups=system.slice/work.service
original=''
# Computes for two seconds, then is idle for two.
work='while :; do
  end=$((SECONDS + 2)); while [ $SECONDS -lt $end ]; do :; done
  sleep 2
done'

samples() { cgphase history "/$cgroups" -o csv --no-legend 2>/dev/null | wc -l; }
enough_samples() { [ "$(samples)" -ge 160 ]; }
said() { journalctl -u cgphase-train -o cat; }
models() { cgphase model list; }

observed() {
  write_config "/$cgroups" observe
  sed '/^model = /d' /tmp/cgphase.toml >/etc/cgphase/cgphase.toml
  cp /tmp/model.json /usr/share/cgphase/model.json
  must systemctl start cgphased
  until_true 90000 enough_samples || fail "only $(samples) samples"
}

trained() {
  echo 'CHALLENGE=--least 10s --clusters 2' >/etc/default/cgphase-train
  systemctl start cgphase-train || fail "training failed: $(said)"
  said | grep -qE '^trained on [0-9]+ rows before .*, compared on [0-9]+ rows until' ||
    fail "the log does not say what it was trained on: $(said)"
  said | grep -qE '^(nothing is changed|the new model wins): ' ||
    fail "the log does not report the result: $(said)"
  echo "trained by its unit: $(said | grep -E '^(nothing is changed|the new model wins): ')"
}

# Independent of the winner: proves that the unit may install a model.
installs() {
  local before override=/run/systemd/system/cgphase-train.service.d
  before=$(models)
  mkdir -p $override
  printf '[Service]\nExecStart=\nExecStart=%s\n' \
    '/usr/bin/cgphase model install /usr/share/cgphase/model.json' >$override/install.conf
  must systemctl daemon-reload
  systemctl start cgphase-train || fail "installing failed: $(said)"
  rm -r $override
  must systemctl daemon-reload
  cgphase status --json | grep -q '"path": *"/var/lib/cgphase/models/' ||
    fail "the daemon does not use it: $(cgphase status | grep model)"
  [ "$(models)" != "$before" ] || fail "no model was installed: $before"
  echo 'a model that the unit installs is in use'
}

bounded() {
  systemd-analyze security --no-pager --threshold=20 cgphase-train.service >/tmp/security ||
    fail "the unit is too exposed: $(tail -n 1 /tmp/security)"
  [ "$(property MemoryMax cgphase-train)" = $((1 << 30)) ] || fail 'MemoryMax is not 1 GiB'
  [ "$(property CPUSchedulingPolicy cgphase-train)" = 5 ] ||
    fail 'its CPU scheduling policy is not idle'
  tail -n 1 /tmp/security
}

# Nothing is trained while the kill switch exists.
switched_off() {
  local before
  before=$(said | wc -l)
  touch /etc/cgphase/disabled
  must systemctl start cgphase-train
  said | tail -n +$((before + 1)) >/tmp/said
  grep -q 'trained on' /tmp/said && fail 'it trained although the kill switch exists'
  rm /etc/cgphase/disabled
}

each_night() {
  [ "$(systemctl is-enabled cgphase-train.timer)" = disabled ] ||
    fail 'the timer is enabled by default'
  must systemctl --no-reload --quiet enable cgphase-train.timer
  must systemctl start cgphase-train.timer
  property NextElapseUSecRealtime cgphase-train.timer | grep -qE ' 0[2-5]:' ||
    fail "wrong time of the timer: $(property NextElapseUSecRealtime cgphase-train.timer)"
  echo "the timer elapses $(property NextElapseUSecRealtime cgphase-train.timer)"
}

install_programs
must systemd-run --quiet --unit work -p MemoryMax=64M -p CPUQuota=50% bash -c "$work"
original=$(snapshot $cgroups)
observed
trained
installs
bounded
switched_off
each_night
[ "$(snapshot $cgroups)" = "$original" ] || fail "a limit changed: $(snapshot $cgroups)"
finish
