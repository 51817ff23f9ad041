#!/bin/bash
# systemd 257 does not rewrite limits at a reload. It rewrites them when the next unit of the slice
# starts or changes, however late. The daemon must still distinguish that from people who set the
# original again, in containers of every engine. systemd257_test.sh PROGRAMS, run by scripts/guest
# --image.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=drift.sh
. "$(dirname "$0")/drift.sh"
# shellcheck source-path=SCRIPTDIR source=engines_fixture.sh
. "$(dirname "$0")/engines_fixture.sh"
system_units='web cart plain.service bare.scope'
machine_units='hourly room'

# A second Docker beside the first one, with the other driver. Its data-root is only in its command
# line.
start_docker_with_cgroupfs() {
  docker_cgroupfs=(docker -H unix:///run/docker2.sock)
  sed 's/cgroupdriver=systemd/cgroupdriver=cgroupfs/' /etc/docker/daemon.json >/tmp/docker2.json
  dockerd --config-file /tmp/docker2.json --data-root /var/lib/docker2 --exec-root /run/docker2 \
    --pidfile /run/docker2.pid -H unix:///run/docker2.sock \
    --containerd /run/containerd/containerd.sock --containerd-namespace moby2 \
    --containerd-plugins-namespace plugins.moby2 >/tmp/docker2.log 2>&1 &
  until_true 30000 "${docker_cgroupfs[@]}" version >/dev/null 2>&1 ||
    must cat /tmp/docker2.log /nonexistent
  must "${docker_cgroupfs[@]}" import /tmp/root.tar shop:1 >/dev/null
  file_id=$(must "${docker_cgroupfs[@]}" run -d --name web2 "${limits[@]}" "${both_swap[@]}" \
    shop:1 sleep 1000) || exit
  file_cgroup=docker/$file_id
}

start_containers() {
  start_drifters
  systemd-run --quiet --scope --unit bare -p MemoryMax=64M -p CPUQuota=50% sleep 1000 &
  start_other_engines
  start_docker_with_cgroupfs
  cgroups="$docker_cgroup $cart_cgroup system.slice/plain.service system.slice/bare.scope"
  cgroups+=" $crun_cgroup $runc_cgroup $plain_cgroup default/lab machine.slice/machine-room.scope"
  cgroups+=" lxc.payload.box $file_cgroup"
  drift_names="$system_units $machine_units nightly daily lab box web2"
  until_true 20000 test -d "$root/system.slice/bare.scope" || must false
  must systemd-run --quiet --unit other sleep 1000
}

# A change since the last `mark` may be the daemon's own, which it reports. It reports resets too.
told_own_change() { journal && grep -qE 'limit (lowered|raised) from' /tmp/events; }

# The reload itself changes nothing, however long ago it was. Later one slice alone is reset.
deferred() {  # VERB COMMAND...
  local verb=$1
  shift
  begin "$verb"
  must systemctl "$verb"
  settled && all_lowered || told_own_change ||
    fail "$verb: this systemd writes limits at once: $(snapshot $cgroups)"
  until_true 60000 settled || fail "$verb: the limits do not settle afterwards"
  judged "$verb" '' ''
  must "$@"
  judged "$verb, then $1" '' "$system_units"
  must systemd-run --quiet --slice machine.slice sleep 1
  judged "$verb, then $1 in the other slice" '' "$system_units $machine_units"
  swap_lifted "$docker_cgroup" "$cart_cgroup" "$runc_cgroup"
  lowered_again "$verb, then $1"
}

another_property() {
  begin 'another property'
  must systemctl set-property --runtime "${runc_cgroup##*/}" TasksMax=300
  must docker update --pids-limit 300 web >/dev/null
  must systemd-run --quiet --unit harmless sleep 1
  judged 'another property' '' 'web hourly'
  meant "$runc_cgroup" pids.max 300
  meant "$docker_cgroup" pids.max 300
  lowered_again 'another property'
}

# While the reset of a reload is still pending, a person's change is recognised. A change of one
# unit then causes the reset of the others, and both are distinguished.
others_change() {
  begin 'changes by others'
  must systemctl daemon-reload
  echo max >"$root/system.slice/bare.scope/memory.high"
  echo max >"$root/machine.slice/machine-room.scope/memory.high"
  judged 'echo of the original' 'bare.scope room' ''
  must systemctl set-property --runtime plain.service MemoryMax=48M
  judged 'set-property of a limit' 'bare.scope room plain.service' 'web cart'
  must docker update --cpus 0.4 web >/dev/null
  must podman update --cpus 0.4 hourly >/dev/null
  must podman update --memory 96m --memory-swap 96m nightly >/dev/null
  must podman --cgroup-manager cgroupfs update --cpus 0.4 daily >/dev/null
  must "${docker_cgroupfs[@]}" update --cpus 0.4 web2 >/dev/null
  echo 50331648 >"$root/default/lab/memory.max"
  echo 50000 100000 >"$root/lxc.payload.box/cpu.max"
  judged 'updates' \
    "bare.scope room plain.service web hourly nightly daily lab box web2" 'web cart'
  set_to system.slice/bare.scope memory.high max
  set_to machine.slice/machine-room.scope memory.high max
  set_to system.slice/plain.service memory.max 50331648
  set_to "$docker_cgroup" cpu.max '40000 100000'
  set_to "$runc_cgroup" cpu.max '40000 100000'
  set_to "$runc_cgroup" memory.max 67108864  # Podman 5 also sets all values of its start
  meant "$runc_cgroup" memory.swap.max 0
  meant "$runc_cgroup" pids.max 2048
  set_to "$crun_cgroup" memory.max 100663296
  set_to "$crun_cgroup" cpu.max '50000 100000'
  set_to "$plain_cgroup" cpu.max '40000 100000'
  set_to "$plain_cgroup" memory.max 67108864
  set_to "$file_cgroup" cpu.max '40000 100000'
  set_to default/lab memory.max 50331648
  set_to lxc.payload.box cpu.max '50000 100000'
  ! some_moved || fail "a set value did not stay: $(snapshot $cgroups)"
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
  *) must false 'this is not systemd 257' ;;
esac
busybox_root
must systemctl start docker
start_containers
rewrite_limits '/system.slice/*' try_drift
finish
