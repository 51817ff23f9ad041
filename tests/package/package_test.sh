#!/bin/bash
# The package on a whole Debian with systemd: installing changes no limit and reloads nothing, the
# daemon observes and answers, an upgrade keeps history and modes and never stops a daemon that
# runs, removal restores every limit, purge leaves nothing. package_test.sh PROGRAMS FOLDER [short],
# run by scripts/guest --image; the package lies in FOLDER. Short: without what goes wrong.
# shellcheck source-path=SCRIPTDIR/../kernel source=../kernel/daemon_fixture.sh
. "$(dirname "$0")/../kernel/daemon_fixture.sh"
# shellcheck source-path=SCRIPTDIR/../engines source=../engines/unit_fixture.sh
. "$(dirname "$0")/../engines/unit_fixture.sh"
# shellcheck source-path=SCRIPTDIR source=package_fixture.sh
. "$(dirname "$0")/package_fixture.sh"

package=$(find "$2" -name 'cgphase_*.deb')
part=${3:-whole}
cgroups='system.slice/plain.service system.slice/raw.service'
original='' loaded=''

# What was written behind systemd's back is what a reload would undo: systemd 252 at once, 257 when
# next a unit starts in that slice. So a reload comes before, and what it left to be done; and
# nothing of ours may start there.
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

# An upgrade of Debian has to be an upgrade of the package, which has other libraries there.
# shellcheck disable=SC1091
version_tells_the_release() {
  local release version
  release=$(. /etc/os-release && echo "$ID$VERSION_ID")
  version=$(dpkg-query -Wf '${Version}' cgphase)
  case $release:$version in
    debian*:*+deb"${release#debian}"u1 | ubuntu*:*+"$release".1) ;;
    *) fail "version $version, on $release" ;;
  esac
}

installed() {
  must_apt install "$package"
  system
  version_tells_the_release
  untouched 'the installation'
  until_true 10000 answers || fail 'cgphase status does not answer within 10 s'
  status_has '"mode": *"observe"' || fail "the mode is not observe: $(cat /tmp/status)"
  property_is ActiveState active || fail 'not started'
  property_is NeedDaemonReload no || fail 'systemd says that its unit has changed'
  [ "$(systemctl is-enabled cgphased)" = enabled ] || fail 'not enabled'
  property_is Type notify && property_is WatchdogUSec 15s || fail 'not watched by systemd'
  property_is Slice cgphase.slice || fail 'not in its slice'
  systemd-analyze security --no-pager --threshold=20 cgphased.service >/tmp/security ||
    fail "exposed: $(tail -n 1 /tmp/security)"
  tail -n 1 /tmp/security
  value_is "$root/cgphase.slice/memory.max" 268435456
  value_is "$root/cgphase.slice/memory.min" 33554432
  value_is "$root/cgphase.slice/pids.max" 64
  value_is "$root/cgphase.slice/cgphased.service/pids.max" 32
  value_is "/proc/$(property MainPID)/oom_score_adj" -900
  [ -z "$(ss -Hltun)" ] || fail "a port is open: $(ss -Hltun)"
  [ "$(systemctl is-enabled cgphased-http.socket)" = disabled ] || fail 'HTTP is enabled'
  [ ! -e /run/cgphase/http.sock ] || fail 'HTTP is served though nobody asked for it'
  runuser -u nobody -g cgphase -- cgphase -q status >/dev/null ||
    fail 'a member of the group may not read'
  runuser -u nobody -- cgphase -q status >/dev/null 2>&1 && fail 'anybody may read'
  # systemd's own trigger read it, as it does whatever package lays one there.
  journalctl --list-catalog >/tmp/catalog 2>/dev/null
  grep -q 'cgphase: cgphased has started' /tmp/catalog ||
    fail 'the catalog of the journal lacks ours'
  # dpkg asks who edited it about every change, and keys change from release to release.
  grep '=' /etc/cgphase/cgphase.toml && fail 'the file in /etc tells of keys'
  [ "$(cksum </etc/cgphase/cgphase.toml)" = "$conffile" ] ||
    fail 'the file in /etc is not that of every release'
  pause_ms 5000
  untouched 'the daemon, that observes,'
  answers
  status_has '"degraded": *\[\]' || fail "degraded from the start: $(cat /tmp/status)"
  echo 'installed: observes, nothing changed, nothing reloaded'
}

conffile='1920958976 531'  # if it must change after all: who edited it is asked then

samples() { cgphase history /system.slice/plain.service -o csv --no-legend 2>/dev/null | wc -l; }
has_samples() { [ "$(samples)" -ge "$1" ]; }

# Whoever is in the group reads all there is, and changes nothing.
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
  until_true 10000 answers || fail 'no answer after the upgrade'
  [ "$(samples)" -ge "$before" ] || fail "history had $before samples, then $(samples)"
  cgphase show /system.slice/plain.service | grep -q paused || fail 'a pause was forgotten'
  uses_installed || fail "the upgrade took the model: $(cgphase status | grep model)"
  grep -q all.toml <(ls /etc/cgphase/conf.d) || fail 'configuration was removed'
  grep -q '^# mine' /etc/cgphase/cgphase.toml || fail 'configuration was replaced'
  echo "upgraded: history ($before samples, then $(samples)) pause, model kept"
}

same_unit() {  # WHAT
  grep -q 'its unit has changed' /tmp/apt.log && fail "$1: the unit is the same, told was a change"
}
other_unit() {  # WHAT
  grep -q 'takes effect when systemd reads its units again' /tmp/apt.log ||
    fail "$1: a changed unit is not told: $(tail -n 5 /tmp/apt.log)"
}

# With a date before that of the one that it replaces, which systemd takes for no change.
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
  echo 'another unit: told, not reloaded'
}

# With a package that is unpacked, and never configured as the next one comes.
unit_changed_between() {
  repack 0.9.3 change_unit 34
  repack 0.9.4 change_unit 34
  must systemctl reset-failed cgphased  # it is started more often than the unit allows
  must dpkg --unpack /tmp/cgphase_0.9.3.deb >/dev/null
  must_apt install /tmp/cgphase_0.9.4.deb
  untouched 'an upgrade over one that was not finished'
  other_unit 'an upgrade over one that was not finished'
  echo 'another unit, unpacked by an upgrade that was not finished: told by the next'
}

wrong_configuration() {
  local pid
  pid=$(property MainPID)
  echo 'mode = 3' >/etc/cgphase/conf.d/wrong.toml
  repack 0.9.5
  must_apt install /tmp/cgphase_0.9.5.deb
  grep -q 'wrong.toml:1' /tmp/apt.log || fail 'the upgrade does not name the wrong line'
  [ "$(property MainPID)" = "$pid" ] || fail 'a daemon that ran was stopped'
  answers || fail 'the daemon before does not answer'
  rm /etc/cgphase/conf.d/wrong.toml
  echo 'a wrong configuration: told, the daemon before goes on'
}

# More than a new history would have soon.
long_history() {
  until_true 60000 has_samples 30 || unproved "there are $(samples) samples alone"
}

downgraded() {
  local before
  long_history
  before=$(samples)
  must_apt install --allow-downgrades "$package"
  untouched 'the downgrade'
  until_true 10000 answers || fail 'no answer after the downgrade'
  has_samples "$before" || fail "history had $before samples, then $(samples)"
  echo 'downgraded: works, history kept'
}

unknown_history() { cgphase status 2>/dev/null | grep -q 'schema 99 is newer than'; }

# The history of a version that does not exist yet: its number is in the header, where SQLite has
# it (user_version, 4 bytes from 60 on).
downgraded_below_its_history() {
  local history=/var/lib/cgphase/history.db before
  repack 0.9.6
  must_apt install /tmp/cgphase_0.9.6.deb
  until_true 10000 answers || fail 'no answer after the upgrade'
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
  until_true 10000 unknown_history || fail "not told: $(cgphase status)"
  cmp -s $history /tmp/newer || fail 'a newer history was changed'
  must systemctl stop cgphased
  cp /tmp/ours $history
  must systemctl start cgphased
  until_true 10000 has_samples "$before" ||
    fail "history had $before samples, then $(samples) after the downgrade below it"
  echo 'downgraded below its history: told, works, nothing of it changed'
}

removal_refused() {
  policy 101
  apt_get remove cgphase && fail 'removed under a daemon that may not be stopped'
  rm /usr/sbin/policy-rc.d
  grep -q 'the daemon still runs' /tmp/apt.log || fail "not told why: $(tail -n 5 /tmp/apt.log)"
  [ -x /usr/lib/cgphase/cgphase-restore ] || fail 'a refused removal took the programs'
  answers || fail 'the daemon does not answer after a refused removal'
  echo 'a daemon that may not be stopped: stays installed'
}

lowered() {
  must cgphase -q resume /system.slice/plain.service
  rm -f /etc/cgphase/conf.d/all.toml
  must systemctl stop cgphased
  # A limit that the daemon has systemd write would be followed by what a reload left to be done.
  must systemd-run --quiet --wait true
  write_limits
  enforce
  await 'before its slice is full'
}

has_failed() { property_is ActiveState failed; }

# The kernel ends all in the daemon's slice: it, its companion, its last command, what starts again.
no_memory() {
  echo 0 >"$root/cgphase.slice/memory.max"
  until_true 60000 has_failed || fail "not failed without memory: $(property ActiveState)"
  until_true 30000 all_original || fail "no memory in its slice, not restored: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail 'a daemon without memory reloaded systemd'
  echo 268435456 >"$root/cgphase.slice/memory.max"
  must systemctl reset-failed cgphased
  must systemctl start cgphased
  await 'after it had no memory'
  echo 'no memory left in its slice: it failed, every limit is the original'
}

is_lower() { [ "$(cat "$1")" != max ] && [ "$(cat "$1")" -lt "$2" ]; }  # FILE VALUE

# A file of a limit that nobody may write any more. Who runs already does not see that.
restore_refused() {
  local file=$root/system.slice/plain.service/memory.high
  until_true 60000 is_lower "$file" 67108864 || unproved 'its memory is not lowered'
  must mount --bind "$file" "$file"
  must mount -o remount,ro,bind "$file"
  echo 1 >"$root/cgphase.slice/cgphased.service/cgroup.kill"
  until_true 10000 answers || fail 'not started again after its kill'
  apt_get remove cgphase && fail 'removed, though a limit could not be put back'
  grep -q 'some limits could not be put back' /tmp/apt.log ||
    fail "not told why: $(tail -n 5 /tmp/apt.log)"
  all_original && fail 'the limit was put back, so nothing was proved'
  [ -x /usr/lib/cgphase/cgphase-restore ] || fail 'a refused removal took the programs'
  until_true 10000 answers || fail 'the daemon does not answer after a refused removal'
  must umount --lazy "$file"
  must systemctl stop cgphased
  all_original || fail "no longer stuck, stopped, not restored: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail 'a refused removal reloaded systemd'
  must systemctl start cgphased
  echo 'a limit that cannot be put back: stays installed'
}

removed() {
  await 'before the removal'
  must_apt remove cgphase
  all_original || fail "removed, not restored: $(difference)"
  [ "$(units_loaded)" = "$loaded" ] || fail 'the removal reloaded systemd'
  raw_write
  [ ! -e /usr/sbin/cgphased ] || fail 'the program is still there'
  [ -e /var/lib/cgphase ] || fail 'removal took the history, which is for purge'
  daemon_runs && fail 'the daemon still runs'
  echo 'removed: every limit is the original'
}

purged() {
  must_apt purge cgphase
  untouched 'purge'
  nothing_left
  journalctl --list-catalog >/tmp/catalog 2>/dev/null || fail 'the catalog cannot be listed'
  grep -q ' cgphase: ' /tmp/catalog && fail 'our catalog is left'
  echo 'purged: nothing left'
}

again() {
  must_apt install "$package"
  until_true 10000 answers || fail 'no answer after installing it again'
  untouched 'installing it again'
  must systemctl --root=/ --no-reload --quiet enable cgphased-http.socket cgphase-train.timer
  must systemctl --root=/ --no-reload --quiet add-requires rescue.target cgphased.service
  must cgphase -q model install /usr/share/cgphase/model.json
  must_apt remove cgphase
  must_apt install "$package"
  until_true 10000 answers || fail 'no answer after installing what was removed'
  uses_installed || fail 'the removal took an installed model, which is for purge'
  [ -S /run/cgphase/http.sock ] || fail 'HTTP was enabled, and is not served after a removal'
  systemctl --quiet is-active cgphase-train.timer || fail 'training was enabled, and is off'
  echo 'mode = 3' >/etc/cgphase/conf.d/wrong.toml
  systemctl restart cgphased 2>/dev/null
  until_true 10000 has_failed || fail 'started with a wrong configuration'
  must_apt purge cgphase
  untouched 'installing it again, removing and purging it'
  nothing_left
  echo 'installed again, removed, installed again, and purged where it had failed: fine'
}

# Who masked it before wants no daemon, and a package that is whole all the same.
masked() {
  must systemctl --root=/ --no-reload --quiet mask cgphased.service
  must_apt install "$package"
  grep -q 'cgphase: not enabled' /tmp/apt.log || fail "not told: $(tail -n 5 /tmp/apt.log)"
  daemon_runs && fail 'a masked daemon was started'
  must_apt purge cgphase
  must systemctl --root=/ --no-reload --quiet unmask cgphased.service
  untouched 'installing it masked'
  nothing_left
  echo 'masked: installed, not started'
}

# A unit that was enabled when systemd read its units stays with it, though its file goes.
unit_changed_away() {
  must_apt install "$package"
  raw_write
  must_apt remove cgphase
  must_apt install "$package"
  same_unit 'removed, and installed again'
  must_apt remove cgphase
  must_apt install /tmp/cgphase_0.9.2.deb
  other_unit 'removed, and another installed'
  must dpkg --unpack /tmp/cgphase_0.9.4.deb >/dev/null
  raw_write  # as the installation of another package in between does it
  must_apt --fix-broken install
  same_unit 'a unit that systemd has read already'
  must_apt purge cgphase
  must_apt install "$package"
  other_unit 'purged, and another installed'
  must_apt purge cgphase
  untouched 'another unit after a removal'
  nothing_left
  raw_write  # systemd has to forget it
  echo 'another unit after removal and purge: told, not reloaded'
}

# Drop-ins say how the daemon runs, and so with what an upgrade has to try it.
dropped_in() {
  local folder=/etc/systemd/system/cgphased.service.d pid
  mkdir -p "$folder" /home
  printf '[Service]\nProtectHome=read-only\nExecStart=\nExecStart=%s\n' \
    '/usr/sbin/cgphased --config /home/own.toml' >"$folder/own.conf"
  echo 'model = "/home/own.json"' >/home/own.toml
  cp "$tree/model/default_model.json" /home/own.json
  raw_write  # systemd has to read the drop-in
  must_apt install "$package"
  until_true 10000 answers || fail "no answer with a drop-in: $(journalctl -u cgphased -n 5)"
  cgphase status --json | grep -q '"path": *"/home/own.json"' || fail 'its drop-in is not used'
  pid=$(property MainPID)
  must_apt install --reinstall "$package"
  [ "$(property MainPID)" != "$pid" ] ||
    fail "what the drop-in allows was taken for wrong: $(tail -n 5 /tmp/apt.log)"
  pid=$(property MainPID)
  echo 'mode = 3' >/home/own.toml
  must_apt install --reinstall "$package"
  grep -q 'own.toml:1' /tmp/apt.log || fail "not told of: $(tail -n 5 /tmp/apt.log)"
  [ "$(property MainPID)" = "$pid" ] || fail 'a daemon that ran was stopped'
  must_apt purge cgphase
  rm -r "$folder" /home/own.toml /home/own.json
  untouched 'an upgrade with a drop-in'
  nothing_left
  echo 'drop-ins: an upgrade tries the daemon as they have it run'
}

# As who makes images may do it, without a chroot.
in_an_image() {
  local image=/tmp/image
  mkdir -p "$image/var/lib/dpkg/info" "$image/var/lib/dpkg/updates" "$image/etc"
  touch "$image/var/lib/dpkg/status"
  must dpkg --root="$image" --force-script-chrootless --force-depends -i "$package" \
    >/tmp/dpkg.log 2>&1
  [ -L "$image/etc/systemd/system/multi-user.target.wants/cgphased.service" ] ||
    fail "not enabled in an image: $(tail -n 5 /tmp/dpkg.log)"
  untouched 'the installation into an image'
  rm -rf "$image"
  echo 'in an image: enabled, nothing of this system changed'
}

# That what is asked above would be seen.
seen_if_done() {
  must systemctl daemon-reload
  must systemd-run --quiet --wait true
  some_changed || fail 'a reload resets nothing, so nothing was proved'
  [ "$(units_loaded)" != "$loaded" ] || fail 'a reload is not seen, so nothing was proved'
}

must systemd-run --quiet --unit plain -p MemoryMax=64M -p CPUQuota=50% sleep infinity
must systemd-run --quiet --unit raw -p MemoryMax=128M -p CPUQuota=60% sleep infinity
raw_write
original=$(snapshot $cgroups)
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
