#!/bin/bash
# The nightly training under its hardened unit of a real systemd: it asks the daemon for the
# history, trains, compares and says what came of it; what it may and what it takes is bounded, a
# model that it installs is in use at once, and no limit changes.
# unit_trains_test.sh PROGRAMS, run by scripts/guest --image.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=unit_fixture.sh
. "$(dirname "$0")/unit_fixture.sh"

cgroups=system.slice/work.service
original=''
# Computes, and does nothing, two seconds each.
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
    fail "what it was trained on is not told: $(said)"
  said | grep -qE '^(nothing is changed|the new model wins): ' ||
    fail "what came of it is not told: $(said)"
  echo "trained by its unit: $(said | grep -E '^(nothing is changed|the new model wins): ')"
}

# Whichever model won, that the unit may put one in use is seen.
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
    fail "exposed: $(tail -n 1 /tmp/security)"
  [ "$(property MemoryMax cgphase-train)" = $((1 << 30)) ] || fail 'its memory has no bound'
  [ "$(property CPUSchedulingPolicy cgphase-train)" = 5 ] || fail 'it is not idle'
  tail -n 1 /tmp/security
}

# Left alone while the kill switch is there.
switched_off() {
  local before
  before=$(said | wc -l)
  touch /etc/cgphase/disabled
  must systemctl start cgphase-train
  said | tail -n +$((before + 1)) >/tmp/said
  grep -q 'trained on' /tmp/said && fail 'it trained although switched off'
  rm /etc/cgphase/disabled
}

each_night() {
  [ "$(systemctl is-enabled cgphase-train.timer)" = disabled ] || fail 'on before anybody asked'
  must systemctl --no-reload --quiet enable cgphase-train.timer
  must systemctl start cgphase-train.timer
  property NextElapseUSecRealtime cgphase-train.timer | grep -qE ' 0[2-5]:' ||
    fail "the timer elapses $(property NextElapseUSecRealtime cgphase-train.timer)"
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
