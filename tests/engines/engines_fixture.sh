# What the tests with real engines share beside daemon_fixture.sh and drift.sh, which they source
# before it.
# shellcheck shell=bash disable=SC2034,SC2154
limits=(--network none -m 64m --cpus 0.5)
both_swap=(--memory-swap 64m)

must() { "$@" || { echo "FAILED, so nothing is proved: $*"; exit 1; }; }

# What each container runs: busybox, in a directory and as a tar.
busybox_root() {
  mkdir -p /tmp/root/{bin,etc,proc,sys,dev,usr,tmp,run,var}
  cp /bin/busybox /tmp/root/bin/
  ln -s busybox /tmp/root/bin/sleep
  echo 'ID=busybox' >/tmp/root/etc/os-release
  tar -C /tmp/root -cf /tmp/root.tar .
}

# Two of Docker's, for its updates of two limits, and a service.
start_drifters() {
  must docker import /tmp/root.tar shop:1 >/dev/null
  docker_id=$(must docker run -d --name web "${limits[@]}" "${both_swap[@]}" shop:1 sleep 1000)
  cart_id=$(must docker run -d --name cart "${limits[@]}" "${both_swap[@]}" shop:1 sleep 1000)
  docker_cgroup=system.slice/docker-$docker_id.scope
  cart_cgroup=system.slice/docker-$cart_id.scope
  must systemd-run --quiet --unit plain -p MemoryMax=64M -p CPUQuota=50% sleep 1000
}

# Memory of every container, and CPU too.
all_lowered() {
  local line knob meant in_force
  while read -r line; do
    knob=${line%%=*} meant=${line#*=}
    case $knob in */memory.max | */cpu.max) ;; *) continue ;; esac
    read -r in_force _ <"$root/$knob" && [ "$in_force" -lt "${meant% *}" ] || return 1
  done <<<"$original"
}

# The daemon lowers them all, DRIFT happens, and its end restores what is then meant.
rewrite_limits() {  # INCLUDE DRIFT
  original=$(snapshot $cgroups)
  write_config "$1"
  sed -i 's/^cgroups = .*/names = ["*"]/' /tmp/cgphase.toml
  drift_config
  start_daemon
  if until_true 60000 all_lowered; then
    echo 'limits of all of them lowered'
    "$2"
  else
    fail 'not every limit was lowered within 60 s'
    tail -n 5 /tmp/daemon.log
    cli list
    snapshot $cgroups
  fi
  kill -TERM "$daemon"
  wait "$daemon" || fail 'the daemon did not stop well'
  if all_original; then
    echo 'all original again'
  else
    fail 'not all is original after the stop'
    diff <(echo "$original") <(snapshot $cgroups)
  fi
}
