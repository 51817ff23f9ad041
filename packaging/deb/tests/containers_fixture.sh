# Shared by the tests of the installed package with containers. They are bash scripts that source
# this file first. autopkgtest or tests/package/system_test.sh runs them as root in the root of the
# source tree.
# shellcheck shell=bash disable=SC2034,SC2154
set -- /usr/bin  # daemon_fixture.sh finds the programs here
export CGPHASE_CGROUP_ROOT=/sys/fs/cgroup
. tests/kernel/daemon_fixture.sh
tree=$PWD
. tests/engines/engines_fixture.sh
. tests/engines/unit_fixture.sh
. tests/package/package_fixture.sh

kept=/var/lib/containers-test  # needed after the restart of the machine
# The host's programs in a root that has no programs.
limits=(--network none --tmpfs /hold -m 128m --memory-swap 128m --cpus 0.8
  -v /usr:/usr:ro -v /etc/alternatives:/etc/alternatives:ro)

cli() { cgphase "$@"; }
answers() { cgphase -q status >/dev/null 2>&1; }
status_says() { cgphase status --json 2>/dev/null | grep -q "$1"; }
# Only events of this step count; an earlier one could match too.
told() {
  cgphase events --from "@$step_began" >/tmp/events 2>/dev/null && grep -q "$1" /tmp/events
}

confined() {  # if the kernel supports it, as on every Debian
  grep -q Y /sys/module/apparmor/parameters/enabled 2>/dev/null || return 0
  echo "AppArmor: $(docker exec web busybox cat /proc/1/attr/current)" | tee /tmp/confined
  grep -q ': docker-default (enforce)' /tmp/confined
}

# A server in Docker and a training job in Podman.
start_containers() {
  busybox_root
  mkdir -p /tmp/root/etc/alternatives
  ln -s usr/lib usr/lib64 /tmp/root/
  cp packaging/deb/tests/serving.sh packaging/deb/tests/training.py /tmp/root/
  tar -C /tmp/root -cf /tmp/root.tar .
  must systemctl start docker
  must docker import /tmp/root.tar shop:1 >/dev/null
  must podman import -q /tmp/root.tar localhost/batch:2 >/dev/null
  docker_id=$(must docker run -d --name web "${limits[@]}" shop:1 busybox sh /serving.sh) || exit
  podman_id=$(must podman --runtime crun run -d --name nightly "${limits[@]}" localhost/batch:2 \
    python3 /training.py) || exit
  confined || fail "AppArmor does not confine Docker's container: $(docker inspect web)"
  mkdir -p "$kept"
  echo "docker_id=$docker_id podman_id=$podman_id" >"$kept/ids"
}

name_cgroups() {
  # shellcheck disable=SC1091
  . "$kept/ids"
  docker_cgroup=system.slice/docker-$docker_id.scope
  podman_cgroup=machine.slice/libpod-$podman_id.scope/container
  cgroups="$docker_cgroup $podman_cgroup"
}

# The package's own configuration is not changed; an administrator would not either.
write_enforcing() {  # '"NAME", ...' [POLICY]; an empty one is the default
  local policy=${2-hold}
  [ -z "$policy" ] || policy="policy = \"$policy\""
  mkdir -p /etc/cgphase/conf.d
  # The keys of [rails] are for tests, which cannot wait for hours.
  export CGPHASE_TEST_KEYS=1
  systemctl set-environment CGPHASE_TEST_KEYS=1
  cat >/etc/cgphase/conf.d/containers.toml <<TOML
mode = "enforce"
model = "$kept/here.json"
$policy
[enforce]
cpu = "both"
names = [$1]
[rails]
enough_samples = 5
enough_runs = 1
cool_down = "1s"
quarantine = "1s"
trial = "1s"
trial_model_steps = 1
trial_tolerance_ratio = 10.0
host_lower_window = "1s"
host_lowers_per_window = 100
cpu_lower_window = "1s"
memory_lower_window = "1s"
memory_headroom_bytes = "8M"
memory_step_ratio = 0.5
dwell = "1s"
settle = "0s"
stand_down = "1min"
silent_revert = "3s"
reapply_pause = "2s"
quiet_cpu_some_avg10 = 1.0
quiet_memory_io_some_avg10 = 1.0
TOML
}

observed() {  # SECONDS
  until_true 10000 answers || fail 'cgphase status does not answer within 10 s'
  must cgphase -q record --for "$1s" -o /tmp/here.csv web nightly
  all_original || fail 'observing changed a limit'
  must cgphase -q train --epochs 40 -o "$kept/here.json" /tmp/here.csv \
    2>/tmp/trained  # on a console it would print its progress
  echo "observed: $(wc -l </tmp/here.csv) samples, a model trained on them"
}

restart_daemon() {
  must systemctl reset-failed cgphased  # the test restarts it more often than the unit allows
  must systemctl restart cgphased
  until_true 10000 answers || fail 'cgphase status does not answer within 10 s of a start'
}

# Whether CPU or memory of each container is lowered, and neither is above its intended value. The
# fast path may raise what is needed again, which is correct.
each_lowered() {
  local cgroup knob meant in_force lower all=yes
  for cgroup in $cgroups; do
    lower=no
    for knob in cpu.max memory.high; do
      meant=$(sed -n "s|^$cgroup/$knob=\([^ ]*\).*|\1|p" <<<"$original")
      { read -r in_force _ <"$root/$cgroup/$knob"; } 2>/dev/null || return 1
      if [ "$meant" != "$in_force" ] && { [ "$in_force" = max ] ||
        { [ "$meant" != max ] && [ "$in_force" -gt "$meant" ]; }; }; then
        all=no
      elif [ "$in_force" != "$meant" ]; then
        lower=yes
        [[ $knobs_lowered == *" $cgroup/$knob "* ]] || knobs_lowered+=" $cgroup/$knob "
      fi
    done
    [ $lower = yes ] || all=no
  done
  [ $all = yes ]
}
# Whether CPU and memory of both were lowered at some time.
knobs_lowered=''
every_knob_lowered() {
  each_lowered
  [ "$(wc -w <<<"$knobs_lowered")" = 4 ]
}

lowered() {  # WHEN
  until_true 180000 each_lowered && echo "$1: limits of both are lowered" && return
  fail "$1: not lowered within 3 min: $(snapshot $cgroups)"
  cgphase list
  cgphase events --from -1min | tail -n 40
  docker ps -a
  podman ps -a
  podman logs nightly 2>&1 | tail -n 5
  dmesg | grep -i 'oom.kill\|killed process' | tail -n 5
  finish
}

# Called before a step that must restore every limit: the fast path may have restored it already.
still_lowered() {
  until_true 180000 each_lowered || unproved "there is nothing to restore: $(cgphase list)"
}

# From now on VALUE is the intended value of CGROUP's KNOB.
meant() { original=$(sed "s|^\($1/$2=\).*|\1$3|" <<<"$original"); }

restored() {  # WHEN
  until_true "$restore_limit_ms" all_original ||
    fail "not restored $1: $(difference)"
}

none_killed() {
  local cgroup
  for cgroup in $cgroups; do
    [ "$(awk '$1 == "oom_kill" { print $2 }' "$root/$cgroup/memory.events")" = 0 ] ||
      fail "a process was killed in $cgroup"
  done
}

# Work that a lower limit must not stop: the server serves more requests, and the training writes
# its next checkpoint.
visits() { docker exec web redis-cli -s /hold/socket get visits 2>&1; }
more_visits() {  # THAN
  local now
  now=$(visits)
  [[ $now =~ ^[0-9]+$ ]] && [ "$now" -gt "$1" ]
}
all_work() {  # WHEN
  local before
  before=$(visits)
  [[ $before =~ ^[0-9]+$ ]] || before=0  # it is still starting
  until_true 60000 more_visits "$before" ||
    fail "$1: the server served $before requests, and then answered '$(visits)'"
  podman exec nightly busybox timeout 120 busybox sh -c 'busybox rm -f /hold/checkpoint.npz
    until [ -s /hold/checkpoint.npz ]; do busybox sleep 1; done' ||
    fail "$1: the training does not continue: $(podman logs nightly 2>&1 | tail -n 5)"
}

main_is_other() { [ "$(property MainPID)" != "$1" ] && property_is ActiveState active; }
same_id() { [ "$(cgphase show "$1" --json 2>/dev/null | grep -c "$2")" != 0 ]; }
