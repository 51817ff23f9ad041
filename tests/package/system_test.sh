#!/bin/bash
# Installs the package that lies in FOLDER, then runs what Debian's own tools run of it
# (packaging/deb/tests). system_test.sh FOLDER, run by scripts/guest --image.
cd "$(dirname "$0")/../.." || exit
if [ -z "${AUTOPKGTEST_REBOOT_MARK:-}" ]; then
  DEBIAN_FRONTEND=noninteractive apt-get -q -y install "$1"/cgphase_*.deb </dev/null \
    >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
fi
exec packaging/deb/tests/containers
