# What the tests of the package share beside daemon_fixture.sh and unit_fixture.sh, which they
# source before it. $package is the file that is installed, and repacked.
# shellcheck shell=bash disable=SC2154

# What was tested: system, kernel and versions; of the engines those that are here.
# shellcheck disable=SC1091
system() {
  (. /etc/os-release && echo "$PRETTY_NAME")
  uname -srm
  dpkg-query -Wf '${db:Status-Status} ${Package} ${Version} ${Architecture}\n' cgphase systemd \
    docker.io podman crun 'libcgroup[0-9]*' libbpf1 2>/dev/null | sed -n 's/^installed //p'
}

unproved() { echo "FAILED, so nothing is proved: $*"; exit 1; }

# A load that changes and one phase would be no phase at all. An answer has many lines.
two_phases() {  # CONTAINER
  cgphase show "$1" --json >/tmp/shown 2>/dev/null &&
    [ "$(tr -d '\n' </tmp/shown | sed 's/.*"phases_seen"//; s/\].*//' |
      grep -o '"letter"' | wc -l)" -ge 2 ]
}

# How often systemd read its units again, by its own word.
units_loaded() { journalctl -b _PID=1 -o cat | grep -c '^Reloading'; }

# Images have no procps: nothing of the package may need it.
daemon_runs() { grep -qsx cgphased /proc/[0-9]*/comm; }

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null >/tmp/apt.log 2>&1; }

must_apt() {
  apt_get "$@" && return
  echo "FAILED, so nothing is proved: apt-get $*"
  tail -n 20 /tmp/apt.log
  exit 1
}

# The package once more under another version, changed by a command that runs in its tree.
repack() {  # VERSION [COMMAND...]
  local version=$1
  shift
  rm -rf /tmp/repack
  must dpkg-deb -R "$package" /tmp/repack
  sed -i "s/^Version: .*/Version: $version/" /tmp/repack/DEBIAN/control
  [ $# = 0 ] || (cd /tmp/repack && "$@")
  must dpkg-deb -b -Znone --root-owner-group /tmp/repack "/tmp/cgphase_$version.deb" >/dev/null
}

policy() {  # EXIT-STATUS of policy-rc.d, which every script of a package asks first
  printf '#!/bin/sh\nexit %s\n' "$1" >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
}

# The group stays (README.Debian); what apt and the guest keep of any package is theirs.
left_over() {
  find / /run -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path "$tree" \
    -o -path /var/cache/apt -o -path /run/guest-job -o -path /var/log \) -prune -o \
    -name '*cgphase*' -print
}

nothing_left() {
  [ -z "$(left_over)" ] || fail "left after purge: $(left_over | tr '\n' ' ')"
  dpkg -l cgphase >/tmp/known 2>/dev/null
  grep -q '^[a-z][a-z]  *cgphase ' /tmp/known && fail 'dpkg still knows it'
  # Units whose files are gone may run on.
  [ -z "$(systemctl list-units --plain --no-legend 'cgphase*')" ] ||
    fail "systemd still has: $(systemctl list-units --plain --no-legend 'cgphase*')"
  [ -z "$(find "$root" -name 'cgphase*' -print -quit)" ] || fail 'a cgroup is left'
}
