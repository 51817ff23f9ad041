#!/bin/bash
# Tests the whole daemon with the command. Every question is answered in text and in JSON, with
# hostile names among the containers. An administrator's requests are carried out, last and can be
# undone. A reload with an error changes nothing.
# daemon_answers.sh PROGRAMS
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

cgroups='test-busy test-idle test-gpu test-node'
hostile=$'test-\e[31m<b>"\\\xff end'
replies=0
mkdir /tmp/replies

cli() { "$bin/cgphase" --socket /tmp/r/read.sock "$@"; }

# Runs the command; its output is in $answer. On a slow machine the daemon may be busy for longer
# than the command waits. Then the command reports that, and is run again.
expect() {  # EXIT WORD...
  local wanted=$1 status tries
  shift
  for ((tries = 0; tries < 10; ++tries)); do
    answer=$(cli "$@" 2>&1 </dev/null)
    status=$?
    [ "$status" != "$wanted" ] || break
    [[ $answer == *'did not answer in time'* || $answer == *'does not answer'* ]] || break
  done
  [ "$status" = "$wanted" ] || fail "cgphase $*: exit $status instead of $wanted: $answer"
  if LC_ALL=C grep -q $'[\e\xff]' <<<"$answer"; then fail "cgphase $*: prints raw bytes"; fi
  if [[ " $* " = *' --json '* ]]; then
    replies=$((replies + 1))
    printf %s "$answer" >"/tmp/replies/$1.$replies.json"
  fi
}

# The schemas describe the replies that only a daemon that changes limits gives.
as_described() {
  cat /tmp/replies/*.json >/tmp/all_replies
  for answered in '"event": "decision"' '"event": "outcome"' '"kind": "written"'; do
    grep -q "$answered" /tmp/all_replies || fail "no reply has $answered"
  done
  /usr/bin/python3 -B "$tree/tests/packaging/schema_check.py" /tmp/replies ||
    fail 'a schema does not describe a reply'
}

one_line() { [ "$(grep -c . <<<"$answer")" = 1 ] || fail "not one line: $answer"; }
says() { [[ $answer == *"$1"* ]] || fail "'$1' is missing in: $answer"; }
answers() { cli -q status >/dev/null 2>&1; }
mode_is() { cli status --json | grep -q "\"mode\": *\"$1\""; }
# Memory of a process that may not be evicted.
locked_kib() { awk '$1 == "VmLck:" { print $2 }' "/proc/$1/status"; }
companion() { pgrep -P "$daemon" -f cgphase-restore; }
memory_locked() {
  local pid
  for pid in "$daemon" "$(companion)"; do
    [ "$(locked_kib "$pid")" -gt 0 ] || fail "the memory of $(cat "/proc/$pid/comm") is not locked"
  done
  expect 0 status
  says 'locked memory ok'
}

logged() { grep -q "$1" /tmp/daemon.log; }

questions() {
  local name verb
  for verb in status list events doctor; do
    expect 0 "$verb"
    expect 0 "$verb" --json
    says '"schema"'
  done
  for name in test-busy "$hostile"; do
    for verb in show explain history; do
      expect 0 "$verb" "$name"
      expect 0 "$verb" "$name" --json
      says '"schema"'
    done
    rm -f /tmp/plot.svg
    expect 0 plot "$name" -o /tmp/plot.svg
    grep -q '</svg>' /tmp/plot.svg || fail "plot drew no SVG of $name"
  done
  expect 0 list -o csv
  expect 0 list -o jsonl
  expect 0 list -o openmetrics
  says 'cgphase_container_info{container="'
  expect 0 status -o openmetrics
  says '# EOF'
  expect 2 events -o openmetrics
  one_line
  expect 3 plot test-nobody -o /tmp/plot.svg
  expect 3 show test-nobody
  one_line
  says test-nobody
  expect 2 frobnicate
}

# Records from now on, until a signal ends it. The file has the samples until then, and none older.
# The signal is SIGTERM, because the shell lets background processes ignore SIGINT and record does
# not change that.
following_record() {
  local begun recorder status
  begun=$EPOCHSECONDS
  "$bin/cgphase" --socket /tmp/r/read.sock -q record --for 1h -o /tmp/followed.csv &
  recorder=$!
  pause_ms 3000
  [ ! -s /tmp/followed.csv ] || fail 'record --for wrote before the signal'
  kill -TERM "$recorder"
  wait "$recorder"
  status=$?
  [ "$status" = 0 ] || fail "record --for after SIGTERM: exit $status"
  awk -F, -v begun="$begun" 'NR > 1 && $1 < begun { old = 1 } END { exit old || NR < 3 }' \
    /tmp/followed.csv || fail 'record --for has too few samples, or samples from before its start'
}

# The effect that a policy would have had on this host's own history.
replaying() {
  export TMPDIR=/tmp  # the guest has no /var/tmp
  expect 0 replay --host --policy hold,static --json --model /tmp/model.json "$@"
  says '"executions":'
  says '"name":"hold"'
  says '"resource":"cpu"'
}

# The history as a trace: from the daemon, and from its files after it has stopped.
recording() {
  expect 0 record -o /tmp/host.csv.gz
  expect 0 record test-busy "$hostile" --since -10m -o /tmp/two.csv
  grep -q '^[0-9.]*,test-busy,test-busy,' /tmp/two.csv || fail 'record wrote no row of test-busy'
  if LC_ALL=C grep -q $'[\e\xff]' /tmp/two.csv; then fail 'record wrote raw bytes'; fi
  expect 0 predict --model /tmp/model.json /tmp/host.csv.gz
  following_record
  expect 3 record test-nobody -o /tmp/nobody.csv
  one_line
  [ ! -e /tmp/nobody.csv ] || fail 'a failed record left a file'
  expect 6 record --state-dir /tmp/s -o /tmp/nobody.csv
  says 'in use by a running cgphased'
  exporting
  replaying
  replaying --container test-busy --closed-loop
  expect 3 replay --container test-nobody --model /tmp/model.json
}

# The database gets its name only when it is complete.
exporting() {
  expect 0 export -o /tmp/host.db "$@"
  [ "$(head -c 15 /tmp/host.db)" = 'SQLite format 3' ] || fail 'export wrote no database'
  LC_ALL=C grep -qa 'test-busy' /tmp/host.db || fail 'export wrote no container'
  rm /tmp/host.db
  expect 6 export -o /tmp/host.db --state-dir /tmp/nowhere
  one_line
  [ -z "$(ls /tmp/host.db* 2>/dev/null)" ] || fail 'a failed export left a file'
}

recording_stopped() {
  exporting --state-dir /tmp/s
  expect 0 events --state-dir /tmp/s
  says 'it was written ('
  expect 0 history test-busy --state-dir /tmp/s -o csv
  [ "$(grep -c . <<<"$answer")" -ge 10 ] || fail "history from the files is too short: $answer"
  expect 0 explain test-busy --state-dir /tmp/s
  says 'test-busy: '
  expect 0 record --state-dir /tmp/s -o /tmp/stopped.csv
  [ "$(grep -c . /tmp/stopped.csv)" -ge "$(grep -c . /tmp/two.csv)" ] ||
    fail 'the files of the stopped daemon have fewer samples than it reported'
  replaying --state-dir /tmp/s
  expect 4 record -o /tmp/nobody.csv
}

capacity() {
  local name
  for name in test-busy "$hostile"; do
    expect 0 size "$name"
    says 'not enough history'  # policy hold learns nothing
    expect 0 size "$name" --json
    says '"enough_history": false'
  done
  expect 3 size test-nobody
  expect 3 size --image test-nobody
  expect 0 size /tmp/two.csv --model /tmp/model.json
  # One core, and limits of two cores: a container without a forecast may need all of its limit.
  expect 7 fit --cpus 0.01 --memory 1M --for 1m
  says 'no: 0.00 cores and'
  says 'used outside of containers'
  expect 7 fit --cpus 0.01 --memory 100T --for 1h --json
  says '"fits": false'
  expect 0 fit --cpus 0.01 --memory 1M --for 1m /tmp/two.csv --model /tmp/model.json \
    --host-cpus 8 --host-memory 8G
  says 'yes: '
  expect 2 fit --cpus 0.01 --memory 1M --for never
}

# With a forecasting daemon and a container that leaves room, fit reports what fits and what does
# not.
room() {
  local name
  for name in test-busy test-idle "$hostile"; do
    echo 1 >"$root/$name/cgroup.kill"  # their loads use all of the one CPU
  done
  write_config '/quiet*' observe
  mkdir "$root/quiet"
  echo '80000 100000' >"$root/quiet/cpu.max"
  echo 134217728 >"$root/quiet/memory.max"
  (echo "$BASHPID" >"$root/quiet/cgroup.procs" && exec sleep 600) &
  start_daemon phase
  until_true 20000 answers || fail 'the daemon with policy phase does not answer'
  until_true 180000 fit_says '"basis": "forecast".*"basis": "forecast"' --json ||
    fail "no forecast within 3 min: $(cat /tmp/fit)"
  until_true 180000 fit_says 'yes: .*forecast' || fail "fit does not say yes: $(cat /tmp/fit)"
  until_true 180000 fit_says '"fits": true' --json || fail "fit does not say yes: $(cat /tmp/fit)"
  expect 7 fit --cpus 0.99 --memory 1M --for 1m --risk 50%
  says 'no: '
  expect 7 fit --cpus 0.01 --memory 100T --for 1m --risk 50% --json
  says '"fits": false'
  kill -TERM "$daemon"
  wait "$daemon" || fail 'the daemon with policy phase did not exit with 0'
}
fit_says() {  # PATTERN OPTION...
  pause_ms 1000  # the query itself uses CPU outside of containers, and so may a busy host
  cli fit --cpus 0.01 --memory 1M --for 1m --risk 50% "${@:2}" >/tmp/fit 2>&1
  tr '\n' ' ' </tmp/fit | grep -q "$1"
}

pausing() {
  expect 0 pause test-busy
  says 'cgphase resume test-busy'
  logged 'uid 0 asked: pause .*test-busy' || fail 'the log does not say who paused the container'
  all_original || { cgroups=test-busy check_original 'pause'; }
  local id
  id=$(cli events test-busy -o jsonl | grep -o '"decision_id":[0-9]*' | head -n 1)
  [ -n "$id" ] || fail 'there is no event of test-busy'
  kill -KILL "$daemon"
  wait "$daemon" 2>/dev/null
  start_daemon
  until_true 20000 answers || fail 'the daemon does not answer after a restart'
  expect 0 events test-busy --since -1h -o jsonl
  says "$id,"  # of the run before
  expect 0 show test-busy
  says paused
  expect 0 resume test-busy
}

check_original() {
  local now before
  now=$(snapshot $cgroups)
  before=$(grep "^$cgroups/" <<<"$original")
  [ "$now" = "$before" ] || fail "$1: limits of $cgroups are not the originals: $now"
}

# The container needs 20 MiB of 128, and the policy would lower it further.
at_pin() { [ "$(<"$root/test-idle/memory.high")" = "$1" ]; }
pinning() {
  expect 0 mode enforce
  expect 0 pin test-idle memory=100M,cpu=0.4
  says 'cgphase pin test-idle cpu=auto,memory=auto'
  logged 'uid 0 asked: pin .*test-idle' || fail 'the log does not say who pinned the container'
  until_true 60000 at_pin $((100 << 20)) ||
    fail "memory.high of test-idle is $(<"$root/test-idle/memory.high")"
  expect 0 show test-idle
  says '0.40 cores'
  expect 0 explain test-idle
  says "an administrator's pin asks for"
  expect 6 pin test-idle memory=1G
  one_line
  expect 0 pin test-idle memory=120M
  until_true 10000 at_pin $((120 << 20)) || fail 'a higher pin does not raise the limit'
  expect 0 restore --all
  says 'cgphase pin test-idle'
  until_true 5000 all_original || fail 'restore --all did not restore the pinned limits'
  expect 0 pin test-idle auto
  expect 0 mode enforce
}

modes() {
  await_change 'before mode observe'
  expect 0 mode observe
  says 'cgphase mode enforce'
  until_true 5000 all_original || fail 'mode observe did not restore'
  expect 0 status
  says 'configuration says enforce'
  expect 0 mode enforce
  await_change 'after mode enforce'
  expect 0 restore --all
  until_true 5000 all_original || fail 'restore --all did not restore'
  expect 0 mode enforce
}

reloads() {
  await_change 'before a reload'
  cp /tmp/cgphase.toml /tmp/good.toml
  sed -i '1i intervall = "1s"' /tmp/cgphase.toml
  kill -HUP "$daemon"
  until_true 10000 logged 'the old configuration stays in force.*cgphase.toml:' ||
    fail 'the log does not report the failed reload'
  mode_is enforce || fail 'a failed reload changed the mode'
  sed 's/^mode = .*/mode = "observe"/' /tmp/good.toml >/tmp/cgphase.toml
  kill -HUP "$daemon"
  until_true 10000 mode_is observe || fail 'the reload did not change the mode'
  until_true 5000 all_original || fail 'a reload to observe did not restore'
  cp /tmp/good.toml /tmp/cgphase.toml
  kill -HUP "$daemon"
  until_true 10000 mode_is enforce || fail 'the second reload did not change the mode'
}

# While a kubelet and a second daemon run, every limit is the original, until both are gone. A
# kubelet in its own pid namespace, as in a container, runs all the time and does not matter.
standing_down() { cli status --json | grep -q '"standing_down": *"[^"]'; }
managing_again() {
  cli status --json >/tmp/status && ! grep -q '"standing_down": *"[^"]' /tmp/status
}
beside_managers() {
  local inner kubelet second
  await_change 'before others manage limits'
  cp "$(type -P sleep)" /tmp/kubelet
  unshare --pid --fork --kill-child /tmp/kubelet 600 &
  inner=$!
  /tmp/kubelet 600 &
  kubelet=$!
  "$bin/cgphased" --config /tmp/cgphase.toml --cgroup-root "$root" --state-dir /tmp/s2 \
    --runtime-dir /tmp/r2 --mode observe >>/tmp/second.log 2>&1 &
  second=$!
  until_true 20000 test -S /tmp/r2/read.sock || fail 'the second daemon does not start'
  kill -HUP "$daemon"
  until_true 10000 standing_down || fail 'status does not report a kubelet on the host'
  until_true 5000 all_original || fail 'not all limits are restored while a kubelet runs'
  expect 0 status
  says "the kubelet manages limits here (pid $kubelet)"
  says "another cgphase daemon runs here (pid $second)"
  expect 0 show test-busy
  says 'hands off'
  expect 0 doctor
  says 'the kubelet manages limits here'
  says '2 cgphase daemons run'
  expect 0 events
  says 'another manager of limits was seen'
  expect 1 mode enforce test-busy
  one_line
  grep -q 'only observing.*kubelet' /tmp/daemon.log || fail 'the log does not report the kubelet'
  kill "$kubelet"
  wait "$kubelet" 2>/dev/null
  kill -TERM "$second"
  wait "$second" || fail 'the second daemon did not exit with 0'
  kill -HUP "$daemon"
  until_true 10000 managing_again || fail 'after the other managers ended the daemon still yields'
  await_change 'after the others ended'
  kill -KILL "$inner"  # unshare ignores SIGTERM while it waits for its child
  wait "$inner" 2>/dev/null
}

# Like test-idle, but a process has a GPU open. In one container the device is in the /dev of the
# host; in the other it is in its own /dev. (The GPU is a null device with a GPU's name.)
make_gpu_containers() {
  local name
  for name in test-gpu test-node; do make_container "$name" '60000 100000' 134217728 0; done
  mknod /dev/nvidia0 c 1 3 || exit 1
  (echo "$BASHPID" >"$root/test-gpu/cgroup.procs" && exec sleep 1000 3</dev/nvidia0) &
  (echo "$BASHPID" >"$root/test-node/cgroup.procs" && exec unshare --mount bash -c \
    'mount -t tmpfs none /dev && mknod /dev/nvidia0 c 1 3 && exec sleep 1000') &
}

lowered() { [ "$(snapshot "$1" | grep "/$2=")" != "$(grep "^$1/$2=" <<<"$original")" ]; }
gpus_judged() {
  lowered test-idle cpu.max && lowered test-gpu memory.high && lowered test-node memory.high
}
with_gpus() {
  local name
  until_true 60000 gpus_judged || fail 'the limits beside GPUs were not lowered within a minute'
  for name in test-gpu test-node; do
    if lowered "$name" cpu.max; then fail "the quota of $name was lowered although it has a GPU"; fi
    expect 0 show "$name"
    says 'cpu gpu_container'
    expect 0 events "$name"
    says 'because it has a GPU'
  done
  expect 0 list -o wide
  says 'cpu gpu_container'
  expect 0 status
  says 'GPU ok, seen in 2 containers'
}

# explain reports what was written to a container and what was read back, even if it is gone.
written_to() { cli explain "$1" --json | grep -q '"kind": *"written"'; }
is_gone() { cli explain "$1" --json | grep -q '"gone": *true'; }
explaining() {
  make_container test-brief '60000 100000' 134217728 0
  until_true 60000 written_to test-brief || fail 'explain does not report what was written'
  expect 0 explain test-brief
  for answered in 'inputs ' 'pressure ' 'phase ' 'reason ' 'safety rules ' 'written ' 'trial '; do
    says "$answered"
  done
  expect 0 events test-brief
  says 'it was written ('
  says ' reads '
  expect 0 explain test-brief --at -7d
  says 'no decision about it is kept from that time'
  echo 1 >"$root/test-brief/cgroup.kill"
  until_true 5000 rmdir "$root/test-brief" 2>/dev/null || fail 'test-brief cannot be removed'
  until_true 10000 is_gone test-brief || fail 'explain does not report that test-brief is gone'
  expect 0 explain test-brief
  says 'test-brief: '
  says 'safety rules '
  expect 0 history test-brief
  says 'MEMORY LIMIT'
  expect 3 explain test-nobody
}

without_rights() {
  local status
  answer=$(setpriv --reuid 65534 --regid 65534 --clear-groups "$bin/cgphase" \
    --socket /tmp/r/read.sock pause test-busy 2>&1)
  status=$?
  [ "$status" = 5 ] || fail "user nobody must not pause: exit $status instead of 5: $answer"
  one_line
}

following() {
  "$bin/cgphase" --socket /tmp/r/read.sock events -f -o jsonl >/tmp/followed &
  local follower=$!
  await_change 'while events are followed'
  until_true 10000 test -s /tmp/followed || fail 'events -f printed nothing'
  kill "$follower"
  wait "$follower" 2>/dev/null
}

make_container test-busy '80000 100000' 209715200 1
make_container test-idle '60000 100000' 134217728 0
make_container "$hostile" '60000 100000' 134217728 0
make_gpu_containers
original=$(snapshot $cgroups)
write_config '/test*'
expect 4 status
one_line
start_daemon
until_true 20000 answers || fail 'the daemon does not answer'
memory_locked
following
with_gpus
explaining
questions
recording
capacity
pausing
pinning
modes
reloads
beside_managers
without_rights
kill -TERM "$daemon"
wait "$daemon" || fail 'the daemon did not exit with 0'
all_original || fail 'not all limits are restored after the stop'
expect 4 list
recording_stopped
room
as_described
if LC_ALL=C grep -q $'[\e\xff]' /tmp/daemon.log; then fail 'the log has raw bytes of a name'; fi
finish
