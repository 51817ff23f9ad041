#!/bin/bash
# Containers come and go, 100 a second, before a whole daemon on this machine's own kernel: neither
# its memory nor its descriptors nor its BPF maps nor what is in them may grow with their number.
# daemon_churn.sh PROGRAMS [SECONDS WARM_UP], as root. The short form (40 s after 25 s) keeps no
# history, whose cache fills for minutes; 600 s after 180 s is the long form, with it. No limit is
# written: the daemon only observes. Exit status 77: it cannot be tried here.
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
mkdir "$root/$name" || skip "no cgroup can be made below $root"

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
  fail "see above; the daemon said: $(tail -n 5 "$job/log")"
answers || fail "it does not answer any more: $(cat "$job/status")"
# Told and no failure: a minute brings more cgroups than the maps have room for.
grep 'not counted for lack of room' "$job/status"
kill -TERM "$daemon"
wait "$daemon" || fail "it ended with status $?: $(tail -n 5 "$job/log")"
daemon=''
finish
