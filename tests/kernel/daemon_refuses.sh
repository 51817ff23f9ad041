#!/bin/bash
# On a host whose controllers are on cgroup v1 the daemon refuses to enforce: one sentence, exit
# status 6, no limit changed. It observes what is possible and reports what is missing.
# daemon_refuses.sh PROGRAMS, in a guest, whose cgroups it remounts.
# rule: S-14
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

every_limit() {
  find /tmp/cgroups -type f \( -name 'cpu.*' -o -name 'memory.*limit*' \) -perm -200 \
    -exec grep -H . {} + | sort
}

refused() {  # CASE
  local message status before
  before=$(every_limit)
  message=$(timeout 20 "$bin/cgphased" --cgroup-root /tmp/cgroups --state-dir /tmp/s \
    --runtime-dir /tmp/r --mode enforce 2>&1)
  status=$?
  echo "$1: exit $status: $message"
  [ "$status" = 6 ] || fail "$1: exit $status instead of 6"
  [ "$(grep -c . <<<"$message")" = 1 ] || fail "$1: the message is not one line"
  [ "$(every_limit)" = "$before" ] || fail "$1: a limit changed"
}

cli() { "$bin/cgphase" --socket /tmp/r/read.sock "$@"; }
answers() { cli -q status >/dev/null 2>&1; }

# observed CASE CONTAINERS SENTENCE [OPTION...]
observed() {
  local what=$1 containers=$2 sentence=$3 before output
  shift 3
  before=$(every_limit)
  "$bin/cgphased" --config /tmp/observe.toml --state-dir /tmp/s --runtime-dir /tmp/r "$@" \
    2>/tmp/observe.log &
  daemon=$!
  until_true 20000 answers ||
    fail "$what: the observing daemon does not answer: $(cat /tmp/observe.log)"
  output=$(cli status)
  [[ $output == *"limits off: "*"$sentence"* ]] || fail "$what: '$sentence' is missing in: $output"
  output=$(cli list --no-legend) || fail "$what: list failed"
  [ "$(grep -c . <<<"$output")" = "$containers" ] ||
    fail "$what: list shows not $containers containers: $output"
  cli mode enforce >/tmp/output 2>&1 && fail "$what: mode enforce was accepted"
  kill -TERM "$daemon"
  wait "$daemon" || fail "$what: the daemon did not exit with 0"
  [ "$(every_limit)" = "$before" ] || fail "$what: a limit changed"
}

# `cgphase doctor` on the same host reports the consequence and the remedy.
diagnosed() {  # CASE SENTENCE...
  local output sentence
  output=$("$bin/cgphase" doctor --cgroup-root /tmp/cgroups)
  [ $? = 1 ] || fail "$1: doctor reported no failure"
  for sentence in "${@:2}"; do
    [[ $output == *"$sentence"* ]] || fail "$1: doctor does not say '$sentence': $output"
  done
}

mount_v1() {
  mkdir "/tmp/cgroups/$1" && mount -t cgroup -o "$1" none "/tmp/cgroups/$1" &&
    mkdir "/tmp/cgroups/$1/test" || { fail "cannot mount cgroup v1 $1"; finish; }
}

echo '-cpu -memory -io -pids' >"$root/cgroup.subtree_control"
umount "$root"
mkdir /tmp/cgroups
mount -t tmpfs none /tmp/cgroups
mount_v1 cpu
mount_v1 memory
refused 'cgroup v1'
cat >/tmp/observe.toml <<EOF
model = "$tree/model/default_model.json"
include = ["/test*"]
EOF
diagnosed 'cgroup v1' 'cgroup v1 only: no container is seen' 'systemd.unified_cgroup_hierarchy=1' \
  'no pressure stall information: ' 'no kernel type information (BTF): ' 'the bpf system call'
observed 'cgroup v1' 0 'this host has cgroup v1 only'
observed 'cgroup v1, named' 0 '/tmp/cgroups: this is cgroup v1' --cgroup-root /tmp/cgroups
mkdir /tmp/cgroups/unified
mount -t cgroup2 none /tmp/cgroups/unified
refused 'hybrid cgroups'
mkdir /tmp/cgroups/unified/test
diagnosed 'hybrid cgroups' 'hybrid: limits are on cgroup v1, only the rest is on v2: '
observed 'hybrid cgroups' 1 'this host is hybrid, its cpu and memory controllers are on cgroup v1'
observed 'hybrid cgroups, named' 0 'its cgroup v2 hierarchy is /tmp/cgroups/unified' \
  --cgroup-root /tmp/cgroups
finish
