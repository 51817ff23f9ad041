#!/bin/bash
# Real engines start containers in a guest with systemd; each must be found with its name, image,
# cgroup and limits. engines_test.sh LIST_CONTAINERS, run by scripts/guest --image.
set -uo pipefail
list=$1
limits=(--network none -m 64m --cpus 0.5)
failures=0

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

must() { "$@" || { echo "FAILED, so nothing is proved: $*"; exit 1; }; }

busybox_root() {
  mkdir -p /tmp/root/bin
  cp /bin/busybox /tmp/root/bin/
  ln -s busybox /tmp/root/bin/sleep
  tar -C /tmp/root -cf /tmp/root.tar .
}

expect() {  # WHAT ENGINE ID NAME IMAGE PATH CORES BYTES
  local line
  line=$(printf '{"cpu_cores":%s,"engine":"%s","engine_id":"%s","image":"%s",' \
    "$7" "$2" "$3" "$5")
  line+=$(printf '"memory_max_bytes":%s,"name":"%s","path":"%s"}' "$8" "$4" "$6")
  if grep -qxF "$line" /tmp/found; then echo "found: $1"; else fail "$1 is not found as $line"; fi
}

busybox_root
must systemctl start docker
must docker import /tmp/root.tar shop:1 >/dev/null
must podman --log-level error import /tmp/root.tar localhost/batch:2 >/dev/null
docker_id=$(must docker run -d --name web "${limits[@]}" shop:1 sleep 1000)
crun_id=$(must podman --runtime crun run -d --name nightly "${limits[@]}" \
  --memory-swap 64m localhost/batch:2 sleep 1000)
runc_id=$(must podman --runtime runc run -d --name hourly "${limits[@]}" \
  --memory-swap 64m localhost/batch:2 sleep 1000)
must systemd-run --quiet --unit plain -p MemoryMax=32M -p CPUQuota=25% sleep 1000
must systemd-run --quiet --unit other sleep 1000

must "$list" /sys/fs/cgroup '/system.slice/plain.service' >/tmp/found
expect 'Docker, systemd driver' docker "$docker_id" web shop:1 \
  "/system.slice/docker-$docker_id.scope" 0.5 67108864
expect 'Podman with crun, its inner cgroup' podman "$crun_id" nightly localhost/batch:2 \
  "/machine.slice/libpod-$crun_id.scope/container" 0.5 67108864
expect 'Podman with runc' podman "$runc_id" hourly localhost/batch:2 \
  "/machine.slice/libpod-$runc_id.scope" 0.5 67108864
expect 'a service by opt-in' service plain.service plain.service '' \
  /system.slice/plain.service 0.25 33554432
[ "$(wc -l </tmp/found)" = 4 ] || fail 'not exactly the four containers were found'

docker rm -f web >/dev/null
podman rm -f -t 0 nightly hourly >/dev/null
must "$list" /sys/fs/cgroup >/tmp/found.after
[ ! -s /tmp/found.after ] || fail 'removed containers are still found'

if [ "$failures" != 0 ]; then
  echo 'what was found:'
  cat /tmp/found /tmp/found.after
  exit 1
fi
echo 'all passed'
