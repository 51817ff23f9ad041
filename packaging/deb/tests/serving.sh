# A server that answers requests, uses 24 MiB, and is idle, some seconds each, forever; for busybox
# sh. Even on slow machines it never uses as much as it may, because then its limits would not be
# lowered. So a request computes for 50 ms and not for an amount. It starts no program in between,
# which takes longest on an emulated processor.
# shellcheck shell=dash disable=SC3045  # `read -t`, which busybox supports
socket=/hold/socket
redis-server --port 0 --unixsocket $socket --save '' >/hold/log &
until redis-cli -s $socket ping >/dev/null; do busybox sleep 0.5; done
busybox mkfifo /hold/never
exec 3<>/hold/never
pause() { read -r -t "$1" _ <&3; }

# Debian 12's Redis has no os.clock; from 7.2 on the time does not advance while a script runs.
request='local has, clock = pcall(function() return os.clock end)
if not (has and clock) then
  clock = function()
    local now = redis.call("time")
    return now[1] + now[2] / 1000000
  end
end
local from = clock()
repeat redis.call("incr", "visits") until clock() - from > 0.05'
request=$(echo "$request" | busybox tr '\n' ' ')  # one line, as redis-cli reads it
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
