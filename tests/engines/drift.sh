# Changes that systemd, engines and people make to limits that a daemon lowered, each for real. A
# silently reset limit is lowered again after a pause. A limit that somebody set stays. A limit that
# nobody changed stays lowered. Sourced by engines_test.sh and systemd257_test.sh.
# shellcheck shell=bash disable=SC2154

theirs='somebody else changed the limit'
reset='a reload or the engine put the original back'
stand_down_ms=60000
mark='' swaps=''

cli() { "$bin/cgphase" --socket /tmp/r/read.sock "$@"; }

# Sets pauses short enough to wait for, and the shortest possible yield.
drift_config() {
  sed -i 's/^stand_down = .*/stand_down = "1min"/' /tmp/cgphase.toml
  printf '%s\n' 'silent_revert = "3s"' 'reapply_pause = "2s"' 'memory_step_ratio = 0.5' \
    >>/tmp/cgphase.toml
}

# From now on VALUE is the intended value of CGROUP's KNOB. The daemon must restore it at its end;
# it is recorded in $original.
meant() {
  original=$(sed "s|^\(${1#/}/$2=\).*|\1$3|" <<<"$original")
}

# The value is intended and was set: it is in force until it is lowered again.
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

# Waits longer than silent_revert, so that the next change is not attributed to the daemon's own
# write.
settled() {
  local before
  before=$(snapshot $cgroups)
  pause_ms 3500
  [ "$before" = "$(snapshot $cgroups)" ]
}

# Sets $mark: later steps read the journal from here.
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

# judged WHAT 'NAME...' 'NAME...': since the last `mark` the journal must report the first names as
# changed, the second as reset, and no other name.
judged() {
  local name what=$1 changed=$2 resets=$3
  until_true 15000 all_told "$theirs" $changed && until_true 15000 all_told "$reset" $resets ||
    fail "$what: the journal has not all of it: $(cat /tmp/events)"
  for name in $drift_names; do
    case " $changed " in *" $name "*) ;; *)
      ! grep "  $name: .*$theirs" /tmp/events ||
        fail "$what: $name is wrongly reported as changed" ;;
    esac
    case " $resets " in *" $name "*) ;; *)
      ! grep "  $name: .*$reset" /tmp/events || fail "$what: $name is wrongly reported as reset" ;;
    esac
  done
  swaps=$(docker_swaps)
}

# Also, Docker's swap limits must be the same as before the daemon wrote.
lowered_again() {  # WHAT
  until_true 90000 all_lowered || fail "$1: not lowered again: $(snapshot $cgroups; cli events)"
  [ "$(docker_swaps)" = "$swaps" ] ||
    fail "$1: memory.swap.max was $swaps, now it is $(docker_swaps)"
  echo "$1: limits are lowered, and Docker's swap limits are as they were"
}

# Values that others set since `begin` stay while the daemon yields, which began after it.
nothing_lowered() {  # WHAT
  local left=$((stand_down_ms - $(now_ms) + ${mark/./} / 1000))
  ! until_true $((left - 1000)) some_moved ||
    fail "$1: a set value did not stay: $(snapshot $cgroups)"
  echo "$1: the set values stay"
}

# Docker's runtime does not pass a swap limit of zero to systemd, so systemd removes it.
swap_lifted() {
  local cgroup
  for cgroup; do meant "$cgroup" memory.swap.max max; done
}
