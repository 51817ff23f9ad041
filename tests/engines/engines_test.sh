#!/bin/bash
# Real engines start containers in a guest with systemd. Each container must be found with its name,
# image, cgroup and limits. Then the daemon lowers all limits, others change and reset them
# (drift.sh), and the daemon restores the intended values. engines_test.sh PROGRAMS, run by
# scripts/guest --image.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=drift.sh
. "$(dirname "$0")/drift.sh"
# shellcheck source-path=SCRIPTDIR source=engines_fixture.sh
. "$(dirname "$0")/engines_fixture.sh"
drift_names='web cart nightly hourly daily lab plain.service room box'

expect() {  # WHAT ENGINE ID NAME IMAGE PATH CORES BYTES
  local line
  line=$(printf '{"cpu_cores":%s,"engine":"%s","engine_id":"%s","image":"%s",' \
    "$7" "$2" "$3" "$5")
  line+=$(printf '"memory_max_bytes":%s,"name":"%s","path":"%s"}' "$8" "$4" "$6")
  expected=$((expected + 1))
  cgroups+=" ${6#/}"
  if grep -qxF "$line" /tmp/found; then echo "found: $1"; else fail "$1 is not found as $line"; fi
}

start_containers() {
  start_drifters
  start_other_engines
  must systemd-run --quiet --unit other sleep 1000
}

find_containers() {
  must "$bin/list_containers" "$root" '/system.slice/plain.service' >/tmp/found
  expect 'Docker, systemd driver' docker "$docker_id" web shop:1 \
    "/system.slice/docker-$docker_id.scope" 0.5 67108864
  expect 'a second one of Docker' docker "$cart_id" cart shop:1 \
    "/system.slice/docker-$cart_id.scope" 0.5 67108864
  expect 'Podman with crun, its inner cgroup' podman "$crun_id" nightly localhost/batch:2 \
    "/machine.slice/libpod-$crun_id.scope/container" 0.5 67108864
  expect 'Podman with runc' podman "$runc_id" hourly localhost/batch:2 \
    "/machine.slice/libpod-$runc_id.scope" 0.5 67108864
  expect 'Podman, cgroupfs driver' podman "$plain_id" daily localhost/batch:2 \
    "/libpod_parent/libpod-$plain_id" 0.5 67108864
  expect 'containerd by ctr' containerd lab lab '' /default/lab 0.5 67108864
  expect 'a service by opt-in' service plain.service plain.service '' \
    /system.slice/plain.service 0.5 67108864
  expect 'systemd-nspawn' nspawn room room '' /machine.slice/machine-room.scope 0.5 67108864
  expect 'LXC' lxc box box '' /lxc.payload.box 0.5 67108864
  [ "$(wc -l </tmp/found)" = "$expected" ] || fail 'not exactly these containers were found'
}

# One property is set, and systemd writes all limits of the unit.
another_property() {
  begin 'another property'
  must systemctl set-property --runtime "${runc_cgroup##*/}" TasksMax=300
  must docker update --pids-limit 300 web >/dev/null
  judged 'another property' '' 'web hourly'
  meant "$runc_cgroup" pids.max 300
  meant "$docker_cgroup" pids.max 300
  lowered_again 'another property'
}

reload() {  # VERB
  begin "$1"
  must systemctl "$1"
  judged "$1" '' 'web cart hourly plain.service room'
  swap_lifted "$docker_cgroup" "$cart_cgroup" "$runc_cgroup"
  lowered_again "$1"
}

# Two of these commands only set the original again. That is still somebody else's change.
change_each() {
  must docker update --cpus 0.4 web >/dev/null
  must docker update --memory 96m --memory-swap 96m cart >/dev/null
  must podman update --cpus 0.4 hourly >/dev/null
  must podman update --memory 96m --memory-swap 96m nightly >/dev/null
  must podman --cgroup-manager cgroupfs update --cpus 0.4 daily >/dev/null
  must systemctl set-property --runtime plain.service MemoryMax=48M
  echo 50331648 >"$root/default/lab/memory.max"
  echo max >"$root/machine.slice/machine-room.scope/memory.high"
  echo 50000 100000 >"$root/lxc.payload.box/cpu.max"
}

others_change() {
  begin 'changes by others'
  change_each
  set_to "$docker_cgroup" cpu.max '40000 100000'
  set_to "$cart_cgroup" memory.max 100663296
  meant "$cart_cgroup" memory.swap.max 0
  set_to "$runc_cgroup" cpu.max '40000 100000'
  set_to "$crun_cgroup" memory.max 100663296
  set_to "$plain_cgroup" cpu.max '40000 100000'
  set_to system.slice/plain.service memory.max 50331648
  set_to default/lab memory.max 50331648
  set_to machine.slice/machine-room.scope memory.high max
  set_to lxc.payload.box cpu.max '50000 100000'
  judged 'changes by others' "$drift_names" ''
  nothing_lowered 'changes by others'
  lowered_again 'changes by others'
}

try_drift() {
  swaps=$'0\n0'
  lowered_again 'before anybody else wrote'
  cli show nightly --json | grep -q '"sleep": false' ||
    fail "Podman's annotation is not read: $(cli show nightly --json)"
  reload daemon-reload
  reload daemon-reexec
  another_property
  others_change
}

remove_containers() {
  docker rm -f web cart >/dev/null
  podman rm -f -t 0 nightly hourly >/dev/null
  podman --cgroup-manager cgroupfs rm -f -t 0 daily >/dev/null
  ctr task delete --force lab >/dev/null
  machinectl terminate room
  lxc-stop -k -n box
  until_true 20000 all_gone || fail "a removed container still has its cgroup: $(ls -d $left)"
  must "$bin/list_containers" "$root" >/tmp/found.after
  [ ! -s /tmp/found.after ] || fail 'removed containers are still found'
}

left="$root/default/lab $root/lxc.payload.box $root/machine.slice/machine-room.scope"
all_gone() {
  local cgroup
  for cgroup in $left; do [ ! -e "$cgroup" ] || return 1; done
}

# Since Podman 4.4 such a container is in a separate list.
podman_that_removes_itself() {
  local id
  id=$(must podman --runtime runc run -d --rm --name once "${limits[@]}" localhost/batch:2 \
    sleep 1000) || exit
  must "$bin/list_containers" "$root" >/tmp/found
  expect 'Podman with --rm' podman "$id" once localhost/batch:2 \
    "/machine.slice/libpod-$id.scope" 0.5 67108864
  podman rm -f -t 0 once >/dev/null
}

# For the other driver Docker must be restarted.
docker_with_cgroupfs() {
  must systemctl stop docker.socket docker
  sed -i 's/cgroupdriver=systemd/cgroupdriver=cgroupfs/' /etc/docker/daemon.json
  must systemctl start docker
  docker_id=$(must docker run -d --name web2 "${limits[@]}" shop:1 sleep 1000) || exit
  must "$bin/list_containers" "$root" >/tmp/found
  expect 'Docker, cgroupfs driver' docker "$docker_id" web2 shop:1 "/docker/$docker_id" 0.5 67108864
  docker rm -f web2 >/dev/null
}

expected=0
busybox_root
must systemctl start docker
start_containers
find_containers
rewrite_limits /system.slice/plain.service try_drift
remove_containers
podman_that_removes_itself
docker_with_cgroupfs
if [ "$failures" != 0 ]; then
  echo 'the containers found:'
  cat /tmp/found /tmp/found.after
fi
finish
