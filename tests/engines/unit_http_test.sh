#!/bin/bash
# HTTP and the textfile with the hardened unit of a real systemd. HTTP is off until
# cgphased-http.socket is enabled, which reloads nothing. Then metrics, page and JSON are served
# through the socket that systemd passes, also on a port, although the unit has no network.
# unit_http_test.sh PROGRAMS, run by scripts/guest --image.
# rule: SEC-02
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=unit_fixture.sh
. "$(dirname "$0")/unit_fixture.sh"

socket=/run/cgphase/http.sock
port=9275

# get WHERE PATH [HOST]: prints the whole reply. WHERE is a path, or a port of 127.0.0.1.
get() {
  perl -MIO::Socket::UNIX -MIO::Socket::INET -e '
    my ($where, $path, $host) = @ARGV;
    my $to = $where =~ m{^/} ? IO::Socket::UNIX->new(Peer => $where)
      : IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $where);
    die "$where: $!\n" unless $to;
    print $to "GET $path HTTP/1.1\r\nHost: $host\r\n\r\n";
    print while <$to>;
  ' "$1" "$2" "${3:-localhost}"
}

got() { [[ $(get "$1" "$2" "${4:-localhost}" 2>/tmp/get.error) == *"$3"* ]]; }

expect() {
  got "$@" || fail "$1 $2: '$3' is missing in: $(get "$1" "$2" "${4:-localhost}" 2>&1 | head -n 20)"
}

no_http() {
  [ -z "$(ss -Hltun)" ] || fail "a port is open: $(ss -Hltun)"
  [ ! -e $socket ] || fail "$socket exists"
  cgphase status --json >/tmp/status.json
  ! grep -q '"HTTP"' /tmp/status.json || fail 'status reports HTTP although it is not enabled'
}

without_socket() {
  must systemctl start cgphased
  no_http
  echo 'without the socket: nothing is served, no port is open'
}

# As in docs/operations.md.
turn_on() {
  must systemctl --no-reload --quiet enable cgphased-http.socket
  must systemctl stop cgphased
  must systemctl start cgphased-http.socket cgphased
  property_is ActiveState active || fail 'the daemon does not run with the socket'
}

served_on_socket() {
  turn_on
  [ "$(stat -c '%a %U %G' $socket)" = '660 root cgphase' ] ||
    fail "$socket is $(stat -c '%a %U %G' $socket)"
  expect $socket /metrics 'Content-Type: application/openmetrics-text; version=1.0.0'
  expect $socket /metrics '# EOF'
  expect $socket /metrics cgphase_container_info
  expect $socket / '<!DOCTYPE html>'
  expect $socket /api/v1/list '/system.slice/plain.service'
  expect $socket '/api/v1/explain?container=%2Fsystem.slice%2Fplain.service' '"sentence"'
  expect $socket '/api/v1/mode?mode=enforce' ' 404 '
  expect $socket /metrics ' 421 ' evil.example
  [ -z "$(ss -Hltun)" ] || fail "a port is open: $(ss -Hltun)"
  echo 'cgphased-http.socket: metrics, page and JSON under the hardened unit, no port'
}

# A user without the group may not even connect; a member may read.
others() {
  local refusal
  must useradd --groups cgphase reader
  must useradd stranger
  declare -f get >/tmp/get.sh
  runuser -u reader -- bash -c ". /tmp/get.sh; get $socket /metrics" | grep -q '# EOF' ||
    fail 'a member of the group cannot read'
  refusal=$(runuser -u stranger -- bash -c ". /tmp/get.sh; get $socket /metrics" 2>&1) &&
    fail "a user without the group gets an answer: $refusal"
  [[ $refusal == *'Permission denied'* ]] ||
    fail "a user without the group gets the wrong error: $refusal"
  echo 'who may read: root and the group'
}

started_by_asking() {
  must systemctl stop cgphased 2>/dev/null
  got $socket /metrics '# EOF' || until_true 20000 got $socket /metrics '# EOF' ||
    fail "a request does not start the daemon: $(cat /tmp/get.error)"
  property_is ActiveState active || fail 'the daemon is not active after a request'
}

served_on_port() {
  must systemctl stop cgphased-http.socket cgphased
  mkdir -p /etc/systemd/system/cgphased-http.socket.d
  printf '[Socket]\nListenStream=\nListenStream=127.0.0.1:%s\n' $port \
    >/etc/systemd/system/cgphased-http.socket.d/port.conf
  must systemctl daemon-reload
  must systemctl start cgphased-http.socket cgphased
  expect $port /metrics '# EOF'
  expect $port /metrics ' 421 ' rebound.example:$port
  [ "$(ss -Hltun | awk '{ print $5 }')" = "127.0.0.1:$port" ] ||
    fail "wrong open ports: $(ss -Hltun)"
  echo 'a port of the loopback: served by a unit without network'
}

# An address that others could reach is not served, and status says so.
refused_address() {
  must systemctl stop cgphased-http.socket cgphased
  printf '[Socket]\nListenStream=\nListenStream=0.0.0.0:%s\n' $port \
    >/etc/systemd/system/cgphased-http.socket.d/port.conf
  must systemctl daemon-reload
  must systemctl start cgphased-http.socket cgphased
  cgphase status | grep -q 'anybody could ask there' || fail 'status does not report 0.0.0.0'
  echo 'a socket that others could reach: not served, reported'
}

off_again() {
  must systemctl --no-reload --quiet disable cgphased-http.socket
  must systemctl stop cgphased-http.socket cgphased
  must systemctl start cgphased
  no_http
  echo 'off again: nothing is served'
}

textfile() {
  local folder=/var/lib/prometheus/node-exporter
  mkdir -p $folder
  printf '\n[metrics]\ntextfile = "%s/cgphase.prom"\ninterval = "1s"\n' $folder \
    >>/etc/cgphase/cgphase.toml
  must systemctl restart cgphased
  until_true 20000 told_of_textfile || fail 'status does not say that the textfile is not written'
  mkdir -p /etc/systemd/system/cgphased.service.d
  printf '[Service]\nReadWritePaths=-%s\n' $folder >/etc/systemd/system/cgphased.service.d/text.conf
  must systemctl daemon-reload
  must systemctl restart cgphased
  until_true 20000 grep -qs '^cgphase_container_info{' $folder/cgphase.prom ||
    fail "no textfile: $(cgphase status)"
  [ "$(stat -c %a $folder/cgphase.prom)" = 644 ] || fail 'others may not read the textfile'
  must systemctl stop cgphased
  [ ! -e $folder/cgphase.prom ] || fail 'the textfile stays after the daemon has stopped'
  rm -r $folder
  must systemctl restart cgphased
  until_true 20000 told_of_textfile || fail 'status does not say that the folder is gone'
  echo 'textfile: refused and reported without the drop-in, written with it, removed at the stop;' \
    'without its folder: reported'
}

told_of_textfile() { cgphase status | grep -q 'metrics.textfile is not written'; }

install_programs
cp "$tree/systemd/cgphased-http.socket" /etc/systemd/system/
must systemd-run --quiet --unit plain -p MemoryMax=64M -p CPUQuota=50% sleep 1000
printf 'include = ["/system.slice/plain.service"]\n' >/etc/cgphase/cgphase.toml
without_socket
served_on_socket
others
started_by_asking
served_on_port
refused_address
off_again
textfile
finish
