# What the tests of the whole daemon share; they run in a guest (scripts/guest), as bash scripts
# that source this file with the programs' directory as their first argument.
# shellcheck shell=bash disable=SC2034
set -uo pipefail

bin=$1
tree=$(realpath "$(dirname "$0")/../..")
root=${CGPHASE_CGROUP_ROOT:?run this through scripts/guest, as ctest -L kernel does}
knobs='cpu.max cpu.max.burst cpu.weight cpu.idle memory.min memory.low memory.high memory.max
  memory.swap.max pids.max'
restore_limit_ms=5000
failures=0

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# Waits, without starting a program, for so many milliseconds.
exec {never}<> <(:)
pause_ms() { read -rt "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))" -u "$never" || true; }

# Every knob of every cgroup given, one "cgroup/knob=value" per line.
snapshot() {
  local cgroup knob value
  for cgroup; do
    for knob in $knobs; do
      [ -e "$root/$cgroup/$knob" ] || continue
      read -r value <"$root/$cgroup/$knob" && echo "$cgroup/$knob=$value"
    done
  done
}

# until_true MILLISECONDS COMMAND...: polls; false if it never came true.
until_true() {
  local end=$(($(now_ms) + $1))
  shift
  until "$@"; do
    [ "$(now_ms)" -lt "$end" ] || return 1
    pause_ms 100
  done
}

finish() {
  [ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }
  echo 'all passed'
}
