#!/bin/bash
# The package on a whole Debian with systemd. Installing changes no limit and reloads nothing, and
# the daemon observes and answers. An upgrade keeps history and modes and never stops a running
# daemon. Removal restores every limit, and purge leaves nothing. package_test.sh PROGRAMS FOLDER
# [short], run by scripts/guest --image; the package is in FOLDER. Short: without the failure cases.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR/../engines source=../engines/unit_fixture.sh
. "$(dirname "$0")/../engines/unit_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=package_fixture.sh
. "$(dirname "$0")/package_fixture.sh"

package=$(find "$2" -maxdepth 1 -name 'cgphase_*.deb')
part=${3:-whole}
cgroups='system.slice/plain.service system.slice/raw.service'
original='' loaded=''

# A reload would undo a write that systemd does not know: systemd 252 at once, 257 when the next
# unit starts in that slice. So a reload and such a start come first. Nothing of ours may start
# there.
raw_write() {
  must systemctl daemon-reload
  must systemd-run --quiet --wait true
  write_limits
  loaded=$(units_loaded)
}
write_limits() {
  echo '30000 100000' >"$root/system.slice/raw.service/cpu.max"
  echo 100663296 >"$root/system.slice/raw.service/memory.max"
}

untouched() {  # WHAT
  all_original || fail "$1 changed a limit: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail "$1 reloaded systemd"
}

answers() { cgphase status --json >/tmp/status 2>/dev/null; }
status_has() { grep -q "$1" /tmp/status; }
value_is() {  # FILE VALUE
  [ "$(cat "$1")" = "$2" ] || fail "$1 is $(cat "$1") and not $2"
}

installed() {
  must_apt install "$package"
  system
  untouched 'the installation'
  until_true 10000 answers || fail 'cgphase status does not answer within 10 s'
  status_has '"mode": *"observe"' || fail "the mode is not observe: $(cat /tmp/status)"
  property_is ActiveState active || fail 'the unit is not active'
  property_is NeedDaemonReload no || fail 'systemd reports that its unit has changed'
  [ "$(systemctl is-enabled cgphased)" = enabled ] || fail 'the unit is not enabled'
  property_is Type notify && property_is WatchdogUSec 15s ||
    fail 'Type is not notify or WatchdogUSec is not 15 s'
  property_is Slice cgphase.slice || fail 'the unit is not in cgphase.slice'
  systemd-analyze security --no-pager cgphased.service >/tmp/security
  awk '/Overall exposure level/ { good = $(NF - 2) <= 2.0 } END { exit !good }' /tmp/security ||
    fail "the unit is too exposed: $(tail -n 1 /tmp/security)"
  tail -n 1 /tmp/security
  value_is "$root/cgphase.slice/memory.max" 268435456
  value_is "$root/cgphase.slice/memory.min" 33554432
  value_is "$root/cgphase.slice/pids.max" 64
  value_is "$root/cgphase.slice/cgphased.service/pids.max" 32
  value_is "/proc/$(property MainPID)/oom_score_adj" -900
  [ "$(ss -Hltun)" = "$ports" ] || fail "a port is open: $(ss -Hltun)"
  [ "$(systemctl is-enabled cgphased-http.socket)" = disabled ] || fail 'HTTP is enabled'
  [ ! -e /run/cgphase/http.sock ] || fail 'HTTP is served by default'
  runuser -u nobody -g cgphase -- cgphase -q status >/dev/null ||
    fail 'a member of the group may not read'
  runuser -u nobody -- cgphase -q status >/dev/null 2>&1 && fail 'a user without the group may read'
  # systemd's own dpkg trigger updated the catalog, as for any package.
  journalctl --list-catalog >/tmp/catalog 2>/dev/null
  grep -q 'cgphase: cgphased has started' /tmp/catalog ||
    fail 'the journal catalog lacks our messages'
  # dpkg asks users who edited the file about every change, and keys change between releases.
  grep '=' /etc/cgphase/cgphase.toml && fail 'the file in /etc names keys'
  [ "$(cksum </etc/cgphase/cgphase.toml)" = "$conffile" ] ||
    fail 'the file in /etc differs from that of earlier releases'
  pause_ms 5000
  untouched 'the observing daemon'
  answers
  status_has '"degraded": *\[\]' || fail "degraded from the start: $(cat /tmp/status)"
  echo 'installed: observes, nothing changed, nothing reloaded'
}

conffile='1920958976 531'  # if it must change, dpkg asks users who edited it

samples() { cgphase history /system.slice/plain.service -o csv --no-legend 2>/dev/null | wc -l; }
has_samples() { [ "$(samples)" -ge "$1" ]; }

# A member of the group may read everything and change nothing.
read_by_the_group() {
  local words
  mkdir -m 777 /tmp/read
  for words in 'list' 'history /system.slice/plain.service' 'events' \
    'explain /system.slice/plain.service' 'record -o /tmp/read/h.csv' \
    'export -o /tmp/read/h.db'; do
    # shellcheck disable=SC2086
    runuser -u nobody -g cgphase -- cgphase $words >/tmp/read/out 2>&1 </dev/null ||
      fail "a member of the group may not: cgphase $words: $(tail -n 2 /tmp/read/out)"
  done
  [ -s /tmp/read/h.csv ] && [ -s /tmp/read/h.db ] || fail 'record or export wrote nothing'
  runuser -u nobody -g cgphase -- cgphase pause /system.slice/plain.service >/tmp/read/out 2>&1
  [ $? = 5 ] || fail "a member of the group may pause: $(cat /tmp/read/out)"
}

uses_installed() {
  cgphase status --json | grep -q '"path": *"/var/lib/cgphase/models/1.json"'
}

upgraded() {
  local before pid
  printf 'include = ["/system.slice/*.service"]\n' >/etc/cgphase/conf.d/all.toml
  echo '# mine' >>/etc/cgphase/cgphase.toml
  must systemctl restart cgphased
  until_true 20000 has_samples 3 || fail 'no history before the upgrade'
  read_by_the_group
  must cgphase -q pause /system.slice/plain.service
  must cgphase -q model install /usr/share/cgphase/model.json
  uses_installed || fail "the installed model is not in use: $(cgphase status | grep model)"
  before=$(samples) pid=$(property MainPID)
  repack 0.9.1
  must_apt install /tmp/cgphase_0.9.1.deb
  untouched 'the upgrade'
  property_is NeedDaemonReload no || fail 'the same unit needs a reload'
  same_unit 'the upgrade'
  [ "$(property MainPID)" != "$pid" ] || fail 'the upgrade did not start the new daemon'
  until_true 10000 answers || fail 'cgphase status does not answer after the upgrade'
  [ "$(samples)" -ge "$before" ] || fail "history had $before samples, then $(samples)"
  cgphase show /system.slice/plain.service | grep -q paused || fail 'a pause was forgotten'
  uses_installed || fail "the upgrade lost the model: $(cgphase status | grep model)"
  grep -q all.toml <(ls /etc/cgphase/conf.d) || fail 'configuration was removed'
  grep -q '^# mine' /etc/cgphase/cgphase.toml || fail 'configuration was replaced'
  echo "upgraded: history ($before samples, then $(samples)) pause, model kept"
}

same_unit() {  # WHAT
  grep -q 'its unit has changed' /tmp/apt.log &&
    fail "$1: the unit is the same, but a change is reported"
}
other_unit() {  # WHAT
  grep -q 'takes effect when systemd reads its units again' /tmp/apt.log ||
    fail "$1: a changed unit is not reported: $(tail -n 5 /tmp/apt.log)"
}

# The file gets an older date than the one that it replaces. systemd does not treat that as a
# change.
change_unit() {  # TASKS
  find . -name cgphased.service -exec sed -i "s/^TasksMax=.*/TasksMax=$1/" {} + \
    -exec touch -d 2025-01-01 {} +
}

unit_changed() {
  repack 0.9.2 change_unit 33
  must_apt install /tmp/cgphase_0.9.2.deb
  untouched 'an upgrade with another unit'
  property_is ActiveState active || fail 'not active after an upgrade with another unit'
  other_unit 'an upgrade'
  echo 'another unit: reported, not reloaded'
}

# One package is unpacked but not configured before the next one is installed.
unit_changed_between() {
  repack 0.9.3 change_unit 34
  repack 0.9.4 change_unit 34
  must systemctl reset-failed cgphased  # the test restarts it more often than the unit allows
  must dpkg --unpack /tmp/cgphase_0.9.3.deb >/dev/null
  must_apt install /tmp/cgphase_0.9.4.deb
  untouched 'an upgrade over one that was not finished'
  other_unit 'an upgrade over one that was not finished'
  echo 'another unit, unpacked by an upgrade that was not finished: reported by the next'
}

wrong_configuration() {
  local pid
  pid=$(property MainPID)
  echo 'mode = 3' >/etc/cgphase/conf.d/wrong.toml
  repack 0.9.5
  must_apt install /tmp/cgphase_0.9.5.deb
  grep -q 'wrong.toml:1' /tmp/apt.log || fail 'the upgrade does not name the wrong line'
  [ "$(property MainPID)" = "$pid" ] || fail 'the upgrade stopped a running daemon'
  answers || fail 'the old daemon does not answer'
  rm /etc/cgphase/conf.d/wrong.toml
  echo 'a wrong configuration: reported, the old daemon continues'
}

# More samples than a new history would soon have.
long_history() {
  until_true 60000 has_samples 30 || unproved "only $(samples) samples"
}

downgraded() {
  local before
  long_history
  before=$(samples)
  must_apt install --allow-downgrades "$package"
  untouched 'the downgrade'
  until_true 10000 answers || fail 'cgphase status does not answer after the downgrade'
  has_samples "$before" || fail "history had $before samples, then $(samples)"
  echo 'downgraded: works, history kept'
}

unknown_history() { cgphase status 2>/dev/null | grep -q 'schema 99 is newer than'; }

# The history of a version that does not exist yet. The schema number is in the SQLite header
# (user_version, 4 bytes at offset 60).
downgraded_below_its_history() {
  local history=/var/lib/cgphase/history.db before
  repack 0.9.6
  must_apt install /tmp/cgphase_0.9.6.deb
  until_true 10000 answers || fail 'cgphase status does not answer after the upgrade'
  long_history
  before=$(samples)
  must systemctl reset-failed cgphased
  must systemctl stop cgphased
  [ ! -e $history-wal ] || fail 'a -wal is left, so the file alone proves nothing'
  cp $history /tmp/ours
  printf '\0\0\0\143' | dd of=$history bs=1 seek=60 conv=notrunc status=none
  cp $history /tmp/newer
  must_apt install --allow-downgrades "$package"
  untouched 'the downgrade below its history'
  property_is ActiveState active || must systemctl start cgphased
  until_true 10000 unknown_history ||
    fail "status does not report the newer history: $(cgphase status)"
  cmp -s $history /tmp/newer || fail 'a newer history was changed'
  must systemctl stop cgphased
  cp /tmp/ours $history
  must systemctl start cgphased
  until_true 10000 has_samples "$before" ||
    fail "history had $before samples, then $(samples) after the downgrade below it"
  echo 'downgraded below its history: reported, works, the newer history is unchanged'
}

removal_refused() {
  policy 101
  apt_get remove cgphase && fail 'removed under a daemon that may not be stopped'
  rm /usr/sbin/policy-rc.d
  grep -q 'the daemon still runs' /tmp/apt.log ||
    fail "apt does not say why: $(tail -n 5 /tmp/apt.log)"
  [ -x /usr/lib/cgphase/cgphase-restore ] || fail 'a refused removal removed the programs'
  answers || fail 'the daemon does not answer after a refused removal'
  echo 'a daemon that may not be stopped: stays installed'
}

lowered() {
  must cgphase -q resume /system.slice/plain.service
  rm -f /etc/cgphase/conf.d/all.toml
  must systemctl stop cgphased
  # If the daemon had systemd write a limit, the pending reset of a reload would follow.
  must systemd-run --quiet --wait true
  write_limits
  enforce
  await 'before its slice is full'
}

has_failed() { property_is ActiveState failed; }

# The kernel kills everything in the daemon's slice: the daemon, its companion, its last command and
# each restart.
no_memory() {
  echo 0 >"$root/cgphase.slice/memory.max"
  until_true 60000 has_failed ||
    fail "the unit has not failed without memory: $(property ActiveState)"
  until_true 30000 all_original ||
    fail "without memory in its slice the limits are not restored: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail 'a daemon without memory reloaded systemd'
  echo 268435456 >"$root/cgphase.slice/memory.max"
  must systemctl reset-failed cgphased
  must systemctl start cgphased
  await 'after it had no memory'
  echo 'no memory left in its slice: the unit failed, every limit is restored'
}

is_lower() { [ "$(cat "$1")" != max ] && [ "$(cat "$1")" -lt "$2" ]; }  # FILE VALUE

# Makes the file of a limit read-only. A running daemon does not notice that.
restore_refused() {
  local file=$root/system.slice/plain.service/memory.high
  until_true 60000 is_lower "$file" 67108864 || unproved 'its memory is not lowered'
  must mount --bind "$file" "$file"
  must mount -o remount,ro,bind "$file"
  echo 1 >"$root/cgphase.slice/cgphased.service/cgroup.kill"
  until_true 10000 answers || fail 'the daemon was not restarted after its kill'
  apt_get remove cgphase && fail 'removed although a limit could not be restored'
  grep -q 'some limits could not be put back' /tmp/apt.log ||
    fail "apt does not say why: $(tail -n 5 /tmp/apt.log)"
  all_original && fail 'the limit was restored, so nothing is proved'
  [ -x /usr/lib/cgphase/cgphase-restore ] || fail 'a refused removal removed the programs'
  until_true 10000 answers || fail 'the daemon does not answer after a refused removal'
  must umount --lazy "$file"
  must systemctl stop cgphased
  all_original || fail "after the file became writable a stop did not restore: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail 'a refused removal reloaded systemd'
  must systemctl start cgphased
  echo 'a limit that cannot be restored: stays installed'
}

removed() {
  await 'before the removal'
  must_apt remove cgphase
  all_original || fail "the removal did not restore all limits: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail 'the removal reloaded systemd'
  raw_write
  [ ! -e /usr/sbin/cgphased ] || fail '/usr/sbin/cgphased still exists'
  [ -e /var/lib/cgphase ] || fail 'the removal deleted the history, which only purge may do'
  daemon_runs && fail 'the daemon still runs'
  echo 'removed: every limit is the original'
}

purged() {
  must_apt purge cgphase
  untouched 'purge'
  nothing_left
  journalctl --list-catalog >/tmp/catalog 2>/dev/null || fail 'the catalog cannot be listed'
  grep -q ' cgphase: ' /tmp/catalog && fail 'the journal catalog still has our messages'
  echo 'purged: nothing left'
}

again() {
  must_apt install "$package"
  until_true 10000 answers || fail 'cgphase status does not answer after a reinstallation'
  untouched 'a reinstallation'
  must systemctl --root=/ --no-reload --quiet enable cgphased-http.socket cgphase-train.timer
  must systemctl --root=/ --no-reload --quiet add-requires rescue.target cgphased.service
  must cgphase -q model install /usr/share/cgphase/model.json
  must_apt remove cgphase
  must_apt install "$package"
  until_true 10000 answers || fail 'cgphase status does not answer after removal and installation'
  uses_installed || fail 'the removal deleted an installed model, which only purge may do'
  [ -S /run/cgphase/http.sock ] || fail 'enabled HTTP is not served after removal and installation'
  systemctl --quiet is-active cgphase-train.timer ||
    fail 'enabled training is off after removal and installation'
  echo 'mode = 3' >/etc/cgphase/conf.d/wrong.toml
  systemctl restart cgphased 2>/dev/null
  until_true 10000 has_failed || fail 'the unit started with a wrong configuration'
  must_apt purge cgphase
  untouched 'reinstallation, removal and purge'
  nothing_left
  echo 'reinstalled, removed, installed, and purged after a failure: passed'
}

# An administrator who masked the unit wants no daemon, but still a complete package.
masked() {
  must systemctl --root=/ --no-reload --quiet mask cgphased.service
  must_apt install "$package"
  grep -q 'cgphase: not enabled' /tmp/apt.log ||
    fail "apt does not report the masked unit: $(tail -n 5 /tmp/apt.log)"
  daemon_runs && fail 'a masked daemon was started'
  must_apt purge cgphase
  must systemctl --root=/ --no-reload --quiet unmask cgphased.service
  untouched 'the installation while masked'
  nothing_left
  echo 'masked: installed, not started'
}

# A unit that was enabled when systemd read its units stays in systemd, although its file is
# removed.
unit_changed_away() {
  must_apt install "$package"
  raw_write
  must_apt remove cgphase
  must_apt install "$package"
  same_unit 'removal and installation'
  must_apt remove cgphase
  must_apt install /tmp/cgphase_0.9.2.deb
  other_unit 'removal and another installation'
  must dpkg --unpack /tmp/cgphase_0.9.4.deb >/dev/null
  raw_write  # as the installation of another package would
  must_apt --fix-broken install
  same_unit 'a unit that systemd has already read'
  must_apt purge cgphase
  must_apt install "$package"
  other_unit 'purge and another installation'
  must_apt purge cgphase
  untouched 'another unit after a removal'
  nothing_left
  raw_write  # systemd must forget it
  echo 'another unit after removal and purge: reported, not reloaded'
}

# Drop-ins define how the daemon runs, and so how an upgrade must test it.
dropped_in() {
  local folder=/etc/systemd/system/cgphased.service.d pid
  mkdir -p "$folder" /home
  printf '[Service]\nProtectHome=read-only\nExecStart=\nExecStart=%s\n' \
    '/usr/sbin/cgphased --config /home/own.toml' >"$folder/own.conf"
  echo 'model = "/home/own.json"' >/home/own.toml
  cp "$tree/model/default_model.json" /home/own.json
  raw_write  # systemd must read the drop-in
  must_apt install "$package"
  until_true 10000 answers ||
    fail "cgphase status does not answer with a drop-in: $(journalctl -u cgphased -n 5)"
  cgphase status --json | grep -q '"path": *"/home/own.json"' || fail 'the drop-in is not used'
  pid=$(property MainPID)
  must_apt install --reinstall "$package"
  [ "$(property MainPID)" != "$pid" ] ||
    fail "a configuration that the drop-in allows was rejected: $(tail -n 5 /tmp/apt.log)"
  pid=$(property MainPID)
  echo 'mode = 3' >/home/own.toml
  must_apt install --reinstall "$package"
  grep -q 'own.toml:1' /tmp/apt.log ||
    fail "apt does not report the wrong line: $(tail -n 5 /tmp/apt.log)"
  [ "$(property MainPID)" = "$pid" ] || fail 'the upgrade stopped a running daemon'
  must_apt purge cgphase
  rm -r "$folder" /home/own.toml /home/own.json
  untouched 'an upgrade with a drop-in'
  nothing_left
  echo 'drop-ins: an upgrade tests the daemon with their settings'
}

# As tools that make images may install it, without a chroot.
in_an_image() {
  local image=/tmp/image
  mkdir -p "$image/var/lib/dpkg/info" "$image/var/lib/dpkg/updates" "$image/etc"
  touch "$image/var/lib/dpkg/status"
  must dpkg --root="$image" --force-script-chrootless --force-depends -i "$package" \
    >/tmp/dpkg.log 2>&1
  [ -L "$image/etc/systemd/system/multi-user.target.wants/cgphased.service" ] ||
    fail "the unit is not enabled in an image: $(tail -n 5 /tmp/dpkg.log)"
  untouched 'the installation into an image'
  rm -rf "$image"
  echo 'in an image: enabled, nothing of this system changed'
}

# Proves that the checks above can fail.
seen_if_done() {
  must systemctl daemon-reload
  must systemd-run --quiet --wait true
  some_changed || fail 'a reload resets no limit, so nothing is proved'
  [ "$(units_loaded)" != "$loaded" ] || fail 'a reload is not detected, so nothing is proved'
}

must systemd-run --quiet --unit plain -p MemoryMax=64M -p CPUQuota=50% sleep infinity
must systemd-run --quiet --unit raw -p MemoryMax=128M -p CPUQuota=60% sleep infinity
raw_write
original=$(snapshot $cgroups)
ports=$(ss -Hltun)
in_whole() { [ "$part" = short ] || "$@"; }
installed
upgraded
in_whole unit_changed
in_whole unit_changed_between
in_whole wrong_configuration
downgraded
in_whole downgraded_below_its_history
removal_refused
lowered
in_whole no_memory
in_whole restore_refused
removed
purged
in_whole again
in_whole masked
in_whole unit_changed_away
in_whole dropped_in
in_whole in_an_image
seen_if_done
finish
