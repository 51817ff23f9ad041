#!/bin/bash
# A model of this host: installed, it is taken by the daemon that runs, limits stay, and rollback
# takes the one before; with too little history a challenge changes nothing and says why, with
# enough it installs what wins or says why it does not; a damaged model never keeps the daemon from
# starting. daemon_takes_model.sh PROGRAMS
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

cgroups='test-idle test-other'
export TMPDIR=/tmp  # where the guest's /var/tmp is not

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@"; }
uses() { cli status --json 2>/dev/null | grep -q "\"path\": *\"$1\""; }
must_use() {  # PATH WHEN
  until_true 10000 uses "$1" || fail "$2: in use is not $1: $(cli status | grep model)"
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
    fail "why nothing is done is not told: $(cat /tmp/challenge)"
  must_use "$(model_file 1)" 'after a challenge with too little history'
  echo 'too little history: told, nothing changed'
}

# Whatever it comes to, it is told and true.
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

# Trained on what was recorded here, whether it is better or not.
another() {
  local number
  cli -q record -o /tmp/here.csv || fail 'no record'
  cli train --clusters 2 --epochs 30 --step 0.25 -o /tmp/second.json /tmp/here.csv >/dev/null ||
    fail 'not trained'
  cli model install /tmp/second.json >/tmp/installed || fail 'not installed'
  all_original && fail 'another model put the limits back'
  number=$(readlink "$state/models/current")
  must_use "$state/models/$number" 'after the installation'
  kill -0 "$daemon" || fail 'the daemon ended'
  grep -q 'cgphase model rollback' /tmp/installed || fail 'the undo is not told'
  echo "another model: ${number%.json} is in use by the same process, limits stay"
}

back() {
  local number
  number=$(readlink "$state/models/current")
  cli -q model rollback || fail 'no rollback'
  [ "$(readlink "$state/models/current")" != "$number" ] || fail 'the link was not changed'
  must_use "$state/models/$(readlink "$state/models/current")" 'after the rollback'
  echo 'rollback: the one before is in use'
}

damaged() {
  local number
  cli -q model install /tmp/second.json || fail 'not installed'
  number=$(readlink "$state/models/current")
  kill -KILL "$daemon"
  until_true "$restore_limit_ms" all_original || fail 'not restored after SIGKILL'
  echo '{' >"$state/models/$number"
  start_daemon
  until_true 10000 cli -q status >/dev/null 2>&1 || fail 'a damaged model keeps it from starting'
  cli status | grep -q "degraded .*$number" || fail "not told: $(cli status)"
  uses "$state/models/$number" && fail 'a damaged model is in use'
  echo 'a damaged model: told, the one before is in use'
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
