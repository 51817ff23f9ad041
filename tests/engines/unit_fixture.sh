# Shared by the tests of the installed unit, in addition to daemon_fixture.sh, which a test sources
# first.
# shellcheck shell=bash disable=SC2154

# The units that systemd starts accept the test keys, too.
systemctl set-environment CGPHASE_TEST_KEYS=1

property() { systemctl show "${2:-cgphased}" -p "$1" --value; }
property_is() { [ "$(property "$1")" = "$2" ]; }

# As in engines_fixture.sh, and prints the daemon's log.
must() {
  "$@" && return
  echo "FAILED, so nothing is proved: $*" >&2
  journalctl -u cgphased -n 20 >&2
  exit 1
}

install_programs() {
  mkdir -p /usr/lib/cgphase /usr/share/cgphase /etc/cgphase
  cp "$bin/cgphased" /usr/sbin/
  cp "$bin/cgphase" /usr/bin/
  cp "$bin/cgphase-restore" /usr/lib/cgphase/
  cp "$tree/model/default_model.json" /usr/share/cgphase/model.json
  cp "$tree/systemd/"*.service "$tree/systemd/"*.slice "$tree/systemd/"*.timer /etc/systemd/system/
  cp "$tree/systemd/cgphase.catalog" /usr/lib/systemd/catalog/
  must journalctl --update-catalog
  must systemd-sysusers --inline 'g cgphase -'
  must systemctl daemon-reload
}

# The unit starts with what write_config wrote.
use_configuration() {
  cp /tmp/model.json /usr/share/cgphase/model.json
  sed 's/^model = .*//; s/^interval = .*/&\npolicy = "hold"/' /tmp/cgphase.toml \
    >/etc/cgphase/cgphase.toml
  must systemctl start cgphased
}

enforce() {
  write_config /system.slice/plain.service
  use_configuration
}

await() {
  until_true 60000 some_changed && return
  fail "$1: no limit was lowered within 60 s"
  journalctl -u cgphased -n 20
  cgphase events
  finish
}
