#!/bin/bash
# A model of this host is installed: the running daemon uses it, limits stay, and rollback returns
# to the previous one. With too little history a challenge changes nothing and says why. With enough
# history it installs the winner or says why not. A damaged model never stops the daemon from
# starting.
# daemon_takes_model.sh PROGRAMS
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

cgroups='test-idle test-other'
export TMPDIR=/tmp  # the guest has no /var/tmp

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@"; }
uses() { cli status --json 2>/dev/null | grep -q "\"path\": *\"$1\""; }
must_use() {  # PATH WHEN
  until_true 10000 uses "$1" || fail "$2: the model in use is not $1: $(cli status | grep model)"
}
model_file() { echo "$state/models/$1.json"; }

first_model() {
  write_config '/test*'
  sed -i '/^model = /d' /tmp/cgphase.toml
  "$bin/cgphase" -q model install /tmp/model.json --state-dir "$state" || fail 'not installed'
  start_daemon
  must_use "$(model_file 1)" 'at the start'
  await_change 'with an installed model'
  echo 'the first model: in use, limits are lowered'
}

too_little() {
  local status
  cli model challenge --exit-code >/tmp/challenge 2>&1
  status=$?
  [ "$status" = 7 ] || fail "too little history: exit $status, $(cat /tmp/challenge)"
  grep -q 'nothing is changed: too little history' /tmp/challenge ||
    fail "the challenge does not say why nothing changed: $(cat /tmp/challenge)"
  must_use "$(model_file 1)" 'after a challenge with too little history'
  echo 'too little history: reported, nothing changed'
}

# With either result, the output must be correct.
contest() {
  local status current
  cli model challenge --least 10s --clusters 2 --exit-code >/tmp/challenge 2>&1
  status=$?
  current=$(readlink "$state/models/current")
  case $status in
    0)
      grep -q 'the new model wins: model 2 is installed' /tmp/challenge && [ "$current" = 2.json ]
      ;;
    7) grep -q 'nothing is changed: ' /tmp/challenge && [ "$current" = 1.json ] ;;
    *) false ;;
  esac || fail "a challenge: exit $status, $current, $(cat /tmp/challenge)"
  must_use "$state/models/$current" 'after a challenge'
  echo "a challenge: $(tail -n 2 /tmp/challenge | head -n 1)"
}

# Trained on what was recorded here, better or not.
another() {
  local number
  cli -q record -o /tmp/here.csv || fail 'cgphase record failed'
  cli train --clusters 2 --epochs 30 --step 0.25 -o /tmp/second.json /tmp/here.csv >/dev/null ||
    fail 'cgphase train failed'
  cli model install /tmp/second.json >/tmp/installed || fail 'cgphase model install failed'
  all_original && fail 'the new model restored the limits'
  number=$(readlink "$state/models/current")
  must_use "$state/models/$number" 'after the installation'
  kill -0 "$daemon" || fail 'the daemon ended'
  grep -q 'cgphase model rollback' /tmp/installed || fail 'model install does not print the undo'
  echo "another model: ${number%.json} is in use by the same process, limits stay"
}

back() {
  local number
  number=$(readlink "$state/models/current")
  cli -q model rollback || fail 'cgphase model rollback failed'
  [ "$(readlink "$state/models/current")" != "$number" ] || fail 'the link was not changed'
  must_use "$state/models/$(readlink "$state/models/current")" 'after the rollback'
  echo 'rollback: the previous model is in use'
}

damaged() {
  local number
  cli -q model install /tmp/second.json || fail 'cgphase model install failed'
  number=$(readlink "$state/models/current")
  kill -KILL "$daemon"
  until_true "$restore_limit_ms" all_original || fail 'not restored after SIGKILL'
  echo '{' >"$state/models/$number"
  start_daemon
  until_true 10000 cli -q status >/dev/null 2>&1 ||
    fail 'the daemon does not start with a damaged model'
  cli status | grep -q "degraded .*$number" ||
    fail "status does not report the damaged model: $(cli status)"
  uses "$state/models/$number" && fail 'a damaged model is in use'
  echo 'a damaged model: reported, the previous one is in use'
}

make_container test-idle '150000 100000' 134217728 0
make_container test-other '150000 100000' 134217728 3
original=$(snapshot $cgroups)
first_model
too_little
contest
another
back
damaged
kill "$daemon"
wait "$daemon"
all_original || fail "not restored by the stop: $(snapshot $cgroups)"
finish
