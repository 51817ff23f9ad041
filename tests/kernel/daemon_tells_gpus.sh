#!/bin/bash
# The whole daemon with a driver library that reports GPUs. Tables, JSON, metrics and history show
# the GPU use of real processes in real cgroups. A driver that goes away, and one that hangs, are
# reported and block nothing.
# daemon_tells_gpus.sh PROGRAMS LIBRARY, run by scripts/guest.
# shellcheck source-path=SCRIPTDIR source=daemon_fixture.sh
. "$(dirname "$0")/daemon_fixture.sh"

library=$2
cgroups='test-gpu test-cpu'
export FAKE_NVML=/tmp/nvml
uuid=GPU-8f1e9a3c-0b52-4c1e-a7d3-5d2f6e9b1c04

cli() { "$bin/cgphase" --socket "$runtime/read.sock" "$@"; }

# says LINE...: what the library reports from now on; the file is replaced at once.
says() {
  printf '%s\n' "$@" >/tmp/nvml.new
  mv /tmp/nvml.new "$FAKE_NVML"
}

sample_time=0
# busy PERCENT: the process of test-gpu and one outside all containers use the GPU.
busy() {
  sample_time=$((sample_time + 1000000))
  says "device $uuid 8589934592 4294967296 90 50" \
    "process $uuid $worker 2147483648 compute 0 0" "process $uuid 1 1048576 graphics 0 0" \
    "sample $uuid $worker $sample_time $1 30" "sample $uuid 1 $sample_time 5 5"
}

# shows PATTERN COMMAND...: whether the command's output matches.
shows() {
  local pattern=$1
  shift
  cli "$@" >/tmp/shown 2>&1 && grep -qE "$pattern" /tmp/shown
}
# A process is busy as long as the driver has new samples of it.
shows_busy() { busy 70; shows "$@"; }
recorded() {
  cli record -o /tmp/record.csv >/tmp/shown 2>&1 && grep -q 2147483648 /tmp/record.csv
}

expect() {  # WHAT COMMAND...
  local what=$1
  shift
  until_true 30000 "$@" || fail "$what: $(cat /tmp/shown; tail -n 3 /tmp/daemon.log)"
}

make_container test-gpu '150000 100000' 134217728 1
make_container test-cpu '150000 100000' 134217728 1
until_true 5000 grep -q . "$root/test-gpu/cgroup.procs" || fail 'no process in test-gpu'
read -r worker <"$root/test-gpu/cgroup.procs"
write_config '/test-*' observe
printf '[gpu]\nnvml = "%s"\n' "$library" >>/tmp/cgphase.toml
busy 50
start_daemon hold

expect 'utilisation' shows_busy '"utilisation_ratio": 0.7' show test-gpu -o json
expect 'the GPU of the container' shows_busy "0.70 busy, 2.0 GiB, on $uuid" show test-gpu
expect 'the wide table' shows_busy 'test-gpu .* 0.70 +2.0 GiB +GPU-8f1e9a3c ' list -o wide
expect 'the info metric' shows_busy "_info.*name=\"test-gpu\".*gpu=\"$uuid\"" list -o openmetrics
expect 'the metric' shows_busy '_gpu_utilisation_ratio\{.*\} 0.7' list -o openmetrics
expect 'the GPU in status' shows "$uuid Fake GPU: 90 % busy, 4.0 GiB of 8.0 GiB" status
expect 'the source' shows 'GPU telemetry ok, 1 GPU \(Fake GPU\), 2 processes' status
shows '^gpu ' show test-cpu && fail "test-cpu has no process on a GPU: $(cat /tmp/shown)"
expect 'the history' recorded

says "device $uuid 8589934592 4294967296 90 50" 'result nvmlDeviceGetHandleByIndex_v2 15'
expect 'a GPU that is lost' shows 'GPU telemetry off: .*GPU is lost \(15\)' status
expect 'nothing of a lost GPU' shows '"utilisation_ratio": null' show test-gpu -o json

kill -TERM "$daemon"
wait "$daemon" || fail 'SIGTERM: the daemon failed'
mkfifo /tmp/silence
says "device $uuid 8589934592 4294967296 90 50" 'hang nvmlDeviceGetUtilizationRates /tmp/silence'
start_daemon hold
expect 'a driver that hangs' shows 'GPU telemetry off: the driver has not answered for' status
expect 'the rest goes on' shows '^cpu ' show test-cpu
begun=$(now_ms)
kill -TERM "$daemon"
wait "$daemon" || fail 'SIGTERM: the daemon failed beside a driver that hangs'
[ $(($(now_ms) - begun)) -lt 5000 ] || fail 'the daemon waited for the driver before it ended'
finish
