# Shared by the tests of the whole daemon. They run in a guest (scripts/guest) as bash scripts that
# source this file. Their first argument is the directory of the programs.
# shellcheck shell=bash disable=SC2034
set -uo pipefail

bin=$1
tree=$(realpath "$(dirname "$0")/../..")
root=${CGPHASE_CGROUP_ROOT:?run this through scripts/guest, as ctest -L kernel does}
knobs='cpu.max cpu.max.burst cpu.weight cpu.idle memory.min memory.low memory.high memory.max
  memory.swap.max pids.max cgroup.freeze'
restore_limit_ms=5000
failures=0
cgroups='' original='' daemon=''
state=/tmp/s runtime=/tmp/r
# With it the daemon accepts the test keys of write_config.
export CGPHASE_TEST_KEYS=1

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
# Sets $now, for loops. $(now_ms) forks, which takes 50 ms in a guest. That is more than a load may
# take.
set_now_ms() { now=$((${EPOCHREALTIME/./} / 1000)); }

# Whether the limit $1 is below $2; "max" is above every number.
is_below() { [ "$1" != max ] && { [ "$2" = max ] || [ "$1" -lt "$2" ]; }; }

# Waits that many milliseconds without starting a program.
exec {never}<> <(:)
pause_ms() {
  local seconds
  printf -v seconds '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
  read -rt "$seconds" -u "$never" || true
}

# Puts every knob of the given cgroups into $taken, one "cgroup/knob=value" per line. Unlike
# $(snapshot ...) it does not fork.
take_snapshot() {
  local cgroup knob value
  taken=''
  for cgroup; do
    for knob in $knobs; do
      [ -e "$root/$cgroup/$knob" ] || continue
      read -r value <"$root/$cgroup/$knob" && taken+="$cgroup/$knob=$value"$'\n'
    done
  done
}
snapshot() {
  local taken
  take_snapshot "$@"
  printf %s "$taken"
}

# until_true MILLISECONDS COMMAND...: repeats the command until it succeeds; false after the time. A
# slow command runs at most half of the time, so that the awaited event can happen.
until_true() {
  local now end begun pause
  set_now_ms
  begun=$now end=$((now + $1))
  shift
  until "$@"; do
    set_now_ms
    [ "$now" -lt "$end" ] || return 1
    pause=$((now - begun > 100 ? now - begun : 100))
    pause_ms $((pause < end - now ? pause : end - now))
    set_now_ms
    begun=$now
  done
}

make_container() {  # NAME CPU.MAX MEMORY.MAX DUTY: a load that works DUTY of 10 parts of the time
  mkdir "$root/$1" || exit 1
  echo "$2" >"$root/$1/cpu.max"
  echo "$3" >"$root/$1/memory.max"
  (
    echo "$BASHPID" >"$root/$1/cgroup.procs"
    while :; do
      set_now_ms
      end=$((now + $4 * 20))
      while [ "$now" -lt "$end" ]; do set_now_ms; done
      pause_ms $(((10 - $4) * 20))
    done
  ) &
}

# Configures a daemon that lowers within seconds what PATTERN matches.
write_config() {  # PATTERN [MODE]
  local pattern=$1 mode=${2:-enforce}
  "$bin/quick_model" "$tree/model/default_model.json" /tmp/model.json || exit 1
  mkdir -p "$state"
  cat >/tmp/cgphase.toml <<EOF
mode = "$mode"
model = "/tmp/model.json"
interval = "250ms"
include = ["$pattern"]
[enforce]
cpu = "both"
cgroups = ["$pattern"]
[rails]
enough_samples = 3
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
dwell = "1s"
settle = "0s"
start_up = "0s"
stand_down = "0s"
smallest_change_ratio = 0.01
EOF
}

start_daemon() {  # [POLICY]
  "$bin/cgphased" --config /tmp/cgphase.toml --cgroup-root "$root" --state-dir "$state" \
    --runtime-dir "$runtime" --policy "${1:-hold}" >>/tmp/daemon.log 2>&1 &
  daemon=$!
}

# Compares the limits of $cgroups with $original, a snapshot that the test took.
all_original() {
  local taken
  take_snapshot $cgroups
  [ "$taken" = "$original"$'\n' ]
}
some_changed() { ! all_original; }
difference() { diff <(echo "$original") <(snapshot $cgroups); }

await_change() {
  until_true 150000 some_changed && return
  fail "$1: the daemon changed no limit within 150 s, so nothing is proved"
  tail -n 3 /tmp/daemon.log
  "$bin/cgphase" --socket "$runtime/read.sock" list -o wide
  "$bin/cgphase" --socket "$runtime/read.sock" events
  finish
}

finish() {
  [ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }
  echo 'all passed'
}
