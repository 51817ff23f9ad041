# Shared by the tests with real engines, in addition to daemon_fixture.sh and drift.sh. A test
# sources those two first.
# shellcheck shell=bash disable=SC2034,SC2154
limits=(--network none -m 64m --cpus 0.5)
both_swap=(--memory-swap 64m)

# Ends the test if the command fails. Within $(...), whose output is used, add `|| exit`.
must() { "$@" || { echo "FAILED, so nothing is proved: $*" >&2; exit 1; }; }

# The root of each container: busybox, in a directory and as a tar.
busybox_root() {
  mkdir -p /tmp/root/{bin,etc,proc,sys,dev,usr,tmp,run,var}
  cp /bin/busybox /tmp/root/bin/
  ln -s busybox /tmp/root/bin/sleep
  echo 'ID=busybox' >/tmp/root/etc/os-release
  tar -C /tmp/root -cf /tmp/root.tar .
}

# Two of Docker, because two kinds of its updates are tested, and a service.
start_drifters() {
  must docker import /tmp/root.tar shop:1 >/dev/null
  docker_id=$(must docker run -d --name web "${limits[@]}" "${both_swap[@]}" \
    shop:1 sleep 1000) || exit
  cart_id=$(must docker run -d --name cart "${limits[@]}" "${both_swap[@]}" \
    shop:1 sleep 1000) || exit
  docker_cgroup=system.slice/docker-$docker_id.scope
  cart_cgroup=system.slice/docker-$cart_id.scope
  must systemd-run --quiet --unit plain -p MemoryMax=64M -p CPUQuota=50% sleep 1000
}

start_nspawn() {
  systemd-nspawn -q -D /tmp/root-nspawn -M room --property=MemoryMax=64M --property=CPUQuota=50% \
    sleep 1000 >/tmp/nspawn.log 2>&1 &
  until_true 20000 test -d "$root/machine.slice/machine-room.scope" ||
    must cat /tmp/nspawn.log /nonexistent
}

start_lxc() {
  mkdir -p /var/lib/lxc/box
  cat >/var/lib/lxc/box/config <<'EOF'
lxc.rootfs.path = dir:/tmp/root-lxc
lxc.net.0.type = empty
lxc.apparmor.profile = unconfined
lxc.cgroup2.memory.max = 64M
lxc.cgroup2.cpu.max = 50000 100000
lxc.init.cmd = /bin/sleep 1000
EOF
  must lxc-start -n box
}

# One of each: Podman with both runtimes and with the other driver, ctr, nspawn and LXC.
start_other_engines() {
  must podman import -q /tmp/root.tar localhost/batch:2 >/dev/null
  crun_id=$(must podman --runtime crun run -d --name nightly "${limits[@]}" "${both_swap[@]}" \
    --annotation cgphase.sleep=off localhost/batch:2 sleep 1000) || exit
  runc_id=$(must podman --runtime runc run -d --name hourly "${limits[@]}" "${both_swap[@]}" \
    localhost/batch:2 sleep 1000) || exit
  plain_id=$(must podman --cgroup-manager cgroupfs --runtime crun run -d --name daily \
    "${limits[@]}" "${both_swap[@]}" localhost/batch:2 sleep 1000) || exit
  must ctr run -d --rootfs --memory-limit 67108864 --cpus 0.5 /tmp/root lab /bin/sleep 1000
  crun_cgroup=machine.slice/libpod-$crun_id.scope/container
  runc_cgroup=machine.slice/libpod-$runc_id.scope
  plain_cgroup=libpod_parent/libpod-$plain_id
  cp -a /tmp/root /tmp/root-nspawn
  cp -a /tmp/root /tmp/root-lxc
  start_nspawn
  start_lxc
}

# Whether the memory and the CPU limit of every container are lowered.
all_lowered() {
  local line knob meant in_force
  while read -r line; do
    knob=${line%%=*} meant=${line#*=}
    case $knob in */memory.high | */cpu.max) ;; *) continue ;; esac
    read -r in_force _ <"$root/$knob" && is_below "$in_force" "${meant% *}" || return 1
  done <<<"$original"
}

# The daemon lowers all limits, DRIFT happens, and at its end the daemon restores the intended
# values.
rewrite_limits() {  # INCLUDE DRIFT
  original=$(snapshot $cgroups)
  write_config "$1"
  sed -i 's/^cgroups = .*/names = ["*"]/' /tmp/cgphase.toml
  drift_config
  start_daemon
  if until_true 60000 all_lowered; then
    echo 'all limits are lowered'
    "$2"
  else
    fail 'not every limit was lowered within 60 s'
    tail -n 5 /tmp/daemon.log
    cli list
    snapshot $cgroups
  fi
  kill -TERM "$daemon"
  wait "$daemon" || fail 'the daemon did not exit with 0'
  if all_original; then
    echo 'all limits are restored'
  else
    fail 'not all limits are restored after the stop'
    diff <(echo "$original") <(snapshot $cgroups)
  fi
}
