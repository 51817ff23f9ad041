# A server that answers requests, holds 24 MiB, and does nothing, some seconds each, without end;
# for busybox sh. On slow machines, too, it never uses as much as it may, which would be a reason to
# leave its limits alone: a request computes for 50 ms, not for an amount, and no program is started
# in between, which on an emulated processor takes more than the rest.
# shellcheck shell=dash disable=SC3045  # `read -t`, which busybox has
socket=/hold/socket
redis-server --port 0 --unixsocket $socket --save '' >/hold/log &
until redis-cli -s $socket ping >/dev/null; do busybox sleep 0.5; done
busybox mkfifo /hold/never
exec 3<>/hold/never
pause() { read -r -t "$1" _ <&3; }

# Debian 12's Redis has no os.clock; from 7.2 on the time stands still while a script runs.
request='local has, clock = pcall(function() return os.clock end)
if not (has and clock) then
  clock = function()
    local now = redis.call("time")
    return now[1] + now[2] / 1000000
  end
end
local from = clock()
repeat redis.call("incr", "visits") until clock() - from > 0.05'
request=$(echo "$request" | busybox tr '\n' ' ')  # a line, as redis-cli reads it
while :; do
  requests=0
  while [ $requests -lt 16 ]; do
    echo "eval '$request' 0"
    pause 0.25
    requests=$((requests + 1))
  done
  echo 'setrange held 25165823 x'
  pause 4
  echo 'del held'
  echo 'memory purge'
  pause 4
done | redis-cli -s $socket >/dev/null
