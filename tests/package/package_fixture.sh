# Shared by the tests of the package, in addition to daemon_fixture.sh and unit_fixture.sh, which a
# test sources first. $package is the file that is installed and repacked.
# shellcheck shell=bash disable=SC2154

# Prints what is tested: system, kernel and versions, and those of the engines that are installed.
# shellcheck disable=SC1091
system() {
  (. /etc/os-release && echo "$PRETTY_NAME")
  uname -srm
  dpkg-query -Wf '${db:Status-Status} ${Package} ${Version} ${Architecture}\n' cgphase systemd \
    docker.io podman crun 2>/dev/null | sed -n 's/^installed //p'
}

unproved() { echo "FAILED, so nothing is proved: $*"; exit 1; }

# Whether a container has two phases: one phase for a load that changes would be wrong. A reply has
# several lines.
two_phases() {  # CONTAINER
  cgphase show "$1" --json >/tmp/shown 2>/dev/null &&
    [ "$(tr -d '\n' </tmp/shown | sed 's/.*"phases_seen"//; s/\].*//' |
      grep -o '"letter"' | wc -l)" -ge 2 ]
}

# How often systemd has reloaded its units, according to its own log.
units_loaded() { journalctl -b _PID=1 -o cat | grep -c '^Reloading'; }

# The images have no procps, because nothing in the package may need it.
daemon_runs() { grep -qsx cgphased /proc/[0-9]*/comm; }

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null >/tmp/apt.log 2>&1; }

must_apt() {
  apt_get "$@" && return
  echo "FAILED, so nothing is proved: apt-get $*"
  tail -n 20 /tmp/apt.log
  exit 1
}

# Builds the package again with another version. A command that runs in its tree may change it.
repack() {  # VERSION [COMMAND...]
  local version=$1
  shift
  rm -rf /tmp/repack
  must dpkg-deb -R "$package" /tmp/repack
  sed -i "s/^Version: .*/Version: $version/" /tmp/repack/DEBIAN/control
  [ $# = 0 ] || (cd /tmp/repack && "$@")
  must dpkg-deb -b -Znone --root-owner-group /tmp/repack "/tmp/cgphase_$version.deb" >/dev/null
}

policy() {  # EXIT-STATUS of policy-rc.d, which every maintainer script asks first
  printf '#!/bin/sh\nexit %s\n' "$1" >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
}

# The group stays (README.Debian). Files that apt and the guest keep for any package do not count.
left_over() {
  find / /run -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path "$tree" \
    -o -path /run/systemd/propagate -o -path /var/cache/apt -o -path /run/guest-job \
    -o -path /var/log \) -prune -o \
    -name '*cgphase*' -print
}

nothing_left() {
  [ -z "$(left_over)" ] || fail "left after purge: $(left_over | tr '\n' ' ')"
  dpkg -l cgphase >/tmp/known 2>/dev/null
  grep -q '^[a-z][a-z]  *cgphase ' /tmp/known && fail 'dpkg still lists the package'
  # Units whose files are gone may still run.
  [ -z "$(systemctl list-units --plain --no-legend 'cgphase*')" ] ||
    fail "systemd still has: $(systemctl list-units --plain --no-legend 'cgphase*')"
  [ -z "$(find "$root" -name 'cgphase*' -print -quit)" ] || fail 'a cgroup is left'
}
