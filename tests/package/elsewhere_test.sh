#!/bin/bash
# The other ways to install: an apt repository, the .tar.zst and the .rpm. Each way, the daemon
# observes, one limit is lowered, and removal restores it. elsewhere_test.sh PROGRAMS FOLDER, run by
# scripts/guest --image; repack_test.sh made FOLDER.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR/../engines source=../engines/unit_fixture.sh
. "$(dirname "$0")/../engines/unit_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=package_fixture.sh
. "$(dirname "$0")/package_fixture.sh"

made=$2 cgroups=system.slice/plain.service original='' loaded=''
answers() { cgphase status --json >/tmp/status 2>/dev/null; }

observes() {  # WHAT
  until_true 10000 answers || fail "$1: cgphase status does not answer within 10 s"
  grep -q '"mode": *"observe"' /tmp/status || fail "$1: not in mode observe"
  property_is ActiveState active || fail "$1: the unit is not active"
  [ "$(systemctl is-enabled cgphased)" = enabled ] || fail "$1: the unit is not enabled"
  all_original || fail "$1 changed a limit: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail "$1 reloaded systemd"
}

lowers() {  # WHAT
  must systemctl reset-failed cgphased
  must systemctl stop cgphased
  cp /usr/share/cgphase/model.json /tmp/model.before
  enforce
  await "$1"
}

is_gone() {  # WHAT
  all_original || fail "$1: a removal did not restore all limits: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail "$1: the removal reloaded systemd"
  daemon_runs && fail "$1: the daemon still runs"
  [ ! -e /usr/sbin/cgphased ] && [ ! -e /usr/lib/cgphase ] || fail "$1: programs are left"
}

# An interrupted or forged upload: the index is not what was signed.
forged() {
  find /srv/cgphase/dists -name 'Packages*' -exec sh -c 'echo forged >>"$1"' sh {} \;
  rm -rf /var/lib/apt/lists/*srv_cgphase*
  apt_get update
  grep -qi 'hash sum mismatch\|unexpected size' /tmp/apt.log ||
    fail "a forged index is accepted: $(tail -n 5 /tmp/apt.log)"
}

from_repository() {
  cp -r "$made/first" /srv/cgphase
  rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*  # the guest has no network
  cp /srv/cgphase/cgphase.asc /usr/share/keyrings/cgphase.asc
  echo 'deb [signed-by=/usr/share/keyrings/cgphase.asc] file:/srv/cgphase stable main' \
    >/etc/apt/sources.list.d/cgphase.list
  must_apt update
  must_apt install cgphase
  observes 'from a repository'
  rm -r /srv/cgphase
  cp -r "$made/second" /srv/cgphase
  must_apt update
  must_apt upgrade
  [ "$(dpkg-query -Wf '${Version}' cgphase)" = 9.0 ] ||
    fail "apt did not upgrade: $(tail -n 5 /tmp/apt.log)"
  observes 'upgraded from a repository'
  lowers 'from a repository'
  must_apt purge cgphase
  is_gone 'from a repository'
  forged
  echo 'a signed apt repository: installed, upgraded, purged; a forged index is refused'
}

from_archive() {
  mkdir /tmp/archive
  must tar -C /tmp/archive -xf "$made"/cgphase-*.tar.zst
  cd /tmp/archive/cgphase-* || exit
  must ./install
  observes 'from an archive'
  echo '# mine' >>/etc/cgphase/cgphase.toml
  must ./install
  observes 'upgraded from an archive'
  grep -q '^# mine' /etc/cgphase/cgphase.toml || fail 'an upgrade replaced the configuration'
  lowers 'from an archive'
  must ./install --remove
  is_gone 'from an archive'
  [ -e /var/lib/cgphase/history.db ] && [ -e /etc/cgphase/cgphase.toml ] ||
    fail 'a removal deleted history or configuration'
  must ./install
  must ./install --purge
  is_gone 'from an archive, again'
  [ ! -e /var/lib/cgphase ] && [ ! -e /etc/cgphase ] || fail 'purge left history or configuration'
  cd / && rm -r /tmp/archive
  echo 'an archive: installed, upgraded, removed, purged'
}

# With the rpm of Debian, which has no database of what is installed: so no dependencies.
from_rpm() {
  local rpm
  command -v rpm >/dev/null || fail 'the image has no rpm'
  rpm=$(echo "$made"/cgphase-*.rpm)
  must rpm --force-debian -i --nodeps "$rpm"
  observes 'from an .rpm'
  lowers 'from an .rpm'
  must rpm --force-debian -U --nodeps --replacepkgs "$rpm"
  must rpm --force-debian -e --nodeps cgphase
  is_gone 'from an .rpm'
  echo 'an .rpm: installed, upgraded, removed'
}

must systemd-run --quiet --unit plain -p MemoryMax=64M -p CPUQuota=50% sleep infinity
original=$(snapshot $cgroups)
loaded=$(units_loaded)
from_repository
from_archive
from_rpm
finish
