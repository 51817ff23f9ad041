#!/bin/bash
# Memory of an idle container is reclaimed, live, without a limit, and comes back when
# the container wakes. A critical container keeps its memory.
# rule: MEM-11
# shellcheck source=tests/kernel/daemon_fixture.sh
source "$(dirname "$0")/daemon_fixture.sh"

mib=$((1 << 20))
charged() { echo $(($(<"$root/$1/memory.current") / mib)); }
shown() { "$bin/cgphase" --socket "$runtime/read.sock" show "$1" --json; }
asleep_mib() {  # NAME
  shown "$1" | python3 -c 'import json, sys
print(json.load(sys.stdin).get("asleep_bytes", 0) >> 20)'
}

# A program in the container NAME whose page cache holds a file of 48 MiB. It reads the file again
# and works for a while when /tmp/wake appears.
hold_cache() {  # NAME
  mkdir "$root/$1" || exit 1
  echo $((256 * mib)) >"$root/$1/memory.max"
  (
    echo "$BASHPID" >"$root/$1/cgroup.procs"
    exec python3 - "/scratch/$1" <<'PY'
import os
import sys
import time

def read():
    with open(sys.argv[1], "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass

with open(sys.argv[1], "wb") as file:
    file.write(os.urandom(1 << 20) * 48)
os.sync()
read()
with open("/tmp/" + os.path.basename(sys.argv[1]) + "-read", "w", encoding="ascii"):
    pass
while not os.path.exists("/tmp/wake"):
    time.sleep(2)
while True:
    read()
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        pass
PY
  ) &
}

sleeps() { [ "$(asleep_mib test-idle)" -ge 4 ]; }
# Nothing of a container that works is asleep.
woke() {
  shown test-idle | python3 -c 'import json, sys
shown = json.load(sys.stdin)
sys.exit(not shown.get("last_wake") or shown.get("asleep_bytes", 0) > 0)'
}

hold_cache test-idle
hold_cache test-critical
cgroups='test-idle test-critical'
until_true 60000 test -e /tmp/test-idle-read -a -e /tmp/test-critical-read ||
  fail 'the programs do not start'
before=$(charged test-idle)
write_config '/test*'
sed -i '/^include/a containers = ["/test-critical class=critical"]' /tmp/cgphase.toml
# Nothing but the weight of the critical container is written.
sed -i 's/^enough_samples = .*/enough_samples = 1000000/; s/^enough_runs = .*/enough_runs = 1000/' \
  /tmp/cgphase.toml
start_daemon hold
until_true 60000 test -S "$runtime/read.sock" || fail 'the daemon does not answer'

until_true 300000 sleeps || fail "nothing is asleep: $(shown test-idle)"
held=$(charged test-idle)
[ "$held" -le $((before - 4)) ] || fail "$held of $before MiB are charged to the sleeping container"
[ "$(asleep_mib test-critical)" = 0 ] || fail 'a critical container sleeps'
[ "$(<"$root/test-idle/memory.high")" = max ] || fail 'a limit was set'
echo "asleep: $(asleep_mib test-idle) MiB, charged: $held MiB"

: >/tmp/wake
until_true 60000 woke || fail "the container does not wake: $(shown test-idle)"
[ "$("$bin/cgphase" --socket "$runtime/read.sock" show test-idle | grep -c '^sleep ')" = 1 ] ||
  fail 'show does not say what waking cost'
finish
