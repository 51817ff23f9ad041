# What systemd, engines and people do to limits that a daemon lowered, each for real, and what it
# makes of it: what was silently reset is lowered again after a pause, what somebody set stays, and
# what is not touched stays lowered. Sourced by engines_test.sh and systemd257_test.sh.
# shellcheck shell=bash disable=SC2154

theirs='somebody else changed the limit'
reset='a reload or the engine put the original back'
stand_down_ms=60000
mark='' swaps=''

cli() { "$bin/cgphase" --socket /tmp/r/read.sock "$@"; }

# Pauses short enough to wait for, and the shortest stand-down that there is.
drift_config() {
  sed -i 's/^stand_down = .*/stand_down = "1min"/' /tmp/cgphase.toml
  printf '%s\n' 'silent_revert = "3s"' 'reapply_pause = "2s"' 'memory_step_ratio = 0.5' \
    >>/tmp/cgphase.toml
}

# From now on somebody means CGROUP's KNOB to be VALUE: what the end must restore, in $original.
meant() {
  original=$(sed "s|^\(${1#/}/$2=\).*|\1$3|" <<<"$original")
}

# Somebody means it, and set it: it is in force until lowered from.
set_to() {  # CGROUP KNOB VALUE
  meant "$@"
  set_by_others+="$root/$1/$2=$3"$'\n'
}

some_moved() {
  local line in_force
  while read -r line; do
    [ -n "$line" ] || continue
    read -r in_force <"${line%%=*}" && [ "$in_force" = "${line#*=}" ] || return 0
  done <<<"$set_by_others"
  return 1
}

# Longer than silent_revert: what comes next is not put down to a write of the daemon's own.
settled() {
  local before
  before=$(snapshot $cgroups)
  pause_ms 3500
  [ "$before" = "$(snapshot $cgroups)" ]
}

# What follows is told in the journal since $mark.
begin() {  # WHAT
  until_true 60000 settled || fail "the limits do not settle before $1"
  mark=$EPOCHREALTIME
}

journal() { cli events --from "$mark" >/tmp/events; }

all_told() {  # PHRASE NAME...
  local name phrase=$1
  shift
  journal || return
  for name; do grep -q "  $name: .*$phrase" /tmp/events || return; done
}

docker_swaps() { cat "$root/$docker_cgroup/memory.swap.max" "$root/$cart_cgroup/memory.swap.max"; }

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
  swaps=$(docker_swaps)
}

# And Docker's swap limits are what they were before the daemon wrote.
lowered_again() {  # WHAT
  until_true 90000 all_lowered || fail "$1: not lowered again: $(snapshot $cgroups; cli events)"
  [ "$(docker_swaps)" = "$swaps" ] ||
    fail "$1: memory.swap.max was $swaps and is $(docker_swaps)"
  echo "$1: limits are lowered, and Docker's swap limits are as they were"
}

# What others set since `begin` stays as long as the daemon stands down, which began after it.
nothing_lowered() {  # WHAT
  local left=$((stand_down_ms - $(now_ms) + ${mark/./} / 1000))
  ! until_true $((left - 1000)) some_moved ||
    fail "$1: not all is as it was set: $(snapshot $cgroups)"
  echo "$1: what was set stays"
}

# Docker's runtime does not tell systemd of a swap limit of nothing, so systemd lifts it.
swap_lifted() {
  local cgroup
  for cgroup; do meant "$cgroup" memory.swap.max max; done
}
