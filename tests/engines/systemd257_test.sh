#!/bin/bash
# systemd 257 does not write limits anew at a reload but when the next unit of the slice starts or
# changes, whenever that is: told apart from people who set the original again all the same.
# systemd257_test.sh PROGRAMS, run by scripts/guest --image.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=drift.sh
. "$(dirname "$0")/drift.sh"
# shellcheck source-path=SCRIPTDIR source=engines_fixture.sh
. "$(dirname "$0")/engines_fixture.sh"
drift_names='web cart plain.service bare.scope'
siblings='web cart plain.service bare.scope'

start_containers() {
  start_drifters
  systemd-run --quiet --scope --unit bare -p MemoryMax=64M -p CPUQuota=50% sleep 1000 &
  cgroups="$docker_cgroup $cart_cgroup system.slice/plain.service system.slice/bare.scope"
  until_true 20000 test -d "$root/system.slice/bare.scope" || must false
  must systemd-run --quiet --unit other sleep 1000
}

# Nothing happens at the reload itself, however long it is ago.
deferred() {  # VERB COMMAND...
  local verb=$1
  shift
  begin "$verb"
  must systemctl "$verb"
  settled && all_lowered || fail "$verb: this systemd writes limits at once"
  judged "$verb" '' ''
  must "$@"
  judged "$verb, then $1" '' "$siblings"
  swap_lifted "$docker_cgroup" "$cart_cgroup"
  lowered_again "$verb, then $1"
}

another_property() {
  begin 'another property'
  must docker update --pids-limit 300 web >/dev/null
  must systemd-run --quiet --unit harmless sleep 1
  judged 'another property' '' web
  meant "$docker_cgroup" pids.max 300
  lowered_again 'another property'
}

# While a reload's reset is still to come a person is heard; a change of one unit then brings the
# others' reset, and is told from it.
others_change() {
  begin 'changes by others'
  must systemctl daemon-reload
  echo 67108864 >"$root/system.slice/bare.scope/memory.max"
  judged 'echo of the original' bare.scope ''
  must systemctl set-property --runtime plain.service MemoryMax=48M
  judged 'set-property of a limit' 'bare.scope plain.service' 'web cart'
  must docker update --cpus 0.4 web >/dev/null
  judged 'docker update' 'bare.scope plain.service web' 'web cart'
  set_to system.slice/bare.scope memory.max 67108864
  set_to system.slice/plain.service memory.max 50331648
  set_to "$docker_cgroup" cpu.max '40000 100000'
  ! some_moved || fail "not all is as it was set: $(snapshot $cgroups)"
}

try_drift() {
  swaps=$'0\n0'
  lowered_again 'before anybody else wrote'
  deferred daemon-reload systemd-run --quiet --unit sibling sleep 1
  deferred daemon-reexec systemctl set-property --runtime other.service TasksMax=300
  another_property
  others_change
}

case $(systemctl --version) in
  'systemd 257 '*) ;;
  *) must false 'this systemd is another' ;;
esac
busybox_root
must systemctl start docker
start_containers
rewrite_limits '/system.slice/*' try_drift
finish
