# What systemd does to limits that a daemon lowered, each for real, and what it makes of it: what
# was reset is lowered again after a pause, what is not touched stays. Sourced by engines_test.sh.
# shellcheck shell=bash disable=SC2154

theirs='somebody else changed the limit'
reset='a reload or the engine put the original back'
drift_names='web nightly hourly daily lab plain.service room box'

cli() { "$bin/cgphase" --socket /tmp/r/read.sock "$@"; }

# Pauses short enough to wait for; a stand-down, which none of these is, takes a minute at least.
drift_config() {
  sed -i 's/^stand_down = .*/stand_down = "1min"/' /tmp/cgphase.toml
  printf '%s\n' 'silent_revert = "3s"' 'reapply_pause = "2s"' 'memory_step_ratio = 0.5' \
    >>/tmp/cgphase.toml
}

# From now on somebody means CGROUP's KNOB to be VALUE: what the end must restore, in $original.
meant() {
  original=$(sed "s|^\(${1#/}/$2=\).*|\1$3|" <<<"$original")
}

# Longer than silent_revert: what comes next is not put down to a write of the daemon's own.
settled() {
  local before
  before=$(snapshot $cgroups)
  pause_ms 3500
  [ "$before" = "$(snapshot $cgroups)" ]
}

journal() { cli events --from "$mark" >/tmp/events; }

all_told() {  # PHRASE NAME...
  local name phrase=$1
  shift
  journal || return
  for name; do grep -q "  $name: .*$phrase" /tmp/events || return; done
}

# What the journal says since the last `mark` of the containers named, and that it is silent of the
# others: judged WHAT 'NAME...' 'NAME...', whose limits were changed, and reset.
judged() {
  local name what=$1 changed=$2 resets=$3
  until_true 15000 all_told "$theirs" $changed && until_true 15000 all_told "$reset" $resets ||
    fail "$what: the journal says $(cat /tmp/events)"
  for name in $drift_names; do
    case " $changed " in *" $name "*) ;; *)
      ! grep "  $name: .*$theirs" /tmp/events || fail "$what: $name is taken for changed" ;;
    esac
    case " $resets " in *" $name "*) ;; *)
      ! grep "  $name: .*$reset" /tmp/events || fail "$what: $name is taken for reset" ;;
    esac
  done
  swap=$(<"$web/memory.swap.max")
}

# And Docker's swap limit is what it was before the daemon wrote.
lowered_again() {  # WHAT
  until_true 60000 all_lowered || fail "$1: not lowered again: $(snapshot $cgroups; cli events)"
  [ "$(<"$web/memory.swap.max")" = "$swap" ] ||
    fail "$1: memory.swap.max was $swap and is $(<"$web/memory.swap.max")"
  echo "$1: limits are lowered, and Docker's swap limit is as it was"
}

# One property is set, and systemd writes all limits of the unit.
another_property() {
  must systemctl set-property --runtime "${runc_cgroup##*/}" TasksMax=300
  judged 'another property' '' hourly
  meant "$runc_cgroup" pids.max 300
  lowered_again 'another property'
}

# runc does not tell systemd of a swap limit of nothing, so systemd lifts it with the rest.
reload() {  # VERB
  must systemctl "$1"
  judged "$1" '' 'web hourly plain.service room'
  meant "$docker_cgroup" memory.swap.max max
  meant "$runc_cgroup" memory.swap.max max
  lowered_again "$1"
}

try_drift() {
  local step swap=0 mark
  docker_cgroup=/system.slice/docker-$docker_id.scope
  crun_cgroup=/machine.slice/libpod-$crun_id.scope/container
  runc_cgroup=/machine.slice/libpod-$runc_id.scope
  web=$root$docker_cgroup
  lowered_again 'before anybody else wrote'
  for step in 'reload daemon-reload' 'reload daemon-reexec' another_property; do
    until_true 60000 settled || fail "the limits do not settle before $step"
    mark=$EPOCHREALTIME
    $step
  done
}
