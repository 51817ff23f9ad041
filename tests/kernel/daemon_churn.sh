#!/bin/bash
# Containers start and end, 100 a second, under a whole daemon on this machine's own kernel. The
# daemon's memory, descriptors, BPF maps and their entries must not grow with the number of
# containers.
# daemon_churn.sh PROGRAMS [SECONDS WARM_UP], as root. The short form (40 s after 25 s) keeps no
# history, whose cache fills for minutes. The long form is 600 s after 180 s, with the history. No
# limit is written: the daemon only observes. Exit status 77: the test cannot run here.
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
skip() { echo "skipped: $*"; exit 77; }

if [ -z "${CGPHASE_CGROUP_ROOT:-}" ]; then
  CGPHASE_CGROUP_ROOT=$(awk '{for (i = 7; i < NF; ++i) if ($i == "-" && $(i + 1) == "cgroup2")
    {print $5; exit}}' /proc/self/mountinfo)
  [ -n "$CGPHASE_CGROUP_ROOT" ] || skip 'no cgroup v2 is mounted here'
  export CGPHASE_CGROUP_ROOT
fi
. "$(dirname "$0")/daemon_fixture.sh"

job=$(mktemp -d)
state=$job/s runtime=$job/r
name=cgphase-churn-$$
clean_up() {
  [ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null
  wait
  rmdir "$root/$name" 2>/dev/null
  rm -rf "$job"
}
trap clean_up EXIT
mkdir "$root/$name" || skip "cannot create a cgroup below $root"

cat >"$job/cgphase.toml" <<EOF
mode = "observe"
model = "$tree/model/default_model.json"
include = ["/$name/*"]
store.enabled = $([ -n "${2-}" ] && echo true || echo false)
EOF
"$bin/cgphased" --config "$job/cgphase.toml" --cgroup-root "$root" --state-dir "$state" \
  --runtime-dir "$runtime" >"$job/log" 2>&1 &
daemon=$!
answers() { "$bin/cgphase" --socket "$runtime/read.sock" status >"$job/status" 2>&1; }
until_true 20000 answers || fail "no daemon: $(cat "$job/log")"

python3 "$tree/tests/kernel/churn.py" "$root/$name" "$daemon" "${2:-40}" "${3:-25}" ||
  fail "something grew, see above; the daemon's log: $(tail -n 5 "$job/log")"
answers || fail "the daemon does not answer any more: $(cat "$job/status")"
# Printed, but no failure: one minute brings more cgroups than the maps have room for.
grep 'not counted for lack of room' "$job/status"
kill -TERM "$daemon"
wait "$daemon" || fail "the daemon exited with $?: $(tail -n 5 "$job/log")"
daemon=''
finish
