#!/bin/bash
# Installs the package in FOLDER, then runs a test of packaging/deb/tests as Debian's own tools do.
# system_test.sh FOLDER TEST, run by scripts/guest --image.
cd "$(dirname "$0")/../.." || exit
if [ -z "${AUTOPKGTEST_REBOOT_MARK:-}" ]; then
  DEBIAN_FRONTEND=noninteractive apt-get -q -y install "$1"/cgphase_*.deb </dev/null \
    >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
fi
[ -x /tmp/autopkgtest-reboot ] || { echo 'FAILED: the guest cannot restart itself'; exit 1; }
exec "packaging/deb/tests/$2"
